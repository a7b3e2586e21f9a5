"""A wall clock that is set back or forward while a process runs: what is periodic goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.outcome import accepted
from paceline.engine.calls import Calls
from paceline.engine.clock import LEAST_STEP_US, ClockSteps, LoopClock, SystemClock
from paceline.engine.settling import Flight, moved_with_the_clock
from paceline.sim.loop import run_virtual
from tests.engine.faults import TrippedStore
from tests.engine.world import World
from tests.engine.worlds import Worlds


class SetClock(SystemClock):
    """A machine's clock over virtual time, which a test can set."""

    def __init__(self, clock: LoopClock) -> None:
        self.off_us = 0
        super().__init__(
            time_ns=lambda: (clock.now() + self.off_us) * 1_000,
            monotonic_ns=lambda: clock.monotonic_us() * 1_000,
            sleep=asyncio.sleep,
        )


@pytest.mark.parametrize("step_us", [-DAY, -HOUR, HOUR, DAY])
def test_a_process_stays_alive_when_its_clock_is_set(worlds: Worlds, step_us: int) -> None:
    async def script(world: World) -> None:
        clock = SetClock(world.clock)
        looks: list[Instant] = []
        store = TrippedStore(world.store)
        store.look = lambda: looks.append(world.clock.now())
        process = world.process(clock=clock, store=store)
        await world.wait(MINUTE)
        before = len(looks)
        clock.off_us = step_us
        await world.wait(6 * SECOND)
        for _ in range(10):
            await world.wait(MINUTE)
            assert process.supervisor.healthy
        assert 10 * 60 <= len(looks) - before <= 2 * 10 * 60, "neither starved nor flooded"
        await process.stop()

    worlds.fresh().play(script)


def test_lanes_hear_of_it_when_the_clock_was_set(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        clock, touched = SetClock(world.clock), []
        world.account(policy={"spacing": "1m"})
        world.campaign(3)
        process = world.process(clock=clock)
        await world.until(lambda: len(world.sends()) == 1)
        (running,) = process.supervisor._running.values()
        monkeypatch.setattr(running.lane, "touch", lambda: touched.append(clock.now()))
        clock.off_us = SECOND
        await world.wait(3 * SECOND)
        assert not touched, "a second is no step"
        clock.off_us = -HOUR
        await world.wait(3 * SECOND)
        assert len(touched) == 1
        await process.kill()

    world = worlds.fresh()
    world.play(script)


def test_periods_are_slept_by_the_clock_that_nobody_sets() -> None:
    async def script() -> None:
        base = LoopClock(DAY)
        clock = SetClock(base)
        nap = asyncio.ensure_future(clock.sleep(10 * MINUTE))
        await asyncio.sleep(60)
        clock.off_us = -HOUR
        await nap
        assert base.monotonic_us() == pytest.approx(10 * MINUTE, abs=1_000)
        nap = asyncio.ensure_future(clock.sleep(10 * MINUTE))
        clock.off_us = HOUR
        await nap
        assert base.monotonic_us() == pytest.approx(20 * MINUTE, abs=1_000)
        await LoopClock(0).sleep(MINUTE)
        assert base.monotonic_us() == pytest.approx(21 * MINUTE, abs=1_000)

    run_virtual(script(), start_at=0)


def test_a_step_is_noticed_once_and_drift_never() -> None:
    async def script() -> None:
        clock = SetClock(LoopClock(DAY))
        steps = ClockSteps(clock)
        assert steps.since_last_look_us() == 0
        for _ in range(100):
            clock.off_us += LEAST_STEP_US
            assert steps.since_last_look_us() == 0
        clock.off_us -= HOUR
        assert steps.since_last_look_us() == -HOUR
        assert steps.since_last_look_us() == 0

    run_virtual(script(), start_at=0)


def test_a_midnight_that_comes_twice_brings_no_second_allowance(worlds: Worlds) -> None:
    """The clock is set back over midnight, and runs over it again: that day is spent already."""

    async def script(world: World) -> None:
        clock = SetClock(world.clock)
        world.account(policy={"daily": {"message": 3}, "zone": "UTC"})
        world.campaign(12, name="first")
        process = world.process(clock=clock, poll_us=10 * SECOND)
        await world.until(lambda: len(world.sends()) == 6, 2 * DAY, MINUTE)
        since_midnight_us = clock.now() % DAY
        assert since_midnight_us < HOUR
        clock.off_us = -since_midnight_us - MINUTE
        world.campaign(1, name="second")  # somebody has to look
        await world.wait(HOUR)
        assert len(world.sends()) == 6
        clock.off_us = 0
        await world.until(lambda: len(world.sends()) == 9, 2 * DAY, MINUTE)
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    "steps_us",
    [(-2 * HOUR, 0), (HOUR,), (-HOUR,), (3 * HOUR, -HOUR, 0)],
    ids=["back and right again", "forward", "back", "wild"],
)
@pytest.mark.parametrize("policy", [{"spacing": "10m"}, {"rate": "6/h"}], ids=["spacing", "rate"])
def test_the_distance_between_two_messages_is_kept_whatever_the_clock_does(
    worlds: Worlds, steps_us: tuple[int, ...], policy: dict[str, str]
) -> None:
    """A clock that is set tells nothing about how long ago the last message was sent."""

    async def script(world: World) -> None:
        clock = SetClock(world.clock)
        world.account(policy=policy)
        world.campaign(2)
        await world.wait(5 * HOUR)  # so that it is due by any of these clocks
        process = world.process(clock=clock, park_after_us=HOUR)
        await world.until(lambda: len(world.sends()) == 1)
        began_at = world.clock.now()
        for off_us in steps_us:
            await world.wait(MINUTE)
            clock.off_us = off_us
        await world.until(lambda: len(world.sends()) == 2, 2 * HOUR)
        kept_us = world.clock.now() - began_at
        await process.stop()
        assert 10 * MINUTE - SECOND <= kept_us <= 11 * MINUTE

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # its books are kept by that clock
    world.play(script)


