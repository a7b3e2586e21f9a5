"""The clocks end a sleep at its instant, whatever timers and wall clocks do meanwhile."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.engine.clock import LONGEST_NAP_US, LoopClock, SystemClock
from paceline.engine.ports import Alarm, Clock
from paceline.sim.loop import run_virtual

START = 1_763_200_000 * SECOND


class Machine:
    """A wall clock in our hands: each sleep moves it by what ``slept`` makes of the nap."""

    def __init__(self, slept: Callable[[int], int] = lambda us: us) -> None:
        self.wall_ns = START * 1_000
        self.monotonic_ns = 5_000
        self.naps_us: list[int] = []
        self._slept = slept

    async def sleep(self, seconds: float) -> None:
        nap_us = round(seconds * SECOND)
        self.naps_us.append(nap_us)
        self.wall_ns += self._slept(nap_us) * 1_000
        self.monotonic_ns += nap_us * 1_000

    def clock(self) -> SystemClock:
        return SystemClock(
            time_ns=lambda: self.wall_ns,
            monotonic_ns=lambda: self.monotonic_ns,
            sleep=self.sleep,
        )


def finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never really waits."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


def test_readings_are_whole_microseconds_rounded_down() -> None:
    machine = Machine()
    machine.wall_ns += 1_999
    machine.monotonic_ns = 7_999
    assert machine.clock().now() == START + 1
    assert machine.clock().monotonic_us() == 7


def test_a_short_sleep_is_one_nap() -> None:
    machine = Machine()
    finish(machine.clock().sleep_until(START + 3 * SECOND))
    assert machine.naps_us == [3 * SECOND]


def test_a_long_sleep_is_cut_into_naps() -> None:
    machine = Machine()
    finish(machine.clock().sleep_until(START + 2 * LONGEST_NAP_US + 5))
    assert machine.naps_us == [LONGEST_NAP_US, LONGEST_NAP_US, 5]


def test_waking_early_is_made_good() -> None:
    machine = Machine(slept=lambda us: max(us // 2, 1))
    clock = machine.clock()
    finish(clock.sleep_until(START + 10))
    assert machine.naps_us == [10, 5, 3, 2, 1]
    assert clock.now() == START + 10


def test_a_clock_set_back_lengthens_the_sleep() -> None:
    steps = iter([-MINUTE, 2 * MINUTE])
    machine = Machine(slept=lambda us: next(steps))
    finish(machine.clock().sleep_until(START + MINUTE))
    assert machine.naps_us == [MINUTE, 2 * MINUTE]


def test_a_clock_set_forward_is_noticed_after_a_nap() -> None:
    machine = Machine(slept=lambda us: DAY)
    finish(machine.clock().sleep_until(START + DAY))
    assert machine.naps_us == [LONGEST_NAP_US]


@pytest.mark.parametrize("ago_us", [0, 1, DAY])
def test_an_instant_in_the_past_still_lets_others_run(ago_us: int) -> None:
    machine = Machine()
    finish(machine.clock().sleep_until(START - ago_us))
    assert machine.naps_us == [0]


def test_the_system_clock_agrees_with_itself() -> None:
    clock: Clock = SystemClock()

    async def nap() -> tuple[int, int]:
        until_at = clock.now() + 2_000
        await clock.sleep_until(until_at)
        return until_at, clock.now()

    until_at, woke_at = asyncio.run(nap())
    assert woke_at >= until_at


def test_the_loop_clock_reads_the_loop() -> None:
    clock: Clock = LoopClock(START)

    async def story() -> list[tuple[int, int]]:
        readings = [(clock.now(), clock.monotonic_us())]
        await clock.sleep_until(START + 7)
        readings.append((clock.now(), clock.monotonic_us()))
        await asyncio.sleep(1.5)
        readings.append((clock.now(), clock.monotonic_us()))
        return readings

    assert run_virtual(story(), start_at=START) == [
        (START, 0),
        (START + 7, 7),
        (START + 7 + 1_500_000, 1_500_007),
    ]


def test_the_loop_clock_works_on_a_real_loop() -> None:
    async def nap() -> tuple[int, int]:
        clock = LoopClock(START)
        until_at = clock.now() + 2_000
        await clock.sleep_until(until_at)
        return until_at, clock.now()

    until_at, woke_at = asyncio.run(nap())
    assert woke_at >= until_at


def test_the_loop_clock_needs_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        LoopClock(START).now()


class Uncancelled:
    def cancel(self) -> None:
        raise AssertionError("nobody calls it off")


def test_an_alarm_rings_when_the_clock_says_so_and_not_before() -> None:
    """A timer fires early, then the clock is set back: the alarm naps again each time."""
    readings = iter([START, START + 9, START - 5, START + 10])
    naps: list[float] = []
    rung: list[bool] = []

    def call_later(seconds: float, callback: Callable[[], None]) -> Alarm:
        naps.append(round(seconds * SECOND))
        pending.append(callback)
        return Uncancelled()

    pending: list[Callable[[], None]] = []
    clock = SystemClock(time_ns=lambda: next(readings) * 1_000, call_later=call_later)
    clock.alarm(START + 10, lambda: rung.append(True))
    while pending:
        assert not rung
        pending.pop()()
    assert naps == [10, 1, 15]
    assert rung == [True]


def test_an_alarm_that_was_called_off_does_not_ring() -> None:
    async def story() -> list[bool]:
        rung: list[bool] = []
        clock = LoopClock(START)
        alarm = clock.alarm(START + 5, lambda: rung.append(True))
        clock.alarm(START - 1, lambda: rung.append(False))
        alarm.cancel()
        await clock.sleep_until(START + 10)
        return rung

    assert run_virtual(story(), start_at=START) == [False], "what is past rings at once"


@pytest.mark.parametrize(
    ("left_us", "nap_s"), [(1, 0.001), (400, 0.001), (1_000, 0.001), (1_499_400, 1.5)]
)
def test_an_alarm_waits_for_whole_milliseconds(
    monkeypatch: pytest.MonkeyPatch, left_us: int, nap_s: float
) -> None:
    """A loop that is told of less than half of one calls at once, and again until then."""
    asked: list[float] = []

    class Loop:
        def call_later(self, seconds: float, _: Callable[[], None]) -> None:
            asked.append(seconds)

    monkeypatch.setattr(asyncio, "get_running_loop", Loop)
    clock = Machine().clock()
    clock.alarm(START + left_us, lambda: None)
    clock.timer(left_us, lambda: None)
    assert asked == [nap_s, nap_s]
