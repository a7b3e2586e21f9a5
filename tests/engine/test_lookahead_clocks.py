"""A clock that is set while an intent is written ahead, or waits for what comes before its call."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.outcome import Outcome
from paceline.engine.calls import Calls
from paceline.engine.commands import campaigns
from paceline.engine.lead import LONGEST_GUARD_US, Lead
from paceline.engine.lookahead import NO_YES
from tests.engine.doubles import Watcher
from tests.engine.scenes import intents, outcomes
from tests.engine.test_clock_steps import SetClock
from tests.engine.test_lookahead import NO, QUICKLY, YES, Server, answering
from tests.engine.world import World
from tests.engine.worlds import Worlds

MS = MILLISECOND
AHEAD_US = 100 * MS
FORWARD_US = 3 * SECOND
"""Not by so much that the lease may have run out: then nothing is sent before it is renewed."""


def play(worlds: Worlds, script: Any) -> None:
    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # two clocks have kept its books
    world.play(script)


def set_at_call(world: World, server: Server, clock: SetClock, number: int, by_us: int) -> None:
    """The clock is set half-way through a call, by when the next intent is written."""

    def at_call(called: int) -> None:
        if called == number:
            world.clock.timer(10 * MS, lambda: setattr(clock, "off_us", by_us))

    server.at_call = at_call


@pytest.mark.parametrize("by_us", [-HOUR, FORWARD_US], ids=["back", "forward"])
def test_an_intent_that_waits_for_an_answer_is_called_for_though_the_clock_was_set(
    worlds: Worlds, by_us: int
) -> None:
    """It waits for nothing but that answer: not for the instant of its verdict, either, which may
    lie an hour ahead by the clock as it is now."""

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        await world.wait(2 * HOUR)  # so that it is due by any of these clocks
        clock, watcher = SetClock(world.clock), Watcher()
        server = Server(world, answering(QUICKLY, QUICKLY, (20 * MS, YES), then=QUICKLY))
        set_at_call(world, server, clock, 3, by_us)
        process = world.process(providers=server.registry(), clock=clock, observer=watcher)
        await world.until(lambda: len(server.calls) == 6, within_us=MINUTE)
        await world.wait(SECOND)
        await process.stop()
        assert server.calls[3][1] == server.ends[2], "at once"
        assert [row.outcome for row in outcomes(world)] == ["accepted"] * 6
        assert not watcher.crashes

    play(worlds, script)


@pytest.mark.parametrize("by_us", [-HOUR, FORWARD_US], ids=["back", "forward"])
def test_a_no_is_heard_by_the_next_though_the_clock_was_followed_while_it_waited(
    worlds: Worlds, by_us: int
) -> None:
    """The third is not heard of where it was begun, and is sent the usual way, for which the clock
    is looked at once more while the intent of the fourth waits."""

    async def script(world: World) -> None:
        async def refused(real: Any, message: Any) -> Outcome:
            await world.wait(20 * MS)
            return NO

        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        await world.wait(2 * HOUR)
        clock = SetClock(world.clock)
        server = Server(world, answering(QUICKLY, QUICKLY, (20 * MS, None), then=QUICKLY))
        server._acts["send"] = refused
        set_at_call(world, server, clock, 3, by_us)
        process = world.process(providers=server.registry(), clock=clock)
        await world.until(lambda: len(server.calls) == 6, within_us=MINUTE)
        await world.wait(SECOND)
        await process.stop()
        (back,) = [row for row in outcomes(world) if row.outcome == "withdrawn"]
        assert back.reason == NO_YES
        assert [row.outcome for row in outcomes(world)].count("rejected") == 1

    play(worlds, script)


@pytest.mark.parametrize("by_us", [-HOUR, FORWARD_US], ids=["back", "forward"])
@pytest.mark.parametrize(
    "policy", [{"spacing": "10s"}, {"rate": "6/min"}, {"rate": "6/min", "concurrency": 3}], ids=str
)
def test_a_call_is_made_on_the_dot_though_the_clock_is_set_just_before_it(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, policy: dict[str, Any], by_us: int
) -> None:
    """Its intent is written a moment ahead, and what is left of that is a distance."""
    monkeypatch.setattr(Lead, "learn", lambda self, took_us: setattr(self, "us", AHEAD_US))

    async def script(world: World) -> None:
        world.account(policy=policy, latency="0s")
        world.campaign(3)
        await world.wait(2 * HOUR)
        clock, watcher = SetClock(world.clock), Watcher()
        process = world.process(clock=clock, observer=watcher)
        await world.until(lambda: len(world.sends()) == 1)
        first_at = world.sends()[0].called_at
        await world.clock.sleep_until(first_at + 10 * SECOND - AHEAD_US // 2)
        clock.off_us = by_us
        await world.until(lambda: len(world.sends()) == 2, within_us=MINUTE)
        gap_us = world.sends()[1].called_at - first_at
        await process.stop()
        assert 10 * SECOND <= gap_us <= 10 * SECOND + LONGEST_GUARD_US + MS
        assert not watcher.crashes

    play(worlds, script)


@pytest.mark.parametrize("by_us", [0, -HOUR, FORWARD_US], ids=["not set", "back", "forward"])
def test_a_call_that_has_begun_meanwhile_counts_though_the_next_was_refused(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, by_us: int
) -> None:
    """Usage is put back to before an intent that was refused, but neither to before the call of the
    message before it nor to before the clock was set: whoever is given a pace in that moment must
    keep its distance from that call."""
    found: list[tuple[int | None, int]] = []

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        await world.wait(2 * HOUR)
        clock, look = SetClock(world.clock), Calls._look
        server = Server(world, answering(then=(20 * MS, YES)))
        process = world.process(providers=server.registry(), clock=clock)

        def look_then(self: Calls, flight: Any) -> Any:
            if len(server.calls) == 3:
                clock.off_us = by_us
            return look(self, flight)

        def at_call(number: int) -> None:
            if number == 4:  # the intent of the fifth is about to be committed
                world.write(lambda tx: campaigns.pause(tx, "spring", clock.now()))
                world.clock.timer(10 * MS, partial(see, clock.now()))

        def see(called_at: int) -> None:
            (running,) = process.supervisor._running.values()
            found.append((running.lane._memory.usage.last_at, called_at))

        monkeypatch.setattr(Calls, "_look", look_then)
        server.at_call = at_call
        await world.until(lambda: bool(found), within_us=MINUTE)
        await process.kill()
        assert len(intents(world)) == 4, "the fifth was refused"

    play(worlds, script)
    ((last_at, called_at),) = found
    assert last_at is not None and 0 <= last_at - called_at <= LONGEST_GUARD_US
