"""Putting off what is nobody's: a pool's deliveries move when no account of it can take them.

A lane that is shut by the calendar looks whether the others of its pools are shut as well: by their
own limits and the ledger, in one reading. Only then does anything no longer fit, and the next legal
slot is the earliest that any of them has. As with what waits on one account (``putting_off.py``),
each is written only where nobody has moved or taken it since.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from paceline.core.instants import Instant, iso
from paceline.core.limits import Booked
from paceline.core.model import Ask, Refuse, Verdict, Wait
from paceline.core.pacer import Pacer
from paceline.core.rehousing import Place, Shared, rehoused_among
from paceline.core.slots import Seat
from paceline.core.states import AccountState
from paceline.engine import lane_writes
from paceline.engine.booking import SLACK_US, booked, has_minutes
from paceline.engine.memory import LaneMemory, standing_of, take_snapshot
from paceline.engine.ports import Journal, Lease, Run, Tx
from paceline.engine.ports.timetable import Later
from paceline.engine.putting_off import (
    CALENDAR_GATES,
    PUT_OFF_US,
    WRITTEN_AT_ONCE,
    PutOff,
    Shut,
    Waits,
    alike,
    by_calendar,
    in_turn,
    moves_of,
    plain,
    waiting_in,
    waiting_on,
)

LONG_GATES = CALENDAR_GATES | {"status", "hold", "signal"}
"""Gates that may keep an account for long. Its own pace lets messages go one by one."""

Pool = tuple[int, ...]

log = structlog.get_logger("paceline.lane")


class Busy(Exception):
    """Somebody of the pool is sending: what is refused now gives its slot back."""


async def put_off_pools(journal: Journal, lease: Lease, memory: LaneMemory, now: Instant) -> bool:
    """Move what no account of the lane's pools can take now, and write the reason on it; False if
    that can not be said yet."""
    account = memory.account
    own = Seat(account.id, memory.policy, standing_of(account), memory.usage)
    try:
        found = await journal.read(lambda tx: work_out(tx, own, now))
    except Busy:
        return False
    for run_id, verdict, moves, _ in found:
        moved = 0
        for start in range(0, len(moves), WRITTEN_AT_ONCE):
            some = moves[start : start + WRITTEN_AT_ONCE]
            moved += await journal.write(lane_writes.held(lease, partial(_write, moves=some)))
        log.info(
            "put off for its pool",
            account=account.name,
            run=run_id,
            deliveries=moved,
            first=iso(min(move.at for move in moves)),
            last=iso(max(move.at for move in moves)),
            why=verdict.why,
        )
    return True


def _write(tx: Tx, moves: Sequence[Later]) -> int:
    return tx.timetable.put_off_pooled(moves)


def work_out(tx: Tx, own: Seat, now: Instant) -> list[PutOff]:
    """What of the account's pools is shut out on every account, with a slot of its own for each."""
    runs = {run.id: run for run in tx.waiting.runs([own.account_id]) if run.pooled}
    pools, seats = tx.waiting.pools(runs), _Seats(tx, own, now)
    shut = [
        found
        for run in runs.values()
        if _is_shut(tx, seats, run, pools.get(run.id, ()))
        for found in _shut_out(tx, seats, run, pools[run.id])
    ]
    if not shut:
        return []
    if seats.busy:
        raise Busy
    moving = {want.key for found in shut for want in found.shut.wants}
    takers = sorted({account_id for found in shut for account_id in found.from_at})
    places = [Place(seats.of(number), _booked_on(tx, number, now)) for number in takers]
    staying = _staying(tx, takers, moving, now)
    from_at = {id(found.shut): found.from_at for found in shut}
    homeless = [
        Shared(want.key, want.ask, from_at[id(found)])
        for found, want in in_turn((found.shut for found in shut), now)
    ]
    # Another draw every time, and the same one in the same world.
    rng = random.Random(f"{own.account_id}/{now}/pool")
    homes = rehoused_among(places, staying, homeless, rng, slack_us=SLACK_US)
    return moves_of([found.shut for found in shut], homes, now)


