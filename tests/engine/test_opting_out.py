"""Opting out by a message, and in again."""

from __future__ import annotations

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Target
from paceline.core.states import DeliveryState
from paceline.engine import conversations
from paceline.engine.calling_off import REASON
from paceline.engine.commands import accounts, returns
from paceline.engine.commands.returns import TakenIn
from paceline.engine.ports import Inbound, Tx
from tests.engine.scenes import events
from tests.engine.talking import EVA, Desk, Scripted, answered, conversation, hear, taking, turns
from tests.engine.world import World


def write(world: World, text: str, *, chat: str = EVA, **more: bool) -> None:
    """As whoever takes it in does it: what passes the fence holds people first."""
    account, now = world.account_now(), world.clock.now()
    news = [Inbound(f"{text}-{now}", chat, chat, text, 0, **more)]

    def work(tx: Tx) -> TakenIn:
        returns.prepare(tx, news)
        return returns.take_in(tx, account, news, now)

    world.write(work)


def test_stop_suppresses_at_once_and_calls_off_what_waits(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.account("bea")
        people = [Target(EVA), Target("+34600999888")]
        for name, account in (("spring", "ann"), ("summer", "bea")):
            world.campaign(name=name, on=(account,), targets=people)
        write(world, "Stop!")
        assert world.read(lambda tx: tx.suppressions.covers(EVA))
        desk = Desk(world, Scripted())
        await world.wait(MINUTE)
        await desk.stop()
        assert {effect.target for effect in world.sends()} == {"+34600999888"}
        rows = world.read(lambda tx: tx.deliveries.page())
        theirs = [(row.state, row.reason) for row in rows if row.target == EVA]
        assert theirs == [("cancelled", "asked not to be written to")] * 2
        assert world.state("spring") == "finished"
        assert len(events(world, "recipient.opted_out")) == 1

    world.play(script)


def test_it_is_not_answered_nor_is_what_came_before_it(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 30)))
        write(world, "Who are you?")
        await world.wait(15 * SECOND)
        write(world, "Leave me alone")
        write(world, "STOP")
        await world.wait(5 * MINUTE)
        assert world.sends() == []
        assert [turn.state for turn in turns(world)] == ["discarded", "done"]
        await desk.stop()

    world.play(script)


def test_start_reverses_it_and_only_that(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        write(world, "stop")
        write(world, "START")
        assert not world.read(lambda tx: tx.suppressions.covers(EVA))
        assert len(events(world, "recipient.opted_in")) == 1
        now = world.clock.now()
        world.write(lambda tx: tx.suppressions.add(EVA, "no such number", "bounce", now))
        write(world, "start")
        assert world.read(lambda tx: tx.suppressions.covers(EVA)), "a bounce is no wish of theirs"

    world.play(script)


@pytest.mark.parametrize("who", ["from_us", "automatic", "group"])
def test_nobody_else_can_ask_for_it(world: World, who: str) -> None:
    async def script(world: World) -> None:
        answered(world)
        write(world, "stop", **{who: True})
        assert not world.read(lambda tx: tx.suppressions.covers(EVA))

    world.play(script)


def test_an_answer_that_waits_for_whoever_had_opted_out_elsewhere_is_called_off(
    world: World,
) -> None:
    """They are suppressed already, and want to be written to again before anybody looks at it."""

    async def script(world: World) -> None:
        answered(world)
        answered(world, "ben")
        hear(world, "STOP", account="ben")
        hear(world, "hi")
        number = conversation(world).id
        answer = world.write(
            lambda tx: conversations.reply(tx, number, "hello", world.providers, world.clock.now())
        )
        hear(world, "stop")
        hear(world, "START")
        row = world.read(lambda tx: tx.deliveries.get(answer))
        assert (row.state, row.reason) == (DeliveryState.CANCELLED, REASON)

    world.play(script)


def test_asked_for_twice_it_is_told_once(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        write(world, "stop")
        hear(world, "hello again")
        await world.wait(SECOND)
        write(world, "STOP")
        assert len(events(world, "recipient.opted_out")) == 1

    world.play(script)


def test_an_answer_that_waits_is_called_off_and_no_person_is_asked_for(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        desk = Desk(world, Scripted())
        write(world, "Who are you?")
        await world.wait(MINUTE)
        write(world, "STOP")
        await world.wait(MINUTE)
        (turn,) = turns(world)
        assert (turn.state, conversation(world).mode) == ("done", "auto")
        taken = world.read(lambda tx: tx.turns.taken(turn.id))
        assert [one.text for one in taken] == ["Who are you?", "STOP"]
        told = [one.kind for one in world.read(lambda tx: tx.alerts.list())]
        assert "conversation.person" not in told
        await desk.stop()

    world.play(script)
