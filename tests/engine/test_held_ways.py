"""A way to answer that answers nobody is held as a whole: nobody is asked, nothing is lost, and it
goes on by itself."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.states import TurnState
from paceline.engine import held_ways
from paceline.engine.conversations import Holder
from paceline.engine.ports.answering import Answer, Burst, ResponderFailed, ResponderRefused
from tests.engine.talking import (
    BEN,
    EVA,
    WAY,
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
from tests.engine.test_conversations import alerts_of
from tests.engine.world import World

BROKE = "no credit left"
SELDOM_US = 15 * SECOND
"""For stories of many hours."""


class Purse:
    """A responder that answers as long as there is money."""

    def __init__(self, *, empty: bool = True) -> None:
        self.empty = empty
        self.fails = False

    async def answer(self, burst: Burst) -> Answer:
        if self.empty:
            raise ResponderRefused(BROKE, everybody=True)
        if self.fails:
            raise ResponderFailed("the server is down")
        return await echo(burst)


def test_nobody_is_asked_while_it_is_held_and_all_are_answered_when_it_works(
    on_either: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        purse = Purse()
        responder = Scripted(purse.answer)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(20 * SECOND)
        assert len(responder.asked) == 1
        for number in range(30):
            hear(world, f"from {number}", chat=f"+3460000{number:04}")
        hear(world, "are you there?")
        await world.wait(30 * SECOND)
        assert len(responder.asked) == 1, "not one of them is asked about"
        found = conversation(world)
        assert (found.mode, found.due_at is not None) == ("auto", True)
        (told,) = world.read(lambda tx: tx.alerts.list())
        assert (told.kind, told.count) == ("responder.failing", 1)
        assert BROKE in told.text
        purse.empty = False
        await world.wait(3 * MINUTE)
        assert said(world) == ["re: hi\nare you there?"]
        assert len(world.sends()) == 31
        assert len(responder.asked) == 32
        assert world.read(lambda tx: tx.alerts.list()) == []
        assert [turn.state for turn in turns(world)] == [TurnState.DISCARDED, TurnState.DONE]
        await desk.stop()

    on_either.play(script)


@pytest.mark.usefixtures("calm")
def test_it_is_tried_again_by_one_question_after_growing_pauses(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder, asked_at = Scripted(Purse().answer), []
        began_at = world.clock.now()

        async def noted(burst: Burst) -> Answer:
            asked_at.append((world.clock.now() - began_at) // MINUTE)
            return await Purse().answer(burst)

        responder.answers = noted
        names = ("one", "two", "three")
        desks = [Desk(world, responder, name, look_every_us=SELDOM_US) for name in names]
        for chat in (EVA, BEN, "+34600555666"):
            hear(world, "hi", chat=chat)
        await world.wait(4 * HOUR)
        first = [at for at in asked_at if at == 0]
        assert 1 <= len(first) <= 3
        # After a minute, five, fifteen, half an hour, and every hour from then on.
        assert asked_at[len(first) :] == [1, 6, 21, 51, 111, 171, 231]
        (told,) = world.read(lambda tx: tx.alerts.list())
        assert told.kind == "responder.failing"
        for desk in desks:
            await desk.stop()

    world.play(script)


def test_of_two_who_would_try_it_at_once_one_does(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        hear(world, "hello", chat=BEN)
        await world.wait(20 * SECOND)
        now = world.clock.now()
        world.write(lambda tx: tx.held_ways.hold(WAY, BROKE, now, now))
        (held,) = world.read(lambda tx: tx.held_ways.list())
        tried = []
        for name, chat in (("one", EVA), ("two", BEN)):
            by, number = Holder(name, MINUTE, 0), conversation(world, chat).id
            work = partial(held_ways.try_with, held=held, conversation_id=number, by=by, at=now)
            tried.append(world.write(work))
        assert tried[0] is not None and tried[0].tries
        assert tried[1] is None
        assert turns(world, BEN) == []

    world.play(script)


def test_those_that_are_asked_at_the_same_time_hold_it_once(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        out = asyncio.Event()

        async def all_at_once(burst: Burst) -> Answer:
            await out.wait()
            raise ResponderRefused(BROKE, everybody=True)

        desk = Desk(world, responder := Scripted(all_at_once))
        for number in range(10):
            hear(world, "hi", chat=f"+3460000{number:04}")
        await world.wait(10 * SECOND)
        assert responder.at_once == 10
        out.set()
        await world.wait(20 * SECOND)
        (told,) = world.read(lambda tx: tx.alerts.list())
        assert told.count == 1
        assert len(responder.asked) == 10
        await desk.stop()

    world.play(script)


def test_whoever_is_about_to_be_asked_again_is_not(world: World) -> None:
    """One is between two tries when another finds the way shut."""

    async def script(world: World) -> None:
        answered(world)

        async def shut_to_ben(burst: Burst) -> Answer:
            if burst.chat == BEN:
                raise ResponderRefused(BROKE, everybody=True)
            raise ResponderFailed("busy", again_us=30 * SECOND)

        desk = Desk(world, responder := Scripted(shut_to_ben))
        hear(world, "hi")
        await world.wait(10 * SECOND)
        hear(world, "hi", chat=BEN)
        await world.wait(45 * SECOND)
        assert [burst.chat for burst in responder.asked] == [EVA, BEN]
        assert conversation(world).mode == "auto"
        await desk.stop()

    world.play(script)


def test_a_turn_that_was_left_waits_as_well(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        one = Desk(world, Scripted(taking(world, 40)))
        hear(world, "hi")
        await world.wait(15 * SECOND)
        await one.kill()
        now = world.clock.now()
        world.write(lambda tx: tx.held_ways.hold(WAY, BROKE, now, now + HOUR))
        two = Desk(world, responder := Scripted(), "two")
        await world.wait(MINUTE)
        assert responder.asked == []
        world.write(lambda tx: held_ways.release(tx, WAY, world.clock.now()))
        await world.wait(10 * SECOND)
        assert said(world) == ["re: hi"]
        await two.stop()

    world.play(script)


def test_a_person_lets_it_go_on_at_once(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        purse = Purse()
        desk = Desk(world, Scripted(purse.answer))
        hear(world, "hi")
        await world.wait(20 * SECOND)
        purse.empty = False
        now = world.clock.now()
        assert world.write(lambda tx: held_ways.release(tx, WAY, now)) is not None
        assert world.write(lambda tx: held_ways.release(tx, WAY, now)) is None
        await world.wait(5 * SECOND)
        assert said(world) == ["re: hi"]
        assert alerts_of(world, "responder.failing") == []
        await desk.stop()

    world.play(script)


def test_a_try_that_fails_for_another_reason_lets_nobody_else_be_asked(world: World) -> None:
    """The one it was tried with is a person's then, as always, and the next try is with another."""

    async def script(world: World) -> None:
        answered(world)
        purse = Purse()
        desk = Desk(world, responder := Scripted(purse.answer), retries=1)
        hear(world, "hi")
        hear(world, "hello", chat=BEN)
        await world.wait(20 * SECOND)
        purse.empty, purse.fails, before = False, True, len(responder.asked)
        await world.wait(2 * MINUTE)
        assert [burst.chat for burst in responder.asked[before:]] == [EVA, EVA]
        assert conversation(world).mode == "human"
        assert conversation(world, BEN).mode == "auto"
        purse.fails = False
        await world.wait(6 * MINUTE)
        assert said(world, BEN) == ["re: hello"]
        await desk.stop()

    world.play(script)


