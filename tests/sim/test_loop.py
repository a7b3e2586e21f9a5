"""Virtual time: exact to the microsecond, in a fixed order, and never waiting for anything."""

import asyncio
import os
import random
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextvars import copy_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.instants import DAY, SECOND, parse_instant
from paceline.engine.clock import LoopClock
from paceline.sim.loop import (
    CANCELLED_AT_LEAST,
    LONGEST_US,
    OWNER,
    Deadlock,
    VirtualClock,
    VirtualLoop,
    run_virtual,
)

START = parse_instant("2026-11-15T09:00:00Z")
ROOT = Path(__file__).resolve().parents[2]
YEARS = 30 * 365 * DAY


def now_us() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_us


def test_time_starts_at_nothing() -> None:
    async def story() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return loop.time(), loop.now_at

    assert run_virtual(story(), start_at=START) == (0.0, START)


def test_a_sleep_of_400_days_takes_no_time_and_is_exact() -> None:
    clock = LoopClock(START)

    async def story() -> int:
        await clock.sleep_until(START + 400 * DAY + 1)
        return clock.now()

    assert run_virtual(story(), start_at=START) == START + 400 * DAY + 1


def test_nothing_drifts_over_many_small_sleeps() -> None:
    async def story() -> int:
        for _ in range(20_000):
            await asyncio.sleep(0.1)
        return now_us()

    assert run_virtual(story()) == 2_000 * SECOND


@given(begin_us=st.integers(0, YEARS), wait_us=st.integers(1, 10 * SECOND))
def test_a_sleep_ends_exactly_at_its_instant_even_after_decades(
    begin_us: int, wait_us: int
) -> None:
    clock = LoopClock(START)

    async def story() -> int:
        await clock.sleep_until(START + begin_us)
        assert clock.now() == START + begin_us
        await clock.sleep_until(START + begin_us + wait_us)
        return clock.now()

    assert run_virtual(story(), start_at=START) == START + begin_us + wait_us


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, YEARS))
def test_timers_fire_by_time_and_equals_in_the_order_they_were_set(
    waits_us: list[int], begin_us: int
) -> None:
    async def story() -> list[tuple[int, int]]:
        loop = asyncio.get_running_loop()
        await LoopClock(0).sleep_until(begin_us)
        fired: list[tuple[int, int]] = []
        for turn, wait_us in enumerate(waits_us):
            at = (begin_us + wait_us) / SECOND
            loop.call_at(at, lambda turn: fired.append((now_us(), turn)), turn)
        await asyncio.sleep(1)
        return fired

    expected = sorted((begin_us + wait_us, turn) for turn, wait_us in enumerate(waits_us))
    assert run_virtual(story()) == expected


def test_cancelled_timers_do_not_fire_and_do_not_hold_up_time() -> None:
    async def story() -> tuple[list[str], int]:
        loop = asyncio.get_running_loop()
        fired: list[str] = []
        timers = [loop.call_later(1, fired.append, f"cancelled {n}") for n in range(500)]
        loop.call_later(2, fired.append, "kept")
        for timer in timers:
            timer.cancel()
        await asyncio.sleep(3)
        return fired, now_us()

    assert run_virtual(story()) == (["kept"], 3 * SECOND)


def test_timers_that_were_called_off_are_forgotten() -> None:
    async def story() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for _ in range(20 * CANCELLED_AT_LEAST):
            loop.call_later(3_600, never).cancel()
        return len(loop._timers)

    assert run_virtual(story()) <= 2 * CANCELLED_AT_LEAST


def test_a_virtual_clock_says_what_a_loop_clock_does() -> None:
    async def story() -> list[tuple[int, int]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clocks = (VirtualClock(loop), LoopClock(START))
        await clocks[0].sleep(3 * DAY + 7)
        return [(clock.now(), clock.monotonic_us()) for clock in clocks]

    assert run_virtual(story(), start_at=START) == [(START + 3 * DAY + 7, 3 * DAY + 7)] * 2


def test_the_tasks_of_one_owner_are_told_apart_and_an_owner_without_any_is_forgotten() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        whose = {}
        for name in ("ann", "ben"):
            context = copy_context()
            context.run(OWNER.set, name)
            whose[name] = [loop.create_task(never(), context=context) for _ in range(2)]
        assert loop.unfinished("ann") == whose["ann"]
        for task in whose.pop("ann"):
            task.cancel()
        del task
        await asyncio.sleep(1)
        assert loop.unfinished("ann") == []
        assert loop.unfinished("ben") == whose["ben"]
        assert "ann" not in loop._born

    run_virtual(story())


def test_a_timeout_strikes_at_its_time() -> None:
    async def story() -> int:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(86_400), 10)
        async with asyncio.timeout(5):
            await asyncio.sleep(4)
        return now_us()

    assert run_virtual(story()) == 104 * SECOND


