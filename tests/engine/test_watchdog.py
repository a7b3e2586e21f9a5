"""The watchdog: loops that stand still for real, in short, and who is blamed for it."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paceline import logs
from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine.clock import SystemClock
from paceline.engine.drivers import within_time
from paceline.engine.lane_names import acting_for, lane_name, on_whose_behalf, whose_lane
from paceline.engine.watchdog import Standing, Step, Watchdog

LOOK_US = 10 * MILLISECOND
PATIENCE_S = 30


class Seen:
    """What a watchdog did, and a way to wait for it that blocks whoever waits."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Standing, int]] = []
        self.done = threading.Event()

    def step(self, name: str, after_us: int, *, last: bool = False) -> Step:
        def act(at: Standing, still_us: int) -> None:
            self.steps.append((name, at, still_us))
            if last:
                self.done.set()

        return Step(after_us, act)

    def block(self) -> None:
        assert self.done.wait(PATIENCE_S), "nobody has noticed"


def watched(
    seen: Seen, scene: Callable[[], Coroutine[Any, Any, None]], *steps: Step, look_us: int = LOOK_US
) -> None:
    async def whole() -> None:
        dog = Watchdog(asyncio.get_running_loop(), SystemClock(), steps, look_us=look_us)
        dog.start()
        try:
            await scene()
        finally:
            dog.stop()

    asyncio.run(whole())


def test_a_loop_that_turns_is_left_alone() -> None:
    seen = Seen()

    async def scene() -> None:
        clock = SystemClock()
        for _ in range(50):
            await clock.sleep(LOOK_US)

    watched(seen, scene, seen.step("too soon", SECOND))
    assert seen.steps == []


@pytest.mark.parametrize("name", [lane_name("ann"), "mailbox ann"])
def test_whoever_blocks_the_loop_is_named_if_it_is_a_lane(name: str) -> None:
    seen = Seen()

    async def blocking() -> None:
        seen.block()

    async def scene() -> None:
        await asyncio.create_task(blocking(), name=name)

    second = seen.step("second", 100 * MILLISECOND, last=True)
    watched(seen, scene, second, seen.step("first", 30 * MILLISECOND))
    assert [one for one, _, _ in seen.steps] == ["first", "second"], "each once, in their order"
    for _, at, still_us in seen.steps:
        assert at.account == whose_lane(name) and not at.excused
        assert "block" in at.stack and "threading.py" in at.where
        assert still_us >= 30 * MILLISECOND


def test_a_driver_s_call_is_made_in_the_name_of_its_lane() -> None:
    seen = Seen()

    async def send() -> None:
        seen.block()

    async def lane() -> None:
        await within_time(send(), SECOND)

    async def scene() -> None:
        await asyncio.create_task(lane(), name=lane_name("ann"))

    watched(seen, scene, seen.step("only", 30 * MILLISECOND, last=True))
    ((_, at, _),) = seen.steps
    assert at.account == "ann"


@pytest.mark.parametrize(
    ("begin", "account"),
    [(lambda act: acting_for(lane_name("ann"), act), "ann"), (lambda act: act(), None)],
    ids=["for a lane", "for nobody"],
)
def test_what_the_loop_calls_by_itself_is_done_in_the_name_of_a_lane_or_of_nobody(
    begin: Callable[[Callable[[], None]], None], account: str | None
) -> None:
    """There is no task whose name would tell."""
    seen = Seen()

    async def scene() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def act() -> None:
            begin(seen.block)
            over.set()

        loop.call_soon(act)
        await over.wait()

    watched(seen, scene, seen.step("only", 30 * MILLISECOND, last=True))
    ((_, at, _),) = seen.steps
    assert at.account == account and "block" in at.stack


def test_a_name_is_given_back_whatever_was_done_in_it() -> None:
    names: list[str | None] = []

    def note() -> None:
        names.append(on_whose_behalf())

    def fail() -> None:
        acting_for("lane bob", note)
        note()
        raise RuntimeError("a defect")

    async def scene() -> None:
        over = asyncio.Event()

        def act() -> None:
            with pytest.raises(RuntimeError):
                acting_for("lane ann", fail)
            note()
            over.set()

        asyncio.get_running_loop().call_soon(act)
        await over.wait()

    asyncio.run(scene())
    assert names == ["lane bob", "lane ann", None]


def test_it_begins_anew_when_the_loop_has_turned() -> None:
    seen = Seen()

    async def scene() -> None:
        clock = SystemClock()
        for _ in range(2):
            seen.done.clear()
            seen.block()
            await clock.sleep(10 * LOOK_US)

    watched(seen, scene, seen.step("only", 30 * MILLISECOND, last=True))
    assert len(seen.steps) == 2


def test_who_waits_for_the_log_s_reader_is_not_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()

    class Stuck:
        def write(self, text: str) -> None:
            seen.block()

        def flush(self) -> None:
            return

    monkeypatch.setattr(logs.sys, "stderr", Stuck())

    async def logging() -> None:
        import logging as standard

        record = standard.LogRecord("paceline", 20, "here", 1, "text", (), None)
        logs._ToStderr().emit(record)

    async def scene() -> None:
        await asyncio.create_task(logging(), name=lane_name("ann"))

    watched(seen, scene, seen.step("only", 30 * MILLISECOND, last=True))
    ((_, at, _),) = seen.steps
    assert at.account is None and at.excused and "logs.py" in at.stack


def test_what_holds_the_interpreter_as_well_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A regular expression that would take longer than anybody lives, and lets no thread run."""
    seen = Seen()

    class Noticed(Exception):
        pass

    def end(at: Standing, still_us: int) -> None:
        seen.steps.append(("only", at, still_us))
        signal.raise_signal(signal.SIGUSR2)

    def stop(*_: object) -> None:
        raise Noticed

    before = signal.signal(signal.SIGUSR2, stop)

    async def hogging() -> None:
        re.match("(a+)+$", "a" * 64 + "b")

    async def scene() -> None:
        with pytest.raises(Noticed):
            await asyncio.create_task(hogging(), name=lane_name("ann"))

    try:
        monkeypatch.setattr("paceline.engine.watchdog.HOGGED_S", 0.05)
        watched(seen, scene, Step(200 * MILLISECOND, end))
    finally:
        signal.signal(signal.SIGUSR2, before)
    ((_, at, _),) = seen.steps
    assert at.account == "ann" and at.where.startswith("match (")


def test_a_process_that_stood_still_as_a_whole_is_not_a_loop_that_does() -> None:
    loop = asyncio.new_event_loop()
    try:
        seen, clock = Seen(), Jumping()
        dog = Watchdog(loop, clock, [seen.step("only", 10 * SECOND)], look_us=SECOND)
        dog._look()  # asks; nobody answers, for the loop does not run
        clock.us += 3600 * SECOND
        dog._look()
        assert seen.steps == [], "an hour in one look is the machine's"
        for _ in range(8):
            clock.us += SECOND
            dog._look()
        assert len(seen.steps) == 1
    finally:
        loop.close()


class Jumping(SystemClock):
    us = 0

    def monotonic_us(self) -> int:
        return self.us
