"""Taking lanes, and letting go of those that are ours without anybody running them.

Which lanes are due, and what becomes of one that was taken, is the supervisor's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from paceline.core.errors import PacelineError, StoreError
from paceline.core.instants import Instant
from paceline.engine.leases import ProcessLease, make_busy
from paceline.engine.memory import Snapshot, read_ahead, take_snapshot
from paceline.engine.ports import Account, Journal, LaneRow, Lease, Tx, Work

T = TypeVar("T")
ReadClock = Callable[[], Instant]

TAKE_AT_ONCE = 500
"""Lanes taken in one transaction: enough to be quick, and short enough to let others write."""
FEW = 8
"""So few lanes are looked at in the transaction that takes them, which spares each a visit of its
own; for more of them others would have to wait before they can write."""
LOOK_AT_ONCE = 64
"""More of them are looked at right afterwards, so many in one visit that keeps nobody waiting."""


class Taken(NamedTuple):
    """A lane that is ours now."""

    row: LaneRow
    account: Account
    snapshot: Snapshot | None
    """How it stood when it was taken, if anybody has looked."""


class Taking:
    """Takes lanes for one process, and remembers which it may have without having heard of it."""

    def __init__(self, journal: Journal, lease: ProcessLease) -> None:
        self._journal = journal
        self._lease = lease
        self._unsure: set[int] = set()

    async def take(self, account_ids: list[int]) -> list[tuple[LaneRow, Account]]:
        """Take those that are free. An idle process's lease becomes that of a busy one."""
        process_id = self._lease.process_id
        return await self._take(account_ids, lambda tx: take(tx, account_ids, process_id))

    async def look_and_take(
        self, look: Work[T], wanted: Callable[[T], list[int]], read_clock: ReadClock
    ) -> tuple[T, list[Taken]]:
        """See what is due, and take up what of it is wanted in the same visit, where it is few.

        For whoever has reason to expect something: to look first and to take then are two visits
        to the store for nearly every message of a lane that is parked in between.
        """
        process_id, tried = self._lease.process_id, list[int]()

        def work(tx: Tx) -> tuple[T, list[Taken]]:
            looked = look(tx)
            found = wanted(looked)
            tried[:] = found if len(found) <= FEW else ()
            return looked, take_up(tx, tried, process_id, read_clock()) if tried else []

        # What is tried is known when it was tried, which may be more than once.
        return await self._taking(work, tried, lambda done: bool(done[1]))

    async def take_up(self, account_ids: list[int], read_clock: ReadClock) -> list[Taken]:
        """The same for whoever runs them right away.

        The clock is read when they are looked at. That may be long after it was asked for, and what
        whoever had a lane before has sent meanwhile is not taken for the work of a wrong clock.
        """
        process_id = self._lease.process_id
        taken = await self._take(
            account_ids, lambda tx: take_up(tx, account_ids, process_id, read_clock())
        )
        if len(taken) <= FEW:
            return taken
        pages = [taken[at : at + LOOK_AT_ONCE] for at in range(0, len(taken), LOOK_AT_ONCE)]
        return [one for page in pages for one in await self._looked_at(page, read_clock)]

    async def _looked_at(self, page: list[Taken], read_clock: ReadClock) -> list[Taken]:
        """The same with what each has to know. Where that cannot be read, nobody is any worse off:
        these lanes are ours, and each looks by itself."""
        try:
            return await self._journal.read(lambda tx: _all_seen(tx, page, read_clock()))
        except StoreError:
            return page

    async def _take(self, account_ids: list[int], work: Work[list[T]]) -> list[T]:
        return await self._taking(work, account_ids, bool)

    async def _taking(self, work: Work[T], tried: list[int], has_taken: Callable[[T], bool]) -> T:
        asked = self._lease.ask()
        try:
            done = await self._journal.write(work)
        except StoreError:
            # Perhaps they are ours now and only the answer was lost.
            self._unsure.update(tried)
            raise
        if has_taken(done):
            self._lease.extend(asked)
        return done

    def doubt(self, account_id: int) -> None:
        """A lane has ended here as if it were another's. It may be ours all the same: a lease can
        run out, and be renewed, without anybody having taken anything."""
        self._unsure.add(account_id)

    async def make_sure(self, running: Collection[int]) -> None:
        """Let go of whatever may be ours though nobody runs it."""
        unsure = sorted(self._unsure)
        for start in range(0, len(unsure), TAKE_AT_ONCE):
            await self.let_go(unsure[start : start + TAKE_AT_ONCE], running)

    async def let_go(self, account_ids: list[int], running: Collection[int]) -> None:
        """Free lanes that are ours but that nobody runs here; then they are taken like others."""
        process_id = self._lease.process_id
        forgotten = [account_id for account_id in account_ids if account_id not in running]
        # Before it is written: one that ends meanwhile is to be made sure of anew.
        self._unsure.difference_update(account_ids)
        if forgotten:
            try:
                await self._journal.write(lambda tx: let_go(tx, forgotten, process_id))
            except StoreError:
                self._unsure.update(forgotten)
                raise


