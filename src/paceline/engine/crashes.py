"""What a lane's crashes lead to: a pause that grows, and in the end a person who looks.

Where it is always one campaign or reminder that makes its lane crash, that one is paused, and the
account goes on with the others. Otherwise the account is suspended.

How often a lane has crashed is remembered per service and for ten minutes only; noticing a crash is
the affair of the supervisor, and of the orchestrator where a whole worker is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.states import AccountState
from paceline.engine import alerts, events, lane_writes
from paceline.engine.pooling import give_back, hold_to_stop
from paceline.engine.ports import Account, Lease, Tx

AWAY_PAUSE_US = 20 * SECOND
"""How long a lane rests whose provider or store is away."""
CRASH_PAUSE_US = SECOND
CRASH_PAUSE_LONGEST_US = 60 * SECOND
CRASHES_ALLOWED = 5
CRASH_MEMORY_US = 10 * MINUTE
TOO_MANY_CRASHES = "Too many worker crashes"


class LaneFailed(Exception):
    """What a lane did has failed in a way that nobody foresaw."""

    def __init__(self, error: Exception, run_id: int | None = None) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.run_id = run_id
        """The run that it did it for, if it was for one alone."""


class Crash(NamedTuple):
    at: Instant
    run_id: int | None
    """The run that was being served, where it was that."""


class Restart(NamedTuple):
    """When a lane that has crashed is tried again."""

    pause_us: int


class OneTooMany(NamedTuple):
    run_id: int | None
    """The run that was being served every time, if it was always the same."""


class CrashBook:
    """The recent crashes of every lane of a process.

    Each that is noted is ``told``, where somebody has to remember should this process die.
    """

    def __init__(self, told: Callable[[int, Crash], None] | None = None) -> None:
        self._crashes: dict[int, list[Crash]] = {}
        self._told = told

    def recent(self, account_id: int, now: Instant) -> list[Crash]:
        """Those that still count, the oldest first."""
        known = self._crashes.get(account_id, [])
        return [one for one in known if now - one.at < CRASH_MEMORY_US]

    def learn(self, account_id: int, crash: Crash) -> None:
        """One that somebody else has drawn the conclusions from: it counts for the next. What was
        told to them from here may come back, and counts once."""
        known = self._crashes.setdefault(account_id, [])
        if crash not in known:
            known.append(crash)

    def note(self, account_id: int, crash: Crash) -> Restart | OneTooMany:
        """How long to pause after this crash, unless it was one too many."""
        if self._told is not None:
            self._told(account_id, crash)
        earlier = self.recent(account_id, crash.at)
        crashes = [*earlier, crash]
        if len(crashes) >= CRASHES_ALLOWED:
            self._crashes.pop(account_id, None)
            alike = {one.run_id for one in crashes} == {crash.run_id}
            return OneTooMany(crash.run_id if alike else None)
        self._crashes[account_id] = crashes
        return Restart(min(CRASH_PAUSE_US << len(earlier), CRASH_PAUSE_LONGEST_US))


def give_back_crashed(
    tx: Tx,
    lease: Lease,
    account: Account,
    verdict: Restart | OneTooMany,
    reason: str,
    now: Instant,
) -> None:
    """Give back a lane that has crashed: for a while, or until a person has looked."""
    told = f"{TOO_MANY_CRASHES} (last: {reason})"
    if isinstance(verdict, Restart):
        tx.lanes.release(lease, tx.now + verdict.pause_us)
    elif verdict.run_id is None:
        suspend(tx, lease, account, told, now)
    else:
        _set_aside(tx, lease, account, verdict.run_id, told, now)


def _set_aside(
    tx: Tx, lease: Lease, account: Account, run_id: int, reason: str, now: Instant
) -> None:
    """Pause what makes its lane crash every time, and give the lane back to go on with the rest."""
    run = tx.runs.get(run_id)
    if run.kind == "direct":
        # Single messages have no campaign that somebody could resume.
        suspend(tx, lease, account, reason, now)
        return
    tx.settings.fence()
    if lane_writes.pause_run(tx, run_id, account, "defect", reason, now):
        alerts.run_failed(tx, run, account, reason, now)
    tx.lanes.release(lease, tx.now + CRASH_PAUSE_US)


def suspend(tx: Tx, lease: Lease, account: Account, reason: str, now: Instant) -> None:
    """Take the account out of service until a person looks, and give its lane back."""
    tx.settings.fence()
    hold_to_stop(tx, account.id)
    if tx.accounts.move(account.id, "suspend", reason=reason) is None:
        # It was out of service already, and yet somebody tried it. Where nothing changes the same
        # would happen again at once, a login each time, so the lane takes a rest.
        tx.lanes.release(lease, tx.now + AWAY_PAUSE_US)
        return
    events.account_is(tx, account, AccountState.SUSPENDED, now, reason=reason)
    give_back(tx, account.id, now)
    tx.lanes.release(lease)
    alerts.account_stopped(tx, account, AccountState.SUSPENDED, reason, now)
