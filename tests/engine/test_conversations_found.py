"""What hostile readers have found about conversations, each as small as it can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Content, Target
from paceline.core.states import TurnState
from paceline.core.template import render
from paceline.engine import conversations
from paceline.engine.commands import accounts, erasing
from paceline.engine.conversation_view import conversation_view
from paceline.engine.ports import Capabilities
from paceline.engine.ports.answering import Answer, Burst, ResponderFailed
from paceline.providers.sandbox import SandboxProvider
from tests.engine.scenes import until
from tests.engine.talking import (
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
from tests.engine.test_opting_out import write
from tests.engine.world import World


def kinds(world: World) -> list[str]:
    return [one.kind for one in world.read(lambda tx: tx.alerts.list())]


def test_after_a_long_outage_several_processes_do_not_snatch_a_turn_from_each_other(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 3))
        one = Desk(world, responder)
        hear(world, "hi")
        await world.wait(9 * SECOND)
        await one.kill()
        await world.wait(11 * MINUTE)
        responder.asked.clear()
        desks = [Desk(world, responder, name) for name in ("two", "three")]
        await world.wait(10 * MINUTE)
        assert (len(responder.asked), said(world)) == (1, ["re: hi"])
        for desk in desks:
            await desk.stop()

    world.play(script)


@pytest.mark.parametrize(("takes_s", "again_s"), [(290, None), (1, 30)])
def test_what_takes_long_is_handed_over_in_the_end_by_whichever_process(
    world: World, takes_s: int, again_s: int | None
) -> None:
    async def script(world: World) -> None:
        answered(world)

        async def busy(burst: Burst) -> Answer:
            await world.clock.sleep(takes_s * SECOND)
            raise ResponderFailed("no answer", None if again_s is None else again_s * SECOND)

        responder = Scripted(busy)
        desks = [Desk(world, responder, name) for name in ("one", "two")]
        hear(world, "hi")
        await until(world, lambda: conversation(world).mode == "human", MINUTE, 3 * HOUR)
        asked = len(responder.asked)
        assert asked <= 40
        await world.wait(15 * MINUTE)
        assert len(responder.asked) == asked, "it is theirs from now on"
        assert kinds(world) == ["conversation.person"]
        for desk in desks:
            await desk.stop()

    world.play(script)


@pytest.mark.parametrize("back", [False, True])
def test_what_is_made_anew_takes_nothing_into_a_turn_that_was_called_off(
    world: World, back: bool
) -> None:
    async def script(world: World) -> None:
        answered(world, on_newer="redo")
        desk = Desk(world, Scripted(taking(world, 4)))
        hear(world, "one")
        await world.wait(10 * SECOND)
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.take(tx, number, now))
        if back:
            world.write(lambda tx: conversations.hand_back(tx, number, now))
        hear(world, "two")
        await world.wait(15 * MINUTE)
        assert said(world) == (["re: one\ntwo"] if back else [])
        assert (conversation(world).first_at is None) == back
        await desk.stop()

    world.play(script)


def test_whoever_was_erased_is_asked_about_no_more(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.campaign(targets=[Target(EVA)])
        responder = Scripted(taking(world, 30))
        one = Desk(world, responder)
        await world.wait(30 * SECOND)
        hear(world, "hi")
        await world.wait(12 * SECOND)
        world.write(lambda tx: erasing.erase(tx, EVA, world.clock.now()))
        await one.kill()
        responder.asked.clear()
        two = Desk(world, responder, "two")
        await world.wait(15 * MINUTE)
        assert responder.asked == []
        assert world.read(lambda tx: tx.turns.active()) == []
        await two.stop()

    world.play(script)


def test_a_responder_that_breaks_is_asked_once(world: World) -> None:
    async def bug(burst: Burst) -> Answer:
        raise ValueError("a secret of the responder's")

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(bug)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(15 * MINUTE)
        assert len(responder.asked) == 1
        assert conversation(world).reason == "answering failed: ValueError"
        await desk.stop()

    world.play(script)


def test_an_answer_in_doubt_is_waited_for_as_long_as_the_lane_looks_into_it(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        settings = {"lost_at": [1], "finds": True, "proves_absence": True}
        account = world.account_now()
        world.write(lambda tx: tx.accounts.update(account.id, settings=settings))
        desk = Desk(world, Scripted())
        hear(world, "hi")
        await world.wait(30 * MINUTE)
        assert said(world) == ["re: hi"]
        assert (conversation(world).mode, kinds(world)) == ("auto", [])
        assert [turn.state for turn in turns(world)] == [TurnState.DONE]
        await desk.stop()

    world.play(script)


def test_start_is_heard_like_any_other_word_and_swallows_nothing(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        write(world, "I want to join the course")
        write(world, "Alta")
        await world.wait(MINUTE)
        assert said(world) == ["re: I want to join the course\nAlta"]
        await desk.stop()

    world.play(script)


def test_whoever_cannot_be_written_to_for_another_reason_is_a_person_s_to_see_to(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        now = world.clock.now()
        world.write(lambda tx: tx.suppressions.add(EVA, "no such number", "bounce", now))
        desk = Desk(world, Scripted())
        hear(world, "where is my order?")
        await world.wait(MINUTE)
        assert (conversation(world).mode, kinds(world)) == ("human", ["conversation.person"])
        await desk.stop()

    world.play(script)


def test_an_answer_by_hand_after_a_failure_is_a_turn_and_what_failed_is_answered_in_it(
    world: World,
) -> None:
    async def never(burst: Burst) -> Answer:
        raise ResponderFailed("down")

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(never)
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(MINUTE)
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.reply(tx, number, "by hand", world.providers, now))
        await world.wait(MINUTE)
        found = conversation(world)
        seen = world.read(lambda tx: conversation_view(tx, found, 20))
        assert [(line.by, line.text) for line in seen] == [("them", "hi"), ("a person", "by hand")]
        responder.answers = echo
        now = world.clock.now()
        world.write(lambda tx: conversations.hand_back(tx, number, now))
        hear(world, "and then?")
        await world.wait(MINUTE)
        assert [one.text for one in responder.asked[-1].before] == ["hi", "by hand"]
        assert said(world) == ["by hand", "re: and then?"]
        await desk.stop()

    world.play(script)


@pytest.mark.parametrize("how", ["failed", "muted"])
def test_handed_back_nothing_is_left_unanswered(world: World, how: str) -> None:
    async def never(burst: Burst) -> Answer:
        raise ResponderFailed("down")

    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(never if how == "failed" else taking(world, 30))
        desk = Desk(world, responder)
        hear(world, "hi")
        await world.wait(MINUTE if how == "failed" else 12 * SECOND)
        number, now = conversation(world).id, world.clock.now()
        if how == "muted":
            world.write(lambda tx: conversations.mute(tx, number, now))
        responder.answers = echo
        world.write(lambda tx: conversations.hand_back(tx, number, now))
        await world.wait(2 * MINUTE)
        assert said(world) == ["re: hi"]
        await desk.stop()

    world.play(script)


def test_without_a_way_known_here_it_waits_for_one_that_knows_it_and_then_for_a_person(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        account = world.account_now()
        other = {**account.answering, "way": "elsewhere"}
        world.write(lambda tx: tx.accounts.update(account.id, answering=other))
        desk = Desk(world, Scripted())
        hear(world, "hi")
        await world.wait(4 * MINUTE)
        assert conversation(world).mode == "auto"
        await world.wait(4 * MINUTE)
        assert conversation(world).reason == "there is no way to answer called 'elsewhere' here"
        await desk.stop()

    world.play(script)


def test_a_letter_is_answered_by_a_letter_under_its_subject(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SandboxProvider.capabilities_of

    def letters_only(provider: SandboxProvider, settings: Mapping[str, Any]) -> Capabilities:
        return replace(whole(provider, settings), actions=frozenset({"email"}))

    monkeypatch.setattr(SandboxProvider, "capabilities_of", letters_only)

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hi", chat="eva@example.com", subject="Your {offer}")
        await world.wait(MINUTE)
        (sent,) = world.sends()
        assert sent.action == "email"
        (row,) = world.read(lambda tx: tx.deliveries.page())
        (part,) = Content.from_list(row.content or []).parts
        assert render(part.subject, {}) == "Re: Your {offer}"
        await desk.stop()

    world.play(script)


def test_a_number_that_was_given_to_another_account_is_not_answered_by_that_one(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(taking(world, 30)))
        hear(world, "hi")
        await world.wait(15 * SECOND)
        now = world.clock.now()
        world.write(lambda tx: accounts.remove(tx, "ann", now))
        world.account("ann")
        await world.wait(2 * MINUTE)
        assert world.sends() == []
        told = [one.text for one in world.read(lambda tx: tx.alerts.list())]
        assert told == [
            "conversation 1 with ann needs a person: the answer cannot be sent: "
            "account ann was removed"
        ]
        await desk.stop()

    world.play(script)