@pytest.mark.parametrize("off_us", [-HOUR, HOUR], ids=["back", "forward"])
def test_so_it_is_when_the_clock_is_set_in_the_very_moment_of_a_call(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, off_us: int
) -> None:
    async def script(world: World) -> None:
        clock, look = SetClock(world.clock), Calls._look

        def look_then(self: Calls, flight: Any) -> Any:
            clock.off_us = off_us
            return look(self, flight)

        monkeypatch.setattr(Calls, "_look", look_then)
        world.account(policy={"spacing": "10m"})
        world.campaign(2)
        await world.wait(5 * HOUR)
        process = world.process(clock=clock, park_after_us=HOUR)
        await world.until(lambda: len(world.sends()) == 1)
        began_at = world.clock.now()
        await world.until(lambda: len(world.sends()) == 2, 3 * HOUR)
        kept_us = world.clock.now() - began_at
        await process.stop()
        assert 10 * MINUTE - SECOND <= kept_us <= 11 * MINUTE

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)


def test_whoever_has_the_lane_next_finds_the_distance_by_the_new_clock(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        clock = SetClock(world.clock)
        world.account(policy={"spacing": "10m"})
        world.campaign(2)
        process = world.process(clock=clock, park_after_us=HOUR)
        await world.until(lambda: len(world.sends()) == 1)
        began_at = world.clock.now()
        await world.wait(MINUTE)
        clock.off_us = HOUR
        await world.wait(MINUTE)
        await process.stop()
        second = world.process("two", clock=clock, park_after_us=HOUR)
        await world.until(lambda: len(world.sends()) == 2, 3 * HOUR)
        kept_us = world.clock.now() - began_at
        await second.stop()
        assert 10 * MINUTE - SECOND <= kept_us <= 11 * MINUTE

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)


def test_next_parts_are_as_far_ahead_and_calls_and_answers_as_old_as_before() -> None:
    waiting, calling = flight_of(next_part_at=MINUTE), flight_of(next_part_at=None)
    calling.started_at = SECOND // 2
    outcome = accepted("x")
    landed = moved_with_the_clock([waiting, calling], [(calling, outcome, SECOND)], HOUR)
    assert landed == [(calling, outcome, SECOND + HOUR)]
    assert (waiting.next_part_at, calling.next_part_at) == (MINUTE + HOUR, None)
    assert (waiting.started_at, calling.started_at) == (None, SECOND // 2 + HOUR)


def flight_of(next_part_at: Instant | None) -> Flight:
    nothing: Any = None
    return Flight(nothing, nothing, nothing, 1, 0, 1, next_part_at=next_part_at)


def test_a_crash_during_a_call_and_a_clock_set_back_for_a_while_bring_the_next_one_no_nearer(
    worlds: Worlds,
) -> None:
    """By the wrong clock the lost call counts as made now, which is written down; by the right one
    that is long ago, and only its intent in the ledger tells the truth."""

    async def script(world: World) -> None:
        clock = SetClock(world.clock)
        world.account(policy={"spacing": "30m", "timeout": "20s"}, latency="15s")
        world.campaign(3)
        await world.wait(5 * HOUR)
        first = world.process(clock=clock, park_after_us=HOUR)
        await world.until(lambda: len(world.sends()) == 1)
        await first.kill()
        clock.off_us = -2 * HOUR
        second = world.process("two", clock=clock, park_after_us=HOUR)
        await world.wait(5 * MINUTE)
        await second.kill()
        clock.off_us = 0
        third = world.process("three", clock=clock, park_after_us=HOUR)
        await world.until(lambda: len(world.sends()) == 2, 2 * HOUR)
        await third.stop()
        lost, next_one = world.sends()
        assert next_one.called_at - lost.called_at >= 30 * MINUTE

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)
