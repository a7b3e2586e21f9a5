"""Lanes that were woken for nothing are parked again, without a worker being started for them.

Whatever changes something for everybody wakes every lane there is: a stop, going on, a change of
limits. A lane that runs looks around and parks itself, which costs next to nothing; to start a
process for that costs half a second of a processor for each account. What is looked at here is only
whether there is anything a lane could do before long. What that is, and whether it may, is the
lane's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paceline.core.instants import MINUTE, Instant, earlier
from paceline.core.states import AccountState, RunState
from paceline.engine.lane import PASSING
from paceline.engine.ports import Account, Clock, Journal, LaneRow, Lease, Run, Tx
from paceline.engine.turns import is_served

SOON_US = MINUTE
"""What falls due sooner is worth a worker now, which has joined by then."""
AT_ONCE = 50
"""Lanes looked at in one transaction: short enough to let others write."""


class Glance(NamedTuple):
    """What there is to do on an account."""

    busy: bool
    wake_at: Instant | None = None
    """When there will be something, as far as is known; None is when somebody wakes it."""


BUSY = Glance(busy=True)


class IdleLanes:
    """Tells lanes with something to do from others, which it parks."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._busy: dict[int, int] = {}
        """Accounts with something to do, by the revision of their lane that was looked at: they may
        wait in line for long, and nobody looks twice meanwhile."""

    async def busy(self, due: Sequence[LaneRow], process_id: int) -> list[LaneRow]:
        """Those with something to do; the others are parked."""
        waiting = {row.account_id: row.revision for row in due}
        known = {one: seen for one, seen in self._busy.items() if waiting.get(one) == seen}
        unseen = [row for row in due if row.account_id not in known]
        for start in range(0, len(unseen), AT_ONCE):
            known |= await self._look(unseen[start : start + AT_ONCE], process_id)
        self._busy = known
        return [row for row in due if row.account_id in known]

    async def _look(self, rows: Sequence[LaneRow], process_id: int) -> dict[int, int]:
        now = self._clock.now()
        idle = await self._journal.read(
            lambda tx: [row.account_id for row in rows if not look(tx, row.account_id, now).busy]
        )
        if idle:
            await self._journal.write(lambda tx: park(tx, idle, process_id, now))
        return {row.account_id: row.revision for row in rows if row.account_id not in idle}


def look(tx: Tx, account_id: int, now: Instant) -> Glance:
    """What there is to do on an account, by what is written down about it."""
    restored = tx.path.restore(account_id)
    if restored is None:
        return Glance(busy=False)
    if tx.path.stranded(account_id):
        return BUSY  # somebody has left it in the middle
    wake_at = _label_ends_at(restored.account, now)
    runs = () if restored.stopped else restored.runs
    for run in runs:
        if is_served(run) or run.state is RunState.CANCELLED:
            wake_at = earlier(wake_at, _due_at(tx, account_id, run))
    return BUSY if wake_at is not None and wake_at <= now + SOON_US else Glance(False, wake_at)


def _label_ends_at(account: Account, now: Instant) -> Instant | None:
    """When a lane has to take a label off the account, whatever else there is to do."""
    if account.state not in PASSING:
        return None
    endless = account.state_until_at is None and account.state is AccountState.LIMIT_REACHED
    return now if endless else account.state_until_at


def _due_at(tx: Tx, account_id: int, run: Run) -> Instant | None:
    own_at = tx.path.next_due_at(account_id, run.id)
    return earlier(own_at, tx.path.next_pooled_at(run.id)) if run.pooled else own_at


def park(tx: Tx, account_ids: Iterable[int], process_id: int, now: Instant) -> None:
    """Taken first and looked at again: whoever had the lane before may have left something in the
    middle until just then, and from here on nobody can."""
    for row in tx.lanes.take_free(sorted(account_ids), process_id):
        lease = Lease(row.account_id, process_id, row.generation)
        glance = look(tx, row.account_id, now)
        if glance.busy:
            tx.lanes.release(lease)
        else:
            # Wakes go by the database's clock, so what counts is how long it is until then.
            wake_at = None if glance.wake_at is None else tx.now + glance.wake_at - now
            tx.lanes.park(lease, row.revision, wake_at)
