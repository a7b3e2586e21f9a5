"""What the log says of turns: acquired, already held, released, stale cleaned; and how long they
are held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.states import TurnState
from paceline.engine import alerts, conversations
from paceline.engine.ports import Clock
from paceline.engine.ports.answering import Answer, Burst, ResponderFailed, ResponderRefused
from tests.engine.talking import (
    Desk,
    Scripted,
    answered,
    conversation,
    echo,
    hear,
    said,
    taking,
    turns,
)
from tests.engine.world import World


async def silent(burst: Burst) -> Answer:
    return Answer("")


async def refuses(burst: Burst) -> Answer:
    raise ResponderRefused("not a word")


async def shut(burst: Burst) -> Answer:
    raise ResponderRefused("no credit left", everybody=True)


async def breaks(burst: Burst) -> Answer:
    raise ValueError("a defect")


async def fails(burst: Burst) -> Answer:
    raise ResponderFailed("not this time")


@pytest.mark.parametrize("answers", [echo, silent, refuses, shut, breaks, fails])
def test_whatever_becomes_of_a_turn_it_is_released_once(
    world: World, answers: Callable[[Burst], Awaitable[Answer]]
) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(answers))
        hear(world, "hi")
        with capture_logs() as logs:
            await world.wait(40 * SECOND)
        await desk.stop()
        told = [one["event"] for one in logs if one["event"] in ("acquired", "released")]
        assert told == ["acquired", "released"]
        (turn,) = turns(world)
        assert [one["turn"] for one in logs if one["event"] == "released"] == [turn.id]

    world.play(script)


@pytest.mark.parametrize("seconds", [30, 60])
def test_a_turn_that_a_person_calls_off_is_released(world: World, seconds: int) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, seconds)))
        hear(world, "hi")
        await world.wait(35 * SECOND)
        number, now = conversation(world).id, world.clock.now()
        with capture_logs() as logs:
            world.write(lambda tx: conversations.take(tx, number, now))
            await world.wait(MINUTE)
        await desk.stop()
        (told,) = [one for one in logs if one["event"] == "released"]
        assert told["reason"] == "taken by a person"

    world.play(script)


def test_a_turn_that_is_found_and_is_nobody_s_to_answer_is_released(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        one = Desk(world, Scripted(taking(world, 30)))
        hear(world, "hi")
        await world.wait(15 * SECOND)
        await one.kill()
        number = conversation(world).id
        world.write(lambda tx: tx.conversations.change(number, mode="human"))
        two = Desk(world, responder := Scripted(), "two")
        with capture_logs() as logs:
            await world.wait(MINUTE)
        await two.stop()
        told = [one["event"] for one in logs if one["event"] in ("stale cleaned", "released")]
        assert told == ["stale cleaned", "released"]
        assert responder.asked == []

    world.play(script)


# ---------------------------------------------------------------------- for how long


def test_whoever_is_slow_and_lives_keeps_the_turn(world: World) -> None:
    """For longer than half an hour of leases, in two tries."""

    async def script(world: World) -> None:
        answered(world)

        async def slow(burst: Burst) -> Answer:
            await world.clock.sleep(4 * MINUTE)
            if len(responder.asked) < 2:
                raise ResponderFailed("no answer within 240 s", again_us=30 * SECOND)
            return await echo(burst)

        responder = Scripted(slow)
        names = ("one", "two")
        desks = [Desk(world, responder, name, give_up_us=9 * MINUTE) for name in names]
        hear(world, "hi")
        await world.wait(30 * MINUTE)
        assert (len(responder.asked), responder.most_at_once) == (2, 1)
        assert said(world) == ["re: hi"]
        (turn,) = turns(world)
        assert (turn.generation, turn.attempts) == (1, 1)
        for desk in desks:
            await desk.stop()

    world.play(script)


async def never(burst: Burst) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


async def never_and_deaf(burst: Burst) -> Answer:
    """Nor does it stop when it is told to, but for the second time."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return await never(burst)


