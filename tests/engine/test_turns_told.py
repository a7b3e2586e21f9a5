"""What the log says of turns: acquired, already held, released, stale cleaned; and how long they
are held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from paceline.core.instants import MINUTE, SECOND
from paceline.engine import conversations
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
    """Twice five minutes and more: longer than after which a turn counts as left."""

    async def script(world: World) -> None:
        answered(world)

        async def slow(burst: Burst) -> Answer:
            await world.clock.sleep(5 * MINUTE)
            if len(responder.asked) < 4:
                raise ResponderFailed("no answer within 300 s", again_us=MINUTE)
            return await echo(burst)

        responder = Scripted(slow)
        desks = [Desk(world, responder, name, retries=3) for name in ("one", "two")]
        hear(world, "hi")
        await world.wait(30 * MINUTE)
        assert (len(responder.asked), responder.most_at_once) == (4, 1)
        assert said(world) == ["re: hi"]
        (turn,) = turns(world)
        assert (turn.generation, turn.attempts) == (1, 1)
        for desk in desks:
            await desk.stop()

    world.play(script)


def test_a_responder_that_never_comes_back_is_given_up(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)

        async def hangs(burst: Burst) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

        desk = Desk(world, responder := Scripted(hangs), retries=1)
        hear(world, "hi")
        await world.wait(25 * MINUTE)
        assert len(responder.asked) == 2
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", "no answer within 10m")
        await desk.stop()

    world.play(script)
