"""Accounts that cannot be opened because their provider cannot be reached.

Nothing is wrong with any message, so none is tried: the lane is given back for a while and tries
again, for as long as it takes. Operators are told when it has been so a few times in a row. How
often is remembered per service: whoever takes over begins to count anew, and tells it a little
later.
"""

from __future__ import annotations

from collections import Counter

from paceline.core.instants import Instant
from paceline.engine import alerts
from paceline.engine.crashes import AWAY_PAUSE_US
from paceline.engine.ports import Account, Lease, Tx
from paceline.engine.settling import SETBACKS_TOLD


class AwayBook:
    """How often in a row each account could not be opened."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    def note(self, account_id: int) -> int:
        self._times[account_id] += 1
        return self._times[account_id]

    def opened(self, account_id: int) -> None:
        self._times.pop(account_id, None)


def give_back_away(
    tx: Tx, lease: Lease, account: Account, times: int, reason: str, now: Instant
) -> None:
    """Let go of the lane for a while, and tell people of it where it goes on."""
    tx.lanes.release(lease, tx.now + AWAY_PAUSE_US)
    # Last: who raises the same alert must not have to wait for us while we wait for them.
    if times >= SETBACKS_TOLD and tx.accounts.get(account.id).removed_at is None:
        alerts.away_again(tx, account, times, reason, now)
