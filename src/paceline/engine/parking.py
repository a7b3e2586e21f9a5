"""Giving a lane back until something is due: with all that it still has to say, in one commit.

A lane that sends one message and rests for minutes would otherwise write twice for nothing: what
became of the message, and that it goes. The lease of the process is renewed in the same breath, and
becomes a long one with the last lane, so that it need not be renewed by itself a moment later.
"""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.core.model import Wait
from paceline.core.states import AccountState
from paceline.engine import events
from paceline.engine.lane_writes import is_ours
from paceline.engine.leases import Renewed, rest
from paceline.engine.ports import Account, LaneResult, LaneUnit, Tx


class Rest(NamedTuple):
    """How a lane is to be parked."""

    delay_us: int | None
    """Wakes go by the database's clock. Ours may differ from it, so what counts is how long to
    wait; for ever, if it is None."""
    account: Account
    used_up: Wait | None
    """The cap that it waits for."""
    renews: bool
    """Whether the lease of the process is to be renewed as well."""


class Parked(NamedTuple):
    """What has become of it."""

    result: LaneResult
    parked: bool
    renewed: Renewed | None = None


def park(tx: Tx, result: LaneResult, unit: LaneUnit, rest_: Rest) -> Parked:
    """Give the lane back, when what was left to write is written, showing operators that a cap is
    what it waits for. What was written is true whether the lane is ours and can be parked or not.
    """
    lease = unit.lease
    if not result.held:
        return Parked(result, parked=False)
    # Behind the lock: an intent of whose commit we never heard has come through by now, or never
    # will. Nobody would look after it once the lane is given away.
    if any(is_ours(intent, lease) for _, intent in tx.path.stranded(lease.account_id)):
        return Parked(result, parked=False)
    wake_at = None if rest_.delay_us is None else tx.now + rest_.delay_us
    if not tx.lanes.park(lease, unit.revision, wake_at):
        return Parked(result, parked=False)
    _show_cap(tx, rest_.account, rest_.used_up, tx.now)
    return Parked(result, parked=True, renewed=rest(tx, lease.process_id) if rest_.renews else None)


def _show_cap(tx: Tx, account: Account, cap: Wait | None, now: Instant) -> None:
    if account.state is not AccountState.ACTIVE or cap is None:
        return
    why, until_at = cap.why, cap.until_at
    state = tx.accounts.move(account.id, "reach_limit", reason=why, until_at=until_at)
    if state is not None:
        events.account_is(tx, account, state, now, reason=why, until_at=until_at)
