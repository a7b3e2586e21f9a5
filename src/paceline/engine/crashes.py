"""What a lane's crashes lead to: a pause that grows, and in the end a suspended account.

How often a lane has crashed is remembered per process and for ten minutes only; noticing a crash
is the supervisor's affair.
"""

from __future__ import annotations

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.states import AccountState
from paceline.engine import alerts, events
from paceline.engine.pooling import give_back
from paceline.engine.ports import Account, Lease, Tx

AWAY_PAUSE_US = 20 * SECOND
"""How long a lane rests whose provider or store is away."""
CRASH_PAUSE_US = SECOND
CRASH_PAUSE_LONGEST_US = 60 * SECOND
CRASHES_ALLOWED = 5
CRASH_MEMORY_US = 10 * MINUTE
TOO_MANY_CRASHES = "Too many worker crashes"


class CrashBook:
    """The recent crashes of every lane of a process."""

    def __init__(self) -> None:
        self._at: dict[int, list[Instant]] = {}

    def note(self, account_id: int, now: Instant) -> int | None:
        """How long to pause after this crash; None when it was one too many."""
        earlier = [at for at in self._at.get(account_id, []) if now - at < CRASH_MEMORY_US]
        crashes = [*earlier, now]
        if len(crashes) >= CRASHES_ALLOWED:
            del self._at[account_id]
            return None
        self._at[account_id] = crashes
        return min(CRASH_PAUSE_US << len(earlier), CRASH_PAUSE_LONGEST_US)


def suspend(tx: Tx, lease: Lease, account: Account, reason: str, now: Instant) -> None:
    """Take the account out of service until a person looks, and give its lane back."""
    tx.settings.fence()
    if tx.accounts.move(account.id, "suspend", reason=reason) is None:
        # It was out of service already, and yet somebody tried it. Where nothing changes the same
        # would happen again at once, a login each time, so the lane takes a rest.
        tx.lanes.release(lease, tx.now + AWAY_PAUSE_US)
        return
    events.account_is(tx, account, AccountState.SUSPENDED, now, reason=reason)
    give_back(tx, account.id, now)
    tx.lanes.release(lease)
    alerts.account_stopped(tx, account, AccountState.SUSPENDED, reason, now)
