"""The clocks: the wall clock of a running service, and one that follows its event loop.

The only module that may read the time or sleep by itself; everything else is handed a ``Clock``.
Virtual time is made in ``sim/loop.py``; here it is only read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import ceil

from paceline.core.instants import DAY, MINUTE, SECOND, Instant
from paceline.engine.ports import Alarm, Clock

LONGEST_NAP_US = 15 * MINUTE
"""How long the wall clock is trusted. It may be stepped while we sleep, so we look again; whoever
must hear of it sooner is woken by the supervisor, which looks at the clock all the time."""

LONGEST_LOOP_NAP_US = 365 * DAY
"""A loop's time is never stepped; this only keeps the timers in the range of exact floats."""

LEAST_STEP_US = 2 * SECOND
"""A clock that is only being steered does not get away so far between two looks."""


CallLater = Callable[[float, Callable[[], None]], Alarm]
"""As an event loop has it: call something after so many seconds."""


class SystemClock:
    """The machine's wall clock, with sleeps that end at an instant rather than after a while."""

    def __init__(
        self,
        *,
        time_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        call_later: CallLater | None = None,
    ) -> None:
        self._time_ns = time_ns
        self._monotonic_ns = monotonic_ns
        self._sleep = sleep
        self._call_later = call_later or _in_whole_ms

    def now(self) -> Instant:
        return self._time_ns() // 1_000

    def monotonic_us(self) -> int:
        return self._monotonic_ns() // 1_000

    async def sleep_until(self, at: Instant) -> None:
        """Returns once ``now() >= at``, and lets others run at least once even if it is past."""
        await _sleep_until(self.now, self._sleep, at, LONGEST_NAP_US)

    async def sleep(self, us: int) -> None:
        """Returns after so long, whatever becomes of the wall clock meanwhile."""
        if us <= 0:  # who only lets others have their turn does so several times for each commit
            await self._sleep(0)
            return
        until_us = self.monotonic_us() + us
        await _sleep_until(self.monotonic_us, self._sleep, until_us, LONGEST_NAP_US)

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Alarm:
        return _Alarm(self.now, self._call_later, at, ring)

    def timer(self, us: int, ring: Callable[[], None]) -> Alarm:
        until_us = self.monotonic_us() + us
        return _Alarm(self.monotonic_us, self._call_later, until_us, ring)


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

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Alarm:
        return _Alarm(self.now, _on_the_loop, at, ring)

    def timer(self, us: int, ring: Callable[[], None]) -> Alarm:
        return self.alarm(self.now() + us, ring)


class _Alarm:
    """Naps, and rings when the clock says so: a timer may fire early, a clock may be set."""

    __slots__ = ("_at", "_call_later", "_now", "_ring", "_timer")

    def __init__(
        self,
        now: Callable[[], Instant],
        call_later: CallLater,
        at: Instant,
        ring: Callable[[], None],
    ) -> None:
        self._now = now
        self._call_later = call_later
        self._at = at
        self._ring: Callable[[], None] | None = ring
        self._timer: Alarm | None = None
        self._look()

    def _look(self) -> None:
        if self._ring is None:
            return
        left_us = self._at - self._now()
        if left_us <= 0:
            self._ring()
        else:
            nap_us = min(left_us, LONGEST_NAP_US)
            self._timer = self._call_later(nap_us / SECOND, self._look)

    def cancel(self) -> None:
        self._ring = None
        if self._timer is not None:
            self._timer.cancel()


def _on_the_loop(seconds: float, callback: Callable[[], None]) -> Alarm:
    return asyncio.get_running_loop().call_later(seconds, callback)


def _in_whole_ms(seconds: float, callback: Callable[[], None]) -> Alarm:
    """The same for a loop that counts in whole milliseconds, as libuv does: it takes half of one
    for nothing, and whoever is called early has to ask again, and would be called again at once,
    dozens of times for each alarm. Late by one at most is better."""
    return _on_the_loop(ceil(seconds * 1_000) / 1_000, callback)


class ClockSteps:
    """Notices that somebody set the wall clock, by what it gained on the monotonic one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_us: int | None = None

    def since_last_look_us(self) -> int:
        """By how much it was set since the last look; 0 for what is drift or a slow look."""
        return self.look()[2]

    def look(self) -> tuple[Instant, int, int]:
        """What the clock says, what the one that nobody sets said a moment before, and by how much
        the first was set since the last look."""
        us = self._clock.monotonic_us()
        now = self._clock.now()
        ahead_us = now - us
        stepped_us = 0 if self._ahead_us is None else ahead_us - self._ahead_us
        self._ahead_us = ahead_us
        return now, us, stepped_us if abs(stepped_us) > LEAST_STEP_US else 0


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