class _Seats:
    """The accounts of pools as they stand, each read once and only when it is asked for."""

    def __init__(self, tx: Tx, own: Seat, now: Instant) -> None:
        self._tx = tx
        self._known = {own.account_id: own}
        self.now = now
        self.busy = False
        """Whether one of those that were asked for is sending: its own lane knows better."""

    def of(self, account_id: int) -> Seat:
        seat = self._known.get(account_id)
        if seat is None:
            found = take_snapshot(self._tx, account_id, self.now)
            seat = Seat(account_id, found.policy, found.standing, found.usage())
            self._known[account_id] = seat
            self.busy = self.busy or bool(found.stranded)
        return seat

    def verdict(self, account_id: int, ask: Ask) -> Verdict:
        seat = self.of(account_id)
        return Pacer(seat.policy, seat.standing).verdict(self.now, seat.usage, plain(ask))


class _ShutPool(NamedTuple):
    shut: Shut
    from_at: Mapping[int, Instant]
    """When each account of the pool opens; those are left out that nobody knows it of."""


def _is_shut(tx: Tx, seats: _Seats, run: Run, pool: Pool) -> bool:
    """Whether a look at everything is worth it: by its next one nearly always the answer is no, and
    it is found with the first account that could go on."""
    for row in waiting_in(tx, [run], None, seats.now, 1).of(run):
        return _opens(tx, seats, row.ask, pool) is not None
    return False


def _shut_out(tx: Tx, seats: _Seats, run: Run, pool: Pool) -> Iterator[_ShutPool]:
    for wants in alike(waiting_in(tx, [run], None, seats.now), run, seats.now):
        opens = _opens(tx, seats, wants[0].ask, pool)
        if opens is None:
            continue
        verdict, from_at = opens
        until_at = min(from_at.values())
        late = [want for want in wants if want.ask.not_before_at < until_at]
        if late:
            yield _ShutPool(Shut(run, verdict, until_at, late), from_at)


def _opens(
    tx: Tx, seats: _Seats, ask: Ask, pool: Pool
) -> tuple[Wait, Mapping[int, Instant]] | None:
    """When each account of a pool opens for it, and what the first of them waits for that goes by
    the calendar; None if one of them could go on, or nobody knows when."""
    waits: dict[int, Wait] = {}
    for account_id in _likely_first(tx, pool):
        verdict = seats.verdict(account_id, ask)
        if _goes_on(verdict, seats.now):
            return None
        if isinstance(verdict, Wait) and verdict.until_at is not None:
            waits[account_id] = verdict
    known = [waits[account_id] for account_id in pool if account_id in waits]
    told = [verdict for verdict in known if by_calendar(verdict, seats.now) is not None]
    if not told:
        return None
    from_at = {number: _until(waits[number]) for number in pool if number in waits}
    return min(told, key=_until), from_at


def _likely_first(tx: Tx, pool: Pool) -> list[int]:
    """Those first that are said to be at work: one that can go on is enough to know."""
    known = tx.accounts.several(pool)
    return sorted(pool, key=lambda number: (known[number].state is not AccountState.ACTIVE, number))


def _goes_on(verdict: Verdict, now: Instant) -> bool:
    if isinstance(verdict, Wait):
        until_at = verdict.until_at
        soon = until_at is not None and until_at - now < PUT_OFF_US
        return soon or verdict.gate not in LONG_GATES
    return not isinstance(verdict, Refuse)


def _until(verdict: Wait) -> Instant:
    assert verdict.until_at is not None
    return verdict.until_at


def _booked_on(tx: Tx, account_id: int, now: Instant) -> list[Booked]:
    """What has its place on one account alone."""
    return [one for _, one in _bookings(waiting_on(tx, account_id, now), now)]


def _staying(tx: Tx, takers: Sequence[int], moving: set[int], now: Instant) -> list[Shared]:
    """What stays where it is in any pool of these accounts, and will take room on one of them."""
    runs = [run for run in tx.waiting.runs(takers) if run.pooled]
    pools, known = tx.waiting.pools(run.id for run in runs), set(takers)
    return [
        Shared(one.key, one.ask, dict.fromkeys(pool, one.at))
        for run, one in _bookings(waiting_in(tx, runs, None, now), now)
        if one.key not in moving and not one.waits
        if (pool := [number for number in pools.get(run.id, ()) if number in known])
    ]


def _bookings(waits: Waits, now: Instant) -> Iterator[tuple[Run, Booked]]:
    for run in waits.runs:
        for want in waits.of(run):
            one = booked(want, now, by_hand=not has_minutes(run))
            if one is not None and want.key not in waits.in_line:
                yield run, one