def test_nested_groups_run_side_by_side() -> None:
    async def leaf(trace: list[tuple[int, str]], name: str, seconds: int) -> None:
        await asyncio.sleep(seconds)
        trace.append((now_us() // SECOND, name))

    async def branch(trace: list[tuple[int, str]], name: str) -> None:
        async with asyncio.TaskGroup() as group:
            for seconds in (3, 1, 2):
                group.create_task(leaf(trace, f"{name}{seconds}", seconds))
        trace.append((now_us() // SECOND, name))

    async def story() -> list[tuple[int, str]]:
        trace: list[tuple[int, str]] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(branch(trace, "a"))
            group.create_task(branch(trace, "b"))
        return trace

    assert run_virtual(story()) == [
        (1, "a1"), (1, "b1"), (2, "a2"), (2, "b2"), (3, "a3"), (3, "b3"), (3, "a"), (3, "b"),
    ]  # fmt: skip


async def world(seed: int) -> list[tuple[int, str, int]]:
    """A busy world whose trace tells if anything in it depends on more than the seed."""
    rng = random.Random(seed)
    trace: list[tuple[int, str, int]] = []
    gate = asyncio.Semaphore(3)

    async def walker(number: int) -> None:
        for _ in range(20):
            async with gate:
                await asyncio.sleep(rng.choice([0, 0.001, 0.5]))
                running = asyncio.current_task()
                assert running is not None
                trace.append((now_us(), running.get_name(), number))

    await asyncio.gather(*(walker(number) for number in range(25)))
    return trace


def test_the_same_seed_gives_the_same_trace() -> None:
    first, again, other = (run_virtual(world(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_trace_does_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    script = "from tests.sim.test_loop import *; print(run_virtual(world(1)))"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == str(run_virtual(world(1)))


async def never() -> None:
    await asyncio.Event().wait()


def test_a_deadlock_is_told_with_the_names_of_those_who_wait() -> None:
    async def story() -> None:
        await asyncio.sleep(60)
        await asyncio.gather(never(), never())

    with pytest.raises(Deadlock) as caught:
        run_virtual(story(), start_at=START)
    instant, _, waiting = str(caught.value).partition("; waiting for ever: ")
    assert instant == "nothing is scheduled after 2026-11-15T09:01:00Z"
    assert [name.rpartition(".")[2] for name in waiting.split(", ")] == ["story", "never", "never"]


def test_a_deadlock_of_many_is_told_briefly() -> None:
    async def story() -> None:
        await asyncio.gather(*(never() for _ in range(100)))

    with pytest.raises(Deadlock, match="and 81 more"):
        run_virtual(story())


def test_whoever_will_not_be_cancelled_is_named_too() -> None:
    async def stubborn() -> None:
        try:
            await never()
        finally:
            await never()

    async def story() -> None:
        left = asyncio.create_task(stubborn())
        await asyncio.sleep(1)
        assert not left.done()

    with pytest.raises(Deadlock, match="stubborn"):
        run_virtual(story())


def test_leftovers_are_cancelled_oldest_first_and_may_take_their_time() -> None:
    ended: list[tuple[str, int]] = []

    async def leftover(name: str) -> None:
        try:
            await asyncio.sleep(86_400)
        finally:
            await asyncio.sleep(1)
            ended.append((name, now_us()))

    async def story() -> str:
        names = [f"leftover {number}" for number in range(50)]
        left = [asyncio.create_task(leftover(name)) for name in names]
        await asyncio.sleep(2)
        return f"{len(left)} left"

    assert run_virtual(story()) == "50 left"
    assert ended == [(f"leftover {number}", 3 * SECOND) for number in range(50)]


def test_an_error_among_the_leftovers_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            raise ValueError("broken while leaving")

    async def story() -> None:
        left = asyncio.create_task(breaks())
        await asyncio.sleep(1)
        assert not left.done()

    run_virtual(story())
    assert "failed while being cancelled" in caplog.text


def test_generators_are_closed_at_the_end() -> None:
    closed: list[bool] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    async def story() -> None:
        kept.append(numbers())
        await anext(kept[0])

    kept: list[AsyncIterator[int]] = []
    run_virtual(story())
    assert closed == [True]


def test_the_story_s_own_error_comes_out() -> None:
    async def story() -> None:
        await asyncio.sleep(5)
        raise LookupError("what the story says")

    with pytest.raises(LookupError, match="what the story says"):
        run_virtual(story())


def test_there_are_no_threads() -> None:
    async def story() -> None:
        await asyncio.to_thread(len, "abc")

    with pytest.raises(RuntimeError, match="wants a thread"):
        run_virtual(story())


def test_there_is_no_input_or_output() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)

    async def story() -> None:
        await asyncio.get_running_loop().sock_recv(ours, 1)

    with pytest.raises(RuntimeError, match="no input or output"):
        run_virtual(story())
    ours.close()
    theirs.close()


def test_time_has_an_end() -> None:
    async def story() -> None:
        asyncio.get_running_loop().call_at(LONGEST_US / SECOND + 1, print)

    with pytest.raises(OverflowError, match="beyond the end"):
        run_virtual(story())
