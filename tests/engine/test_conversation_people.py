"""People in conversations: they take them, answer, hand them back, and are waited for."""

from __future__ import annotations

from functools import partial

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import MINUTE, SECOND
from paceline.core.states import TurnState
from paceline.engine import conversations, handing_back
from paceline.engine.ports.answering import Answer, Burst, ResponderFailed
from tests.engine.talking import (
    BEN,
    EVA,
    Desk,
    Scripted,
    answered,
    conversation,
    hear,
    said,
    taking,
    turns,
)
from tests.engine.world import World


def test_taken_by_a_person_what_was_being_made_is_not_sent(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 30)))
        hear(world, "hi")
        await world.wait(20 * SECOND)
        number, now = conversation(world).id, world.clock.now()
        assert world.write(lambda tx: conversations.take(tx, number, now)) is not None
        await world.wait(2 * MINUTE)
        assert world.sends() == []
        assert conversation(world).first_at is not None, "it waits for the person"
        now = world.clock.now()
        world.write(
            lambda tx: conversations.reply(tx, number, "Good day {name}", world.providers, now)
        )
        await world.wait(MINUTE)
        assert len(world.sends()) == 1
        assert [turn.owner for turn in turns(world)] == ["one", "a person"]
        assert [turn.state for turn in turns(world)] == [TurnState.DISCARDED, TurnState.DONE]
        assert conversation(world).first_at is None
        await desk.stop()

    world.play(script)


def test_handed_back_what_waits_is_answered(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.take(tx, number, now))
        with pytest.raises(ConflictError, match="is with a person already"):
            world.write(lambda tx: conversations.take(tx, number, now))
        await world.wait(15 * MINUTE)
        assert world.sends() == []
        now = world.clock.now()
        world.write(lambda tx: conversations.hand_back(tx, number, now))
        await world.wait(10 * SECOND)
        assert said(world) == ["re: hi"]
        await desk.stop()

    world.play(script)


def test_whom_a_person_answers_is_not_handed_back_with_all_the_others(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)

        async def fails(burst: Burst) -> Answer:
            raise ResponderFailed("the server is down")

        desk = Desk(world, Scripted(fails), retries=0)
        for chat in (EVA, BEN):
            hear(world, "hi", chat=chat)
        await world.until(lambda: conversation(world, BEN).mode == "human", 5 * MINUTE)
        await world.until(lambda: conversation(world).mode == "human", 5 * MINUTE)
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.reply(tx, number, "Hello", world.providers, now))
        left = world.read(handing_back.handed_over)
        assert [one.chat for one in left] == [BEN]
        both = [number, *(one.id for one in left)]
        assert world.write(lambda tx: handing_back.hand_back(tx, both, now)) == 1
        assert conversation(world).mode == "human"
        await desk.stop()

    world.play(script)


def test_a_person_waits_for_an_answer_that_is_being_made(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 30)))
        hear(world, "hi")
        await world.wait(20 * SECOND)
        number, now = conversation(world).id, world.clock.now()
        with pytest.raises(ConflictError, match="another answer is being made"):
            world.write(lambda tx: conversations.reply(tx, number, "no", world.providers, now))
        await world.wait(MINUTE)
        assert said(world) == ["re: hi"]
        await desk.stop()

    world.play(script)


def test_muted_nobody_answers(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.mute(tx, number, now))
        hear(world, "hello?")
        await world.wait(15 * MINUTE)
        assert world.sends() == []
        await desk.stop()

    world.play(script)


def test_whoever_types_is_waited_for(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hi")
        account, began_at = world.account_now(), world.clock.now()
        for _ in range(4):
            await world.wait(6 * SECOND)
            at = world.clock.now()
            world.write(partial(conversations.typing, account=account, chat=EVA, at=at))
        await world.wait(MINUTE)
        (sent,) = world.sends()
        assert 32 * SECOND <= sent.called_at - began_at <= 34 * SECOND
        await desk.stop()

    world.play(script)