def take(tx: Tx, account_ids: list[int], process_id: int) -> list[tuple[LaneRow, Account]]:
    """Own those of these lanes that nobody else has or holds right now; with their accounts."""
    rows = _own(tx, account_ids, process_id)
    accounts = tx.accounts.several([row.account_id for row in rows])
    return [(row, accounts[row.account_id]) for row in rows]


def _own(tx: Tx, account_ids: list[int], process_id: int) -> list[LaneRow]:
    rows = tx.lanes.take_free(account_ids, process_id)
    if rows:
        make_busy(tx, process_id)
    return rows


def take_up(tx: Tx, account_ids: list[int], process_id: int, now: Instant) -> list[Taken]:
    """The same with what a lane has to know, where they are few."""
    rows = _own(tx, account_ids, process_id)
    few = len(rows) <= FEW
    looks = {row.account_id: _first_look(tx, row.account_id, now, row) for row in rows if few}
    seen = {number: look.restored.account for number, look in looks.items() if look is not None}
    left = [row.account_id for row in rows if row.account_id not in seen]
    accounts = seen | tx.accounts.several(left) if left else seen
    return [Taken(row, accounts[row.account_id], looks.get(row.account_id)) for row in rows]


def _all_seen(tx: Tx, page: list[Taken], now: Instant) -> list[Taken]:
    return [_seen(tx, one, now) for one in page]


def _seen(tx: Tx, taken: Taken, now: Instant) -> Taken:
    """Unless somebody else has it by now: its own look finds that out, and ends it."""
    snapshot = _first_look(tx, taken.row.account_id, now)
    if snapshot is None or _holder(snapshot.row) != _holder(taken.row):
        return taken
    return taken._replace(snapshot=snapshot)


def _holder(row: LaneRow) -> tuple[int, int | None]:
    return row.generation, row.owner


def _first_look(
    tx: Tx, account_id: int, now: Instant, row: LaneRow | None = None
) -> Snapshot | None:
    try:
        return read_ahead(tx, take_snapshot(tx, account_id, now, row=row))
    except StoreError:
        raise
    except (PacelineError, ValueError, LookupError, TypeError):
        # Something is wrong with this account only. Its lane looks by itself, fails by itself, and
        # that is told of; the others are taken all the same.
        return None


def let_go(tx: Tx, account_ids: list[int], process_id: int) -> None:
    """Free those of these lanes that are ours."""
    for account_id in sorted(account_ids):
        # Touching waits for a take of ours that is still being committed, so what is read is final.
        tx.lanes.touch(account_id, tx.now)
        row = tx.lanes.get(account_id)
        if row.owner == process_id:
            tx.lanes.release(Lease(account_id, process_id, row.generation))
