"""A clock that is set while a call is out: what follows from its answer is counted from when it
came, by the clock as it is now."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.retry import ASK_AFTER_US
from tests.engine.scenes import deliveries, outcomes
from tests.engine.test_clock_steps import SetClock
from tests.engine.test_lookahead import QUICKLY, YES, Server, answering
from tests.engine.test_lookahead_clocks import play
from tests.engine.world import World
from tests.engine.worlds import Worlds

MS = MILLISECOND
BACK_AND_FORTH = pytest.mark.parametrize("by_us", [-HOUR, HOUR], ids=["back", "forward"])
TOO_FAST = Outcome(OutcomeKind.THROTTLED, "not so fast", "421", retry_after_us=MINUTE)
LOST = Outcome(OutcomeKind.UNKNOWN, "lost")


def set_during_call(world: World, answer: Outcome, by_us: int, number: int) -> Any:
    """A server to which the clock is set as soon as it is called for the so-manieth time."""
    clock = SetClock(world.clock)
    quickly = [QUICKLY] * (number - 1)
    server = Server(world, answering(*quickly, (20 * MS, answer), then=QUICKLY))

    def at_call(called: int) -> None:
        if called == number:
            clock.off_us = by_us

    server.at_call = at_call
    return server, clock


@BACK_AND_FORTH
@pytest.mark.parametrize(
    ("policy", "number"),
    [({}, 3), ({"rate": "60/min"}, 3), ({"daily": {"message": 9}, "concurrency": 1}, 1)],
    ids=["looking ahead", "rate", "first"],
)
def test_a_wait_that_was_asked_for_is_kept(
    worlds: Worlds, policy: dict[str, Any], number: int, by_us: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "30s", **policy}, finds=False)
        world.campaign(5)
        await world.wait(2 * HOUR)  # so that it is due by any of these clocks
        server, clock = set_during_call(world, TOO_FAST, by_us, number)
        process = world.process(providers=server.registry(), clock=clock)
        await world.until(lambda: len(server.calls) > number, within_us=4 * HOUR)
        await process.stop()
        waited_us = server.calls[number][1] - server.ends[number - 1]
        # A hold is never moved back: too long is safe.
        assert waited_us >= MINUTE

    play(worlds, script)


@BACK_AND_FORTH
def test_calls_beside_each_other_keep_it_as_well(worlds: Worlds, by_us: int) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "30s", "concurrency": 3}, finds=False)
        world.campaign(1)
        await world.wait(2 * HOUR)
        server, clock = set_during_call(world, TOO_FAST, by_us, 1)
        calls: list[int] = []

        async def throttled(real: Any, message: Any) -> Outcome:
            calls.append(world.clock.now())
            if len(calls) > 1:
                return YES
            clock.off_us = by_us
            await world.wait(20 * MS)
            return TOO_FAST

        server._acts["send"] = throttled
        process = world.process(providers=server.registry(), clock=clock)
        await world.until(lambda: len(calls) == 2, within_us=4 * HOUR)
        await process.stop()
        assert calls[1] - calls[0] >= MINUTE

    play(worlds, script)


@BACK_AND_FORTH
def test_the_gap_between_two_parts_is_kept(worlds: Worlds, by_us: int) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "30s", "part_gap": "10s"}, finds=False)
        world.campaign(1, parts=(Part("text", "one"), Part("text", "two")))
        await world.wait(2 * HOUR)
        server, clock = set_during_call(world, YES, by_us, 1)
        process = world.process(providers=server.registry(), clock=clock)
        await world.until(lambda: len(server.calls) == 2, within_us=4 * HOUR)
        gap_us = server.calls[1][1] - server.ends[0]
        await process.stop()
        assert 10 * SECOND <= gap_us <= 11 * SECOND

    play(worlds, script)


@BACK_AND_FORTH
def test_a_doubt_is_as_old_as_its_answer_and_its_call_took_as_long_as_it_did(
    worlds: Worlds, by_us: int
) -> None:
    """One that seems to be an hour old may be asked about at once, and what a provider does not
    know yet be taken for what it will never know."""

    async def script(world: World) -> None:
        world.account(policy={"timeout": "30s"})
        world.campaign(1)
        await world.wait(2 * HOUR)
        server, clock = set_during_call(world, LOST, by_us, 1)
        process = world.process(providers=server.registry(), clock=clock)
        await world.until(lambda: bool(outcomes(world)))
        now = clock.now()
        await process.kill()
        (row,), (doubt,) = outcomes(world), deliveries(world)
        assert row.started_at is not None
        assert 0 <= now - row.at <= SECOND
        assert row.at - row.started_at == row.latency_us == 20 * MS
        assert doubt.due_at is not None and 0 <= row.at + ASK_AFTER_US[0] - doubt.due_at <= SECOND

    play(worlds, script)
