"""What reviewers have found about conversations, each as small as it can be told."""

from __future__ import annotations

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Part, Target
from paceline.core.states import DeliveryState, TurnState
from paceline.engine import conversations
from paceline.engine.commands import returns, suppressions
from paceline.engine.commands.acknowledging import acknowledge
from paceline.engine.conversation_view import conversation_view
from paceline.engine.ports import Delivery, News, Receipt, Returned
from paceline.engine.ports.answering import Answer, Burst, ResponderRefused
from tests.engine.following_up import first_messages, first_to, outreach
from tests.engine.scenes import deliveries, events
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
from tests.engine.test_reporting import admitted, desk_of, reporting, take
from tests.engine.world import World

MAIL = "eva@example.com"


def kinds(world: World) -> list[str]:
    return [one.kind for one in world.read(lambda tx: tx.alerts.list())]


def told(world: World, *news: News) -> returns.TakenIn:
    account, now = world.account_now(), world.clock.now()

    def work(tx: returns.Tx) -> returns.TakenIn:
        returns.prepare(tx, news)
        return returns.take_in(tx, account, news, now)

    return world.write(work)


def failed(answer: Delivery, at: int) -> Receipt:
    return Receipt(answer.provider_id or "", "failed", at, "131047", "re-engagement")


# ---------------------------------------------------------------------- answers that come back


@pytest.mark.parametrize("how", ["a receipt", "a receipt among news", "a letter"])
@pytest.mark.parametrize("ended", [True, False])
def test_an_answer_that_comes_back_is_a_person_s_to_give(
    world: World, how: str, ended: bool
) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted()
        desk = Desk(world, responder)
        hear(world, "hello")
        await world.until(lambda: bool(deliveries(world)))
        if not ended:
            desk.answerer.stop()
        await world.until(lambda: deliveries(world)[0].state is DeliveryState.SENT)
        await world.wait(5 * SECOND)
        assert turns(world)[0].state is (TurnState.DONE if ended else TurnState.REPLYING)
        (answer,), account, now = deliveries(world), world.account_now(), world.clock.now()
        if how == "a receipt":
            world.write(lambda tx: acknowledge(tx, account, failed(answer, now), now))
        elif how == "a receipt among news":
            told(world, failed(answer, now))
        else:
            told(world, Returned("failed", EVA, "mailbox full", now, key=f"test-{answer.id}-0"))
        if not ended:
            await desk.stop()
            desk = Desk(world, responder, "two")
        await world.wait(MINUTE)
        assert deliveries(world)[0].state is DeliveryState.BOUNCED
        found = conversation(world)
        assert (found.mode, kinds(world)) == ("human", ["conversation.person"])
        assert found.reason.startswith("the answer is bounced: ")
        now = world.clock.now()
        world.write(lambda tx: conversations.hand_back(tx, found.id, now))
        await world.wait(MINUTE)
        assert said(world) == ["re: hello", "re: hello"], "what nobody has got is answered again"
        assert kinds(world) == []
        await desk.stop()

    world.play(script)


