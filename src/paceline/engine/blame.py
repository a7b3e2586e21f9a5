"""Who is to blame for a worker's end, and what follows from it for its accounts.

Of several accounts in one worker only one can be to blame. Where nobody knows which, each is alone
from then on, so that it is known the next time. Where the worker itself has said that it was none
of them, all of them rest for a moment, and a person is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from paceline.core.instants import Instant
from paceline.engine.blocking import stood_still
from paceline.engine.crashes import (
    AWAY_PAUSE_US,
    CRASH_MEMORY_US,
    CRASH_PAUSE_US,
    Crash,
    CrashBook,
    OneTooMany,
    Restart,
)
from paceline.engine.ports import Clock, Tx
from paceline.engine.workers import Worker, free_lanes_of

Verdicts = Mapping[int, Restart | OneTooMany]
"""What becomes of those that are to blame."""


class Blame:
    """What a service remembers of its accounts' crashes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.crashes = CrashBook()
        self._not_before_us: dict[int, int] = {}
        """Accounts that rest after a crash, and until when."""
        self._alone_until_us: dict[int, int] = {}
        """Accounts that share no worker, since they have brought one down, or may have."""

    def is_rested(self, account_id: int) -> bool:
        if self._clock.monotonic_us() < self._not_before_us.get(account_id, 0):
            return False
        self._not_before_us.pop(account_id, None)
        return True

    def is_suspect(self, account_id: int) -> bool:
        return self._clock.monotonic_us() < self._alone_until_us.get(account_id, 0)

    def rest(self, account_ids: Iterable[int], pause_us: int) -> None:
        until_us = self._clock.monotonic_us() + pause_us
        self._not_before_us.update(dict.fromkeys(account_ids, until_us))

    def judge(self, worker: Worker, now: Instant) -> Verdicts:
        """A worker has crashed: what follows for whoever is to blame, if that is known."""
        self._part(worker.suspects)
        if worker.excused:
            self.rest(worker.accounts, AWAY_PAUSE_US)
        culprit = worker.culprit
        if culprit is None:
            return {}
        verdict = self.crashes.note(culprit, Crash(now, None))
        self.rest([culprit], verdict.pause_us if isinstance(verdict, Restart) else CRASH_PAUSE_US)
        return {culprit: verdict}

    def _part(self, account_ids: Collection[int]) -> None:
        """One of these has brought down its worker: from now on each is alone, for a while. The
        next time it is known which, and it takes nobody with it."""
        until_us = self._clock.monotonic_us() + CRASH_MEMORY_US
        self._alone_until_us.update(dict.fromkeys(account_ids, until_us))
        self.rest(account_ids, CRASH_PAUSE_US)


def clear_away(
    tx: Tx, service: str, worker: Worker, verdicts: Verdicts, fault: str, now: Instant
) -> None:
    """Free what a worker has held that is gone, and tell a person where no account is to blame."""
    free_lanes_of(tx, worker, verdicts, fault, now)
    standstill = worker.standstill
    if standstill is not None and standstill.excused:
        about = f"{', '.join(worker.names)}: {fault}"
        what = f"a worker of process {service} stood still and was ended ({about})"
        told = f"{what}; no account is to blame, it stood at {standstill.where}"
        stood_still(tx, service, told, now)
