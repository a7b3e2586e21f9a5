"""Whether another worker may be started: how many there are, and how the last ones fared.

That workers cannot be started is no account's fault. It is tried ever more rarely, the service
calls itself unready, and operators are told, until one has joined the fleet again.
"""

from __future__ import annotations

import structlog

from paceline.core.errors import StoreError
from paceline.core.instants import Instant
from paceline.engine.crashes import CRASH_PAUSE_LONGEST_US, CRASH_PAUSE_US
from paceline.engine.ports import Clock, Journal, NewAlert, Tx

log = structlog.get_logger("paceline.orchestrator")

FAILING = "workers.failing"
FAILURES_TOLD = 3
"""Workers in a row that could not be started, after which somebody is told."""


class Recruiting:
    """How starting workers goes for one service."""

    def __init__(self, name: str, clock: Clock, most: int, most_starting: int) -> None:
        """``most`` workers may there be, and ``most_starting`` of them may be on their way."""
        self._name = name
        self._clock = clock
        self._most = most
        self._most_starting = most_starting
        self._failures = 0
        self._failure = ""
        self._not_before_us = 0
        self._news = False
        self._told = False

    @property
    def problem(self) -> str | None:
        """Why workers cannot be started; None as long as nobody has to be told."""
        if self._failures < FAILURES_TOLD:
            return None
        return f"workers cannot be started: {self._failure}"

    def may_start(self, workers: int, starting: int) -> bool:
        rested = self._clock.monotonic_us() >= self._not_before_us
        return rested and starting < self._most_starting and not self.is_full(workers)

    def is_full(self, workers: int) -> bool:
        return workers >= self._most

    def failed(self, worker: str, reason: str, pause_us: int | None = None) -> None:
        """One was not to be had. Not an account's fault, as far as anybody knows: nothing of it was
        done yet. The pause grows from one to the next unless it is said."""
        log.error("worker could not be started", worker=worker, reason=reason)
        self._failure, now_us = reason, self._clock.monotonic_us()
        if now_us < self._not_before_us:
            return  # several that fail together fail once
        if pause_us is None:
            pause_us = min(CRASH_PAUSE_US << min(self._failures, 10), CRASH_PAUSE_LONGEST_US)
        self._not_before_us = now_us + pause_us
        self._failures += 1
        self._news = self._failures >= FAILURES_TOLD

    def joined(self) -> None:
        """One has joined the fleet, so others can."""
        self._failures, self._not_before_us = 0, 0
        self._news = False

    async def tell(self, journal: Journal) -> None:
        """Raise the alert, or end it; whatever cannot be written now is written the next time."""
        now, problem = self._clock.now(), self.problem
        if problem is not None and self._news:
            await journal.write(lambda tx: _raise(tx, self._name, problem, now), alone=True)
            self._told, self._news = True, False
        elif problem is None and self._told:
            await self._end(journal)

    async def retire(self, journal: Journal) -> None:
        """Nobody wants to start any more here. What cannot be written is left to a person."""
        try:
            await self._end(journal)
        except StoreError as error:
            log.warning("the alert about workers was not ended", error=str(error))

    async def _end(self, journal: Journal) -> None:
        if self._told:
            now = self._clock.now()
            await journal.write(lambda tx: tx.alerts.clear(now, keys=[_key(self._name)]))
            self._told = False


def _raise(tx: Tx, name: str, problem: str, now: Instant) -> None:
    text = f"process {name}: {problem}"
    tx.alerts.put(NewAlert(_key(name), FAILING, text), now)


def _key(name: str) -> str:
    return f"{FAILING}:{name}"