@pytest.mark.parametrize("hangs", [never, never_and_deaf])
@pytest.mark.parametrize("retries", [0, 5])
def test_a_responder_that_never_comes_back_is_given_up_with_its_turn(
    world: World, hangs: Callable[[Burst], Awaitable[Answer]], retries: int
) -> None:
    """However many retries there are: somebody waits, and others for the room that it takes."""

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, responder := Scripted(hangs), retries=retries)
        hear(world, "hi")
        await world.wait(4 * MINUTE + 7 * SECOND)
        assert conversation(world).mode == "auto"
        await world.wait(10 * SECOND)
        assert len(responder.asked) == 1
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", "no answer within 4m")
        assert [one.kind for one in world.read(lambda tx: tx.alerts.list())] == [
            alerts.CONVERSATION
        ]
        assert [turn.state for turn in turns(world)] == [TurnState.HANDED]
        assert desk.answerer.answering == 0
        await desk.stop()

    world.play(script)


def test_all_tries_of_a_turn_have_one_deadline(world: World) -> None:
    """Calls that time out and pauses that were asked for count alike; where the next try would
    begin after it, there is none."""

    async def script(world: World) -> None:
        answered(world)

        async def busy(burst: Burst) -> Answer:
            await world.clock.sleep(50 * SECOND)
            raise ResponderFailed("busy", again_us=HOUR)

        desk = Desk(world, responder := Scripted(busy), retries=10)
        hear(world, "hi")
        # Asked at 0, 1:50 and 3:40, and cut short at 4:00.
        await world.wait(4 * MINUTE + 20 * SECOND)
        assert len(responder.asked) == 3
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", "no answer within 4m")
        await desk.stop()

    world.play(script)


def test_no_pause_is_made_that_ends_after_the_deadline(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)

        async def busy(burst: Burst) -> Answer:
            raise ResponderFailed("busy", again_us=40 * SECOND)

        desk = Desk(world, responder := Scripted(busy), retries=10, give_up_us=MINUTE)
        hear(world, "hi")
        await world.wait(52 * SECOND)
        assert len(responder.asked) == 2
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", "busy")
        await desk.stop()

    world.play(script)


class SetBack:
    """A clock whose hands somebody turns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_us = 0

    def now(self) -> int:
        return self._clock.now() - self.by_us

    def monotonic_us(self) -> int:
        return self._clock.monotonic_us()

    async def sleep(self, duration_us: int) -> None:
        await self._clock.sleep(duration_us)


def test_a_clock_that_is_set_back_makes_no_pause_longer(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)

        async def busy(burst: Burst) -> Answer:
            raise ResponderFailed("busy", again_us=50 * SECOND)

        desk = Desk(world, scripted := Scripted(busy), retries=1)
        asking = desk.answerer._asking
        asking._clock = clock = SetBack(asking._clock)
        hear(world, "hi")
        await world.wait(20 * SECOND)
        clock.by_us = HOUR
        await world.wait(2 * MINUTE)
        assert (len(scripted.asked), conversation(world).mode) == (2, "human")
        await desk.stop()

    world.play(script)


def test_an_answer_that_is_there_is_not_made_anew_until_there_is_none(world: World) -> None:
    """Each takes a minute, and more is said during each: the time is over before all is quiet."""

    async def script(world: World) -> None:
        answered(world, on_newer="redo")
        desk = Desk(world, scripted := Scripted(taking(world, 61)))
        hear(world, "one")
        for number in range(4):
            await world.wait(55 * SECOND)
            hear(world, f"more {number}")
        await world.wait(5 * MINUTE)
        assert conversation(world).mode == "auto"
        answers = "\n".join(said(world))
        for words in ("one", "more 0", "more 1", "more 2", "more 3"):
            assert answers.count(words) == 1, answers
        assert len(scripted.asked) <= 5
        await desk.stop()

    world.play(script)
