"""Conversations: bursts, turns, one answer each, whatever happens to processes and people."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.states import TurnState
from paceline.engine.ports.answering import Answer, Burst, ResponderFailed, ResponderRefused
from tests.engine.scenes import change, send_direct
from tests.engine.talking import (
    BEN,
    EVA,
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


def alerts_of(world: World, kind: str) -> list[str]:
    return [one.text for one in world.read(lambda tx: tx.alerts.list()) if one.kind == kind]


# ---------------------------------------------------------------------- bursts


def test_a_burst_is_answered_once_when_they_have_paused(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted()
        desk = Desk(world, responder)
        began_at = world.clock.now()
        for text in ("Hello", "I would like", "to book a table"):
            hear(world, text)
            await world.wait(2 * SECOND)
        await world.wait(MINUTE)
        assert said(world) == ["re: Hello\nI would like\nto book a table"]
        (sent,) = world.sends()
        # The last came after four seconds, and nothing for eight.
        assert 12 * SECOND <= sent.called_at - began_at <= 14 * SECOND
        assert [turn.state for turn in turns(world)] == [TurnState.DONE]
        await desk.stop()

    world.play(script)


def test_whoever_never_pauses_is_answered_after_the_longest_wait(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        began_at = world.clock.now()
        for number in range(20):
            hear(world, str(number))
            await world.wait(5 * SECOND)
        await world.wait(MINUTE)
        first, _ = world.sends()
        assert 65 * SECOND <= first.called_at - began_at <= 67 * SECOND
        assert said(world)[0].split() == ["re:", *(str(number) for number in range(14))]
        assert said(world)[1].split() == ["re:", *(str(number) for number in range(14, 20))]
        await desk.stop()

    world.play(script)


def test_what_is_written_first_comes_first_however_reports_overtake_each_other(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        now = world.clock.now()
        hear(world, "second", at=now - SECOND)
        hear(world, "first", at=now - 2 * SECOND)
        await world.wait(MINUTE)
        assert said(world) == ["re: first\nsecond"]
        await desk.stop()

    world.play(script)


def test_the_same_report_twice_is_one_message(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        for _ in range(3):
            hear(world, "once", provider_id="wamid.1")
            await world.wait(20 * SECOND)
        assert said(world) == ["re: once"]
        await desk.stop()

    world.play(script)


def test_different_people_are_answered_at_the_same_time(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 30))
        desk = Desk(world, responder, at_once=3)
        for number in range(5):
            hear(world, "hi", chat=f"+3460000000{number}")
        await world.wait(20 * SECOND)
        assert (responder.at_once, responder.most_at_once) == (3, 3)
        await world.wait(2 * MINUTE)
        assert len(world.sends()) == 5
        await desk.stop()

    world.play(script)


def test_machines_and_groups_and_ourselves_are_not_answered(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "I am away", automatic=True)
        hear(world, "all of you", group=True)
        hear(world, "said on the phone", from_us=True)
        await world.wait(5 * MINUTE)
        assert world.sends() == []
        await desk.stop()

    world.play(script)


def test_an_answer_says_exactly_what_it_says(world: World) -> None:
    async def braces(burst: Burst) -> Answer:
        return Answer("{{ target }} {% raw %} {# no #} {'a': 1}")

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(braces)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(MINUTE)
        hear(world, "again")
        await world.wait(MINUTE)
        assert len(world.sends()) == 2
        assert [one.text for one in responder.asked[1].before] == [
            "hi",
            "{{ target }} {% raw %} {# no #} {'a': 1}",
        ]
        await desk.stop()

    world.play(script)


def test_an_answer_waits_for_no_single_message_that_waits_for_its_hours(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        change(world, overrides={"hours": "Mon-Fri 14:00-18:00 UTC", "spacing": "5m"})
        send_direct(world, BEN)
        desk = Desk(world, Scripted())
        hear(world, "hi")
        await world.wait(MINUTE)
        assert [effect.target for effect in world.sends()] == [EVA]
        await desk.stop()

    world.play(script)


# ---------------------------------------------------------------------- turns


def test_what_comes_meanwhile_waits_for_the_next_turn(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 60))
        desk = Desk(world, responder)
        hear(world, "one")
        await world.wait(20 * SECOND)
        hear(world, "two")
        await world.wait(30 * SECOND)
        assert responder.at_once == 1
        assert conversation(world).first_at is not None
        await world.wait(5 * MINUTE)
        assert said(world) == ["re: one", "re: two"]
        assert [(one.by, one.text) for one in responder.asked[1].before] == [
            ("them", "one"),
            ("us", "re: one"),
        ]
        await desk.stop()

    world.play(script)


def test_or_the_answer_is_made_anew_for_all_of_it(world: World) -> None:
    async def script(world: World) -> None:
        answered(world, on_newer="redo")
        responder = Scripted(taking(world, 60))
        desk = Desk(world, responder)
        hear(world, "one")
        await world.wait(20 * SECOND)
        hear(world, "two")
        await world.wait(5 * MINUTE)
        assert said(world) == ["re: one\ntwo"]
        assert len(responder.asked) == 2
        assert responder.asked[0].key == responder.asked[1].key
        await desk.stop()

    world.play(script)


def test_two_processes_answer_once(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 5))
        desks = [Desk(world, responder, name) for name in ("one", "two", "three")]
        for text in ("a", "b", "c"):
            hear(world, text)
            hear(world, text, chat=BEN)
            await world.wait(MINUTE)
        assert said(world) == said(world, BEN) == ["re: a", "re: b", "re: c"]
        assert len(responder.asked) == 6
        for desk in desks:
            await desk.stop()

    world.play(script)


@pytest.mark.parametrize("after_s", [8.6, 20, 38.7])
def test_a_turn_that_was_left_is_gone_on_with(world: World, after_s: float) -> None:
    """Whether its process dies while it has just begun, in the middle, or about when it answers."""

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 30))
        one = Desk(world, responder)
        hear(world, "hi")
        await world.wait(int(after_s * SECOND))
        await one.kill()
        hear(world, "are you there?")
        two = Desk(world, responder, "two")
        await world.wait(5 * MINUTE)
        whole = "\n".join(said(world))
        assert whole.count("hi") == 1
        assert whole.count("are you there?") == 1
        assert [turn.state for turn in turns(world)] == [TurnState.DONE] * 2
        await two.stop()

    world.play(script)


def test_who_has_lost_a_turn_says_nothing(world: World) -> None:
    """Its answer comes when somebody else has gone on with the turn."""

    async def script(world: World) -> None:
        answered(world)
        late = asyncio.Event()

        async def stuck(burst: Burst) -> Answer:
            await late.wait()
            return Answer("late")

        one = Desk(world, Scripted(stuck))
        hear(world, "hi")
        await world.wait(15 * SECOND)
        (turn,) = turns(world)
        now = world.clock.now()
        lease = 20 * SECOND
        world.write(lambda tx: tx.turns.take_over(turn, "elsewhere", lease, now, 0))
        late.set()
        await world.wait(10 * SECOND)
        assert world.sends() == []
        await one.stop()
        two = Desk(world, Scripted(), "two")
        await world.wait(MINUTE)
        assert said(world) == ["re: hi"]
        await two.stop()

    world.play(script)


# ---------------------------------------------------------------------- when no answer comes


def test_what_fails_is_tried_again_and_answered_once(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        failures = [ResponderFailed("busy", again_us=20 * SECOND), ResponderFailed("no answer")]

        async def at_last(burst: Burst) -> Answer:
            if failures:
                raise failures.pop(0)
            return await echo(burst)

        desk = Desk(world, Scripted(at_last))
        hear(world, "hi")
        await world.wait(2 * MINUTE)
        assert said(world) == ["re: hi"]
        await desk.stop()

    world.play(script)


def test_after_its_retries_a_person_has_to(world: World) -> None:
    async def never(burst: Burst) -> Answer:
        raise ResponderFailed("the service is down")

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(never)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(MINUTE)
        assert len(responder.asked) == 3
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", "the service is down")
        assert alerts_of(world, "conversation.person") == [
            f"conversation {found.id} with ann needs a person: the service is down"
        ]
        hear(world, "hello?")
        await world.wait(MINUTE)
        assert len(responder.asked) == 3, "people answer from here on"
        await desk.stop()

    world.play(script)


def test_no_credit_is_told_of_as_what_it_is(world: World) -> None:
    async def broke(burst: Burst) -> Answer:
        raise ResponderRefused("no credit left", everybody=True)

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(broke)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(MINUTE)
        assert len(responder.asked) == 1
        assert alerts_of(world, "responder.failing") == [
            "nobody is answered by sales, and what they write waits: no credit left"
        ]
        await desk.stop()

    world.play(script)


def test_an_answer_that_cannot_be_delivered_is_a_person_s_to_see_to(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.write(
            lambda tx: tx.accounts.update(world.account_now().id, settings={"reject_at": [1]})
        )
        desk = Desk(world, Scripted())
        hear(world, "hi")
        await world.wait(2 * MINUTE)
        assert conversation(world).reason == "the answer is failed: the message is refused"
        assert [turn.state for turn in turns(world)] == [TurnState.HANDED]
        await desk.stop()

    world.play(script)


def test_nothing_to_say_is_an_answer_as_well(world: World) -> None:
    async def nothing(burst: Burst) -> Answer:
        return Answer("  ", note="no rule")

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(nothing))
        hear(world, "hi")
        await world.wait(MINUTE)
        assert world.sends() == []
        assert [(turn.state, turn.reason) for turn in turns(world)] == [(TurnState.DONE, "no rule")]
        await desk.stop()

    world.play(script)