def test_a_question_that_is_refused_for_itself_shows_that_it_works(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        shut = [True]

        async def not_eva(burst: Burst) -> Answer:
            if shut[0] or burst.chat == EVA:
                raise ResponderRefused("not a word", everybody=shut[0])
            return await echo(burst)

        desk = Desk(world, Scripted(not_eva))
        hear(world, "hi")
        await world.wait(SECOND)
        hear(world, "hello", chat=BEN)
        await world.wait(20 * SECOND)
        shut[0] = False
        await world.wait(2 * MINUTE)
        assert conversation(world).mode == "human"
        assert said(world, BEN) == ["re: hello"]
        await desk.stop()

    world.play(script)


@pytest.mark.usefixtures("calm")
def test_who_has_waited_for_nearly_a_day_is_a_person_s(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(Purse().answer), look_every_us=MINUTE)
        hear(world, "hi")
        await world.wait(12 * HOUR)
        hear(world, "hello", chat=BEN)
        await world.wait(10 * HOUR + 59 * MINUTE)
        assert conversation(world).mode == "auto"
        await world.wait(3 * MINUTE)
        found = conversation(world)
        reason = f"nobody was answered by sales for 23h: {BROKE}"
        assert (found.mode, found.reason) == ("human", reason)
        assert alerts_of(world, "conversation.person") == [
            f"conversation {found.id} with ann needs a person: {reason}"
        ]
        assert conversation(world, BEN).mode == "auto"
        await desk.stop()

    world.play(script)


def test_a_process_that_dies_while_it_tries_costs_one_pause(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        purse = Purse()

        async def slow_when_paid(burst: Burst) -> Answer:
            if not purse.empty:
                await world.clock.sleep(30 * SECOND)
            return await purse.answer(burst)

        one = Desk(world, Scripted(slow_when_paid))
        hear(world, "hi")
        await world.wait(20 * SECOND)
        purse.empty = False
        await world.wait(MINUTE)
        await one.kill()
        two = Desk(world, responder := Scripted(purse.answer), "two")
        await world.wait(2 * MINUTE)
        assert responder.asked == []
        await world.wait(5 * MINUTE)
        assert said(world) == ["re: hi"]
        await two.stop()

    world.play(script)


@pytest.mark.usefixtures("calm")
def test_one_that_nobody_has_any_more_holds_nobody_back(on_either: World) -> None:
    """Whoever looks after it has taken it out of the settings instead of paying."""

    async def script(world: World) -> None:
        answered(world)
        before = Desk(world, Scripted(Purse().answer))
        hear(world, "hi")
        await world.wait(20 * SECOND)
        await before.stop()
        assert [one.way for one in world.read(lambda tx: tx.held_ways.list())] == [WAY]
        after = Desk(world, Scripted(), "two", look_every_us=SELDOM_US)
        after.answerer._ways.clear()
        await world.wait(5 * MINUTE)
        assert conversation(world).mode == "auto", "another process may know it, and tries it"
        await world.wait(3 * MINUTE)
        assert conversation(world).mode == "human"
        await after.stop()

    on_either.play(script)


def test_a_try_takes_the_room_of_one(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        purse = Purse()
        responder = Scripted(purse.answer)
        desk = Desk(world, responder, at_once=3)
        for number in range(8):
            hear(world, "hi", chat=f"+3460000{number:04}")
        await world.wait(20 * SECOND)
        responder.most_at_once = 0
        purse.empty = False
        await world.wait(5 * MINUTE)
        assert len(world.sends()) == 8
        assert responder.most_at_once <= 3
        assert not desk.answerer._answering
        await desk.stop()

    world.play(script)