def test_an_answer_that_comes_back_from_whoever_opted_out_needs_nobody(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hello")
        await world.until(lambda: len(world.sends()) == 1)
        await world.wait(5 * SECOND)
        hear(world, "STOP")
        told(world, failed(deliveries(world)[0], world.clock.now()))
        await world.wait(MINUTE)
        assert deliveries(world)[0].state is DeliveryState.BOUNCED
        assert (conversation(world).mode, kinds(world)) == ("auto", [])
        await desk.stop()

    world.play(script)


def test_several_that_come_back_with_what_others_write_are_all_handed_over(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hello", chat=BEN)
        hear(world, "hello")
        await world.until(lambda: len(world.sends()) == 2)
        await world.wait(5 * SECOND)
        now = world.clock.now()
        message = returns.Inbound("more", EVA, EVA, "and?", now)
        told(world, message, *(failed(one, now) for one in deliveries(world)))
        assert [conversation(world, who).mode for who in (EVA, BEN)] == ["human", "human"]
        assert conversation(world).first_at == now, "what came with it waits for the person"
        await desk.stop()

    world.play(script)


def test_a_report_of_an_answer_that_comes_back_hands_it_over(world: World) -> None:
    reporting(world)

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hello")
        await world.until(lambda: len(world.sends()) == 1)
        await world.wait(5 * SECOND)
        reports = desk_of(world, desk.process)
        who = await admitted(world, reports)
        (answer,) = deliveries(world)
        assert await take(reports, who, failed(answer, 0)) == "taken"
        assert (conversation(world).mode, kinds(world)) == ("human", ["conversation.person"])
        await desk.stop()

    world.play(script)


def test_a_campaign_s_message_that_comes_back_leaves_conversations_alone(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.campaign(targets=[Target(EVA)])
        desk = Desk(world, Scripted())
        await first_messages(world, 1)
        hear(world, "hello")
        await world.wait(MINUTE)
        told(world, failed(first_to(world, EVA), world.clock.now()))
        await world.wait(MINUTE)
        assert first_to(world, EVA).state is DeliveryState.BOUNCED
        assert (conversation(world).mode, kinds(world)) == ("auto", [])
        await desk.stop()

    world.play(script)


# ---------------------------------------------------------------------- opting out, and complaining


@pytest.mark.parametrize("source", ["complaint", "bounce", "operator"])
def test_what_weighs_more_than_an_opt_out_is_not_taken_back_by_start(
    world: World, source: str
) -> None:
    async def script(world: World) -> None:
        process = outreach(world, names=(MAIL,), follow_up=None)
        await first_messages(world, 1)
        hear(world, "STOP", chat=MAIL)
        stopped_at = world.clock.now()
        await world.wait(MINUTE)
        now, key = world.clock.now(), f"test-{first_to(world, MAIL).id}-0"
        if source == "operator":
            assert not world.write(lambda tx: suppressions.add(tx, MAIL, "called us", now))
        else:
            kind = "bounced" if source == "bounce" else "complaint"
            taken = [told(world, Returned(kind, MAIL, "so", now, key=key)) for _ in range(2)]
            assert [one.complaints for one in taken] == [source == "complaint", 0]
        hear(world, "START", chat=MAIL)
        ((address, reason, by, at),) = world.read(lambda tx: tx.suppressions.list())
        assert (address, by, at) == (MAIL, source, stopped_at)
        assert reason == {"operator": "called us", "bounce": "so"}.get(source, "complained of spam")
        complained = source == "complaint"
        assert (len(events(world, "recipient.complained")), kinds(world)) == (
            (1, ["account.complaints"]) if complained else (0, [])
        )
        assert events(world, "recipient.opted_in") == []
        hear(world, "STOP", chat=MAIL)
        assert [one[2] for one in world.read(lambda tx: tx.suppressions.list())] == [source]
        await process.stop()

    world.play(script)


def test_a_list_of_the_unwanted_weighs_more_than_what_they_asked_for(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        hear(world, "STOP", chat=MAIL)
        await world.wait(MINUTE)
        rows = [suppressions.Unwanted(one, "on the list") for one in (MAIL, "new@example.com")]
        assert world.write(lambda tx: suppressions.take_in(tx, rows, world.clock.now())) == 1
        hear(world, "START", chat=MAIL)
        found = {one[0]: one[1:3] for one in world.read(lambda tx: tx.suppressions.list())}
        assert found == dict.fromkeys((MAIL, "new@example.com"), ("on the list", "import"))

    world.play(script)


# ---------------------------------------------------------------------- who answers, and when


@pytest.mark.parametrize(("count", "alerted"), [(11, True), (10, False)])
def test_many_that_were_left_are_told_also_after_a_quick_restart(
    world: World, count: int, alerted: bool
) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 300))
        one = Desk(world, responder)
        for number in range(count):
            hear(world, "hi", chat=f"+346001112{number:02}")
        await world.until(lambda: responder.at_once == count)
        await one.kill()
        await world.wait(3 * SECOND)
        two = Desk(world, Scripted(), "two")
        await world.until(lambda: len(world.sends()) == count)
        assert two.tally.stale_cleaned == count
        assert kinds(world) == (["turns.stale"] if alerted else [])
        await two.stop()

    world.play(script)


def test_what_is_left_long_after_the_start_is_not_of_the_start(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted(taking(world, 300))
        two = Desk(world, Scripted(), "two", at_once=0)
        one = Desk(world, responder)
        two.answerer._at_once = 20
        await world.wait(MINUTE)
        two.answerer._at_once = 0
        for number in range(11):
            hear(world, "hi", chat=f"+346001112{number:02}")
        await world.until(lambda: responder.at_once == 11)
        await one.kill()
        two.answerer._at_once = 20
        await world.until(lambda: len(world.sends()) == 11)
        assert (two.tally.stale_cleaned, kinds(world)) == (11, [])
        await two.stop()

    world.play(script)


def test_those_whom_nobody_here_can_answer_keep_nobody_waiting(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        answered(world, "bob", way="unknown here")
        for number in range(30):
            hear(world, "hi", chat=f"+346001112{number:02}", account="bob")
        await world.wait(SECOND)
        desk = Desk(world, Scripted())
        hear(world, "hello")
        await world.wait(MINUTE)
        assert said(world) == ["re: hello"]
        assert kinds(world) == [], "another process may know the way"
        await world.wait(6 * MINUTE)
        assert kinds(world) == ["conversation.person"] * 30
        await desk.stop()

    world.play(script)


def test_whoever_opts_out_needs_no_person_any_more(world: World) -> None:
    async def refuses(burst: Burst) -> Answer:
        raise ResponderRefused("no")

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(refuses))
        hear(world, "hi")
        await world.wait(MINUTE)
        assert kinds(world) == ["conversation.person"]
        hear(world, "STOP")
        assert kinds(world) == []
        await desk.stop()

    world.play(script)


def test_why_a_person_has_it_is_what_was_said(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.take(tx, number, now, "they asked for the boss"))
        assert conversation(world).reason == "they asked for the boss"

    world.play(script)


# ---------------------------------------------------------------------- what was said before


def test_whoever_answers_knows_all_that_the_account_has_said(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        answered(world, "bob")
        boots = (Part("text", "Our {{ what }} are here, {{ target }}!"),)
        world.campaign(targets=[Target(EVA, {"what": "boots"})], parts=boots)
        world.campaign(name="other", on=("bob",), targets=[Target(EVA)])
        responder = Scripted()
        desk = Desk(world, responder)
        await world.until(lambda: len(world.sends()) == 2)
        hear(world, "how much?")
        await world.until(lambda: len(world.sends()) == 3)
        await world.wait(5 * SECOND)
        found, now = conversation(world), world.clock.now()
        by_hand = "and shipping is {free}"
        world.write(lambda tx: conversations.reply(tx, found.id, by_hand, world.providers, now))
        await world.until(lambda: len(world.sends()) == 4)
        hear(world, "ok")
        await world.until(lambda: len(world.sends()) == 5)
        before = [
            ("us", f"Our boots are here, {EVA}!"),
            ("them", "how much?"),
            ("us", "re: how much?"),
            ("us", by_hand),
        ]
        assert [(one.by, one.text) for one in responder.asked[0].before] == before[:1]
        assert [(one.by, one.text) for one in responder.asked[1].before] == before
        await world.wait(5 * SECOND)
        seen = world.read(lambda tx: conversation_view(tx, found, 50))
        assert [(one.by, one.text, one.state) for one in seen] == [
            ("spring", f"Our boots are here, {EVA}!", "sent"),
            ("them", "how much?", ""),
            ("one", "re: how much?", "sent"),
            ("us", by_hand, "sent"),
            ("them", "ok", ""),
            ("one", "re: ok", "sent"),
        ]
        assert world.read(lambda tx: conversation_view(tx, found, 3)) == seen[-3:]
        await desk.stop()

    world.play(script)
