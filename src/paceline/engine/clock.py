"""The clocks: the wall clock of a running service, and one that follows its event loop.

The only module that may read the time or sleep by itself; everything else is handed a ``Clock``.
Virtual time is made in ``sim/loop.py``; here it is only read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from paceline.core.instants import DAY, MINUTE, SECOND, Instant
from paceline.engine.ports import Clock

LONGEST_NAP_US = MINUTE
"""How long the wall clock is trusted. It may be stepped while we sleep, so we look again."""

LONGEST_LOOP_NAP_US = 365 * DAY
"""A loop's time is never stepped; this only keeps the timers in the range of exact floats."""

LEAST_STEP_US = 2 * SECOND
"""A clock that is only being steered does not get away so far between two looks."""


class SystemClock:
    """The machine's wall clock, with sleeps that end at an instant rather than after a while."""

    def __init__(
        self,
        *,
        time_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._time_ns = time_ns
        self._monotonic_ns = monotonic_ns
        self._sleep = sleep

    def now(self) -> Instant:
        return self._time_ns() // 1_000

    def monotonic_us(self) -> int:
        return self._monotonic_ns() // 1_000

    async def sleep_until(self, at: Instant) -> None:
        """Returns once ``now() >= at``, and lets others run at least once even if it is past."""
        await _sleep_until(self.now, self._sleep, at, LONGEST_NAP_US)

    async def sleep(self, us: int) -> None:
        """Returns after so long, whatever becomes of the wall clock meanwhile."""
        until_us = self.monotonic_us() + us
        await _sleep_until(self.monotonic_us, self._sleep, until_us, LONGEST_NAP_US)


class LoopClock:
    """The running loop's own time, counted from ``epoch_at``.

    Under a virtual loop this is virtual time; both readings come from the same source, so they
    never disagree. It is asked only while a loop runs.
    """

    def __init__(self, epoch_at: Instant) -> None:
        self.epoch_at = epoch_at

    def now(self) -> Instant:
        return self.epoch_at + self.monotonic_us()

    def monotonic_us(self) -> int:
        return round(asyncio.get_running_loop().time() * SECOND)

    async def sleep_until(self, at: Instant) -> None:
        """Returns once ``now() >= at``, and lets others run at least once even if it is past."""
        await _sleep_until(self.now, asyncio.sleep, at, LONGEST_LOOP_NAP_US)

    async def sleep(self, us: int) -> None:
        """Returns after so long; a loop's time is never stepped."""
        await self.sleep_until(self.now() + us)


class ClockSteps:
    """Notices that somebody set the wall clock, by what it gained on the monotonic one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_us: int | None = None

    def since_last_look_us(self) -> int:
        """By how much it was set since the last look; 0 for what is drift or a slow look."""
        ahead_us = self._clock.now() - self._clock.monotonic_us()
        stepped_us = 0 if self._ahead_us is None else ahead_us - self._ahead_us
        self._ahead_us = ahead_us
        return stepped_us if abs(stepped_us) > LEAST_STEP_US else 0


async def _sleep_until(
    now: Callable[[], Instant],
    sleep: Callable[[float], Awaitable[None]],
    at: Instant,
    longest_us: int,
) -> None:
    left_us = at - now()
    if left_us <= 0:
        await sleep(0)
    # A timer may fire a little early and the wall clock may have been set back meanwhile, so the
    # clock has the last word, not the timer.
    while left_us > 0:
        await sleep(min(left_us, longest_us) / SECOND)
        left_us = at - now()
