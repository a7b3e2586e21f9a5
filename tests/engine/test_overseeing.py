"""What operators are told of conversations as a whole, and that it ends by itself."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine import alerts
from paceline.engine.commands import accounts
from paceline.engine.overseeing import Overseer
from paceline.engine.ports.answering import Answer, Burst, ResponderRefused
from paceline.engine.talk_tally import TalkTally
from tests.engine.talking import BEN, EVA, Desk, Scripted, answered, echo, hear, said, taking, turns
from tests.engine.world import World


def open_alerts(world: World) -> dict[str, Any]:
    return {one.kind: one for one in world.read(lambda tx: tx.alerts.list())}


def overseen(world: World, desk: Desk) -> Overseer:
    return Overseer(desk.process.journal, world.clock, desk.tally)


def test_a_conversation_that_is_held_for_long_is_told_of_once_until_it_is_over(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 400)), give_up_us=9 * MINUTE)
        overseer = overseen(world, desk)
        hear(world, "hi")
        hear(world, "hello", chat=BEN)
        await world.wait(4 * MINUTE)
        await overseer.look()
        assert open_alerts(world) == {}
        for _ in range(3):
            await world.wait(30 * SECOND)
            await overseer.look()
        await world.wait(10 * SECOND)
        await overseer.look()
        (told,) = open_alerts(world).values()
        assert (told.kind, told.count) == ("turns.held", 1)
        assert told.text == (
            "conversation 1 is being answered since 2026-03-02 09:00 UTC by one (and 1 more): "
            "whoever answers may be stuck; see: paceline locks"
        )
        await world.wait(5 * MINUTE)
        await overseer.look()
        assert open_alerts(world) == {}
        await desk.stop()

    world.play(script)


def test_an_answer_that_is_not_sent_for_long_is_told_of_as_well(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        desk = Desk(world, Scripted())
        overseer = overseen(world, desk)
        hear(world, "hi")
        await world.wait(6 * MINUTE)
        await overseer.look()
        assert "has an answer on its way since" in open_alerts(world)["turns.held"].text
        await desk.stop()

    world.play(script)


def test_more_than_half_that_meet_an_answer_in_the_making(world: World) -> None:
    """Twenty messages within ten minutes are enough to say so."""

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 50)))
        overseer = overseen(world, desk)
        for number in range(9):
            hear(world, "first", chat=f"+3460000000{number}")
        await world.wait(20 * SECOND)
        for number in range(9):
            hear(world, "second", chat=f"+3460000000{number}")
        await overseer.look()
        assert open_alerts(world) == {}, "eighteen are too few to say anything"
        hear(world, "third", chat="+34600000000")
        hear(world, "third", chat="+34600000001")
        for _ in range(3):
            await overseer.look()
        told = open_alerts(world)["turns.busy"]
        assert (told.count, told.text) == (
            1,
            "11 of the last 20 messages came while their conversation was being answered: "
            "more processes may be needed, or whoever answers is slow",
        )
        await world.wait(11 * MINUTE)
        await overseer.look()
        assert open_alerts(world) == {}
        await desk.stop()

    world.play(script)


def test_half_of_them_is_not_more_than_half(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 50)))
        overseer = overseen(world, desk)
        for text in ("first", "second"):
            for number in range(10):
                hear(world, text, chat=f"+3460000000{number}")
            await world.wait(20 * SECOND)
        await overseer.look()
        assert open_alerts(world) == {}
        await desk.stop()

    world.play(script)


@pytest.mark.parametrize(("count", "told"), [(11, ["turns.stale"]), (10, [])])
def test_more_than_ten_half_made_answers_at_a_start_are_told_of(
    world: World, count: int, told: list[str]
) -> None:
    async def script(world: World) -> None:
        answered(world)
        one = Desk(world, Scripted(taking(world, 300)))
        for number in range(count):
            hear(world, "hi", chat=f"+3460000{number:04}")
        await world.wait(12 * SECOND)
        await one.kill()
        await world.wait(MINUTE)
        two = Desk(world, Scripted(), "two")
        await world.wait(SECOND)
        assert list(open_alerts(world)) == told
        assert two.tally.stale_cleaned == count
        await two.stop()

    world.play(script)


def test_a_responder_that_answers_again_is_told_of_no_more(world: World) -> None:
    async def broke(burst: Burst) -> Answer:
        raise ResponderRefused("no credit left", everybody=True)

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(broke)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(MINUTE)
        assert "responder.failing" in open_alerts(world)
        responder.answers = echo
        hear(world, "hello", chat=BEN)
        await world.wait(MINUTE)
        assert (said(world), said(world, BEN)) == (["re: hi"], ["re: hello"])
        assert open_alerts(world) == {}
        await desk.stop()

    world.play(script)


def test_what_is_counted(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted()
        desk = Desk(world, responder)
        overseer = overseen(world, desk)
        hear(world, "hi", at=world.clock.now())
        await world.wait(MINUTE)
        responder.answers = taking(world, 30)
        hear(world, "and now?", at=world.clock.now())
        hear(world, "nobody", chat=BEN)
        await world.wait(12 * SECOND)
        hear(world, "more")
        await overseer.look()
        tally: TalkTally = desk.tally
        assert tally.answers == {("sales", "answered"): 1}
        assert (sum(tally.took.counts), 8 <= tally.took.total <= 10) == (1, True)
        assert tally.acquired == 3
        assert tally.turns == {"thinking": 2, "replying": 0}
        assert (tally.waiting, tally.oldest_s) == ({"auto": 1}, {"auto": 0.0})
        assert [turn.state for turn in turns(world, EVA)] == ["done", "thinking"]
        await desk.stop()

    world.play(script)


def test_processes_that_no_longer_end_are_forgotten_after_an_hour(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        now = world.clock.now()
        world.write(lambda tx: alerts.many_left_behind(tx, 10, now))
        assert world.write(lambda tx: alerts.clear_quiet(tx, now + HOUR - SECOND)) == 0
        (kind,) = world.read(lambda tx: tx.alerts.kinds())
        assert alerts.some_quiet(kind, now + HOUR)
        assert world.write(lambda tx: alerts.clear_quiet(tx, now + HOUR)) == 1

    world.play(script)
