"""Whoever opts out is told so once, if that is configured, and nothing else passes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.core.model import Content, Target
from paceline.core.opting_out import DEFAULT
from paceline.core.opting_out_settings import Confirmation, OptingOut
from paceline.core.states import DeliveryState
from paceline.core.template import render
from paceline.engine.commands import accounts, campaigns, erasing, returns
from paceline.engine.commands.returns import TakenIn
from paceline.engine.confirming import Confirming, words_of
from paceline.engine.conversation_view import conversation_view
from paceline.engine.ports import Capabilities, Delivery, Inbound, Tx
from paceline.engine.unsubscribing import Links, UnsubscribeDesk
from paceline.engine.verify import verify
from paceline.providers.sandbox import SandboxProvider
from tests.engine.scenes import change, events
from tests.engine.talking import EVA, answered, conversation
from tests.engine.world import World

HEARD = "You will hear no more from us. Write START to change that."
LINKS = Links("https://mail.example.com", b"k" * 32)


def confirming(world: World, text: str = HEARD, *, links: bool = False) -> Confirming:
    return words_of(OptingOut(DEFAULT, Confirmation(text, links=links)), world.providers)


def write(world: World, text: str, words: Confirming, chat: str = EVA, **more: Any) -> None:
    account, now = world.account_now(), world.clock.now()
    news = [
        Inbound(
            more.pop("name", f"{text}-{chat}-{now}"),
            chat,
            more.pop("sender", chat),
            text,
            0,
            **more,
        )
    ]

    def work(tx: Tx) -> TakenIn:
        returns.prepare(tx, news, words)
        return returns.take_in(tx, account, news, now, words)

    world.write(work)


def short(monkeypatch: pytest.MonkeyPatch, **able: Any) -> None:
    """Accounts of the sandbox can do no more than this."""
    whole = SandboxProvider.capabilities_of

    def less(provider: SandboxProvider, settings: Mapping[str, Any]) -> Capabilities:
        return replace(whole(provider, settings), **able)

    monkeypatch.setattr(SandboxProvider, "capabilities_of", less)


def told(world: World) -> list[Delivery]:
    rows = world.read(lambda tx: tx.deliveries.page(limit=1_000))
    return [row for row in rows if row.content and row.content[0]["text"] == HEARD]


def test_they_are_told_once_however_often_they_say_it(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        world.campaign(targets=[Target(EVA), Target("+34600999888")])
        process = world.process()
        for _ in range(3):
            write(world, "STOP", words, name="the same report")
            write(world, "stop!", words)
            await world.wait(MINUTE)
        await process.stop()
        (one,) = told(world)
        assert (one.state, one.reply, one.target) == (DeliveryState.SENT, True, EVA)
        assert [effect.target for effect in world.sends()].count(EVA) == 1
        rows = world.read(lambda tx: tx.ledger.of_delivery(one.id))
        assert {row.action for row in rows} == {"reply"}
        assert len(events(world, "recipient.opted_out")) == 1

    world.play(script)


def test_nothing_else_passes_to_them(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        write(world, "STOP", words)
        process = world.process()
        await world.wait(MINUTE)
        now = world.clock.now()
        world.campaign(targets=[Target(EVA)])
        message = campaigns.DirectMessage(
            "ann", EVA, Content.from_list(told(world)[0].content or [])
        )
        world.write(lambda tx: campaigns.send_message(tx, message, now, world.providers))
        world.write(
            lambda tx: campaigns.send_message(
                tx, replace(message, reply=True), now, world.providers
            )
        )
        await world.wait(5 * MINUTE)
        await process.stop()
        assert len(world.sends()) == 1
        assert sorted(row.state for row in told(world)) == ["sent", "skipped", "skipped"]

    world.play(script)


def test_another_suppression_holds_it_back(world: World) -> None:
    """Of the domain, or one that was there before: only the one they asked for lets it pass."""

    async def script(world: World) -> None:
        answered(world)
        words, now = confirming(world), world.clock.now()
        world.write(lambda tx: tx.suppressions.add("+34600999888", "gone", "bounce", now))
        write(world, "STOP", words, chat="+34600999888")
        write(world, "STOP", words, chat="+34600999888", name="again", sender="+34600999777")
        assert world.read(lambda tx: tx.suppressions.covers("+34600999777"))
        assert told(world) == [], "where an answer would go is not where they opted out just now"
        world.write(lambda tx: tx.suppressions.add("@example.com", "ours", "by hand", now))
        write(world, "STOP", words, chat="eva@example.com")
        process = world.process()
        await world.wait(MINUTE)
        await process.stop()
        assert world.sends() == []
        assert [row.state for row in told(world)] == ["skipped"]

    world.play(script)


def test_start_reverses_it_and_calls_off_what_is_not_true_any_more(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        write(world, "STOP", words)
        write(world, "START", words)
        assert [(row.state, row.reason) for row in told(world)] == [
            ("cancelled", "asked to be written to again")
        ]
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        process = world.process()
        await world.wait(MINUTE)
        assert world.sends() == []
        write(world, "stop", words)
        await world.wait(MINUTE)
        await process.stop()
        assert len(world.sends()) == 1, "they have opted out anew"

    world.play(script)


@pytest.mark.usefixtures("calm")
def test_it_waits_for_no_hours_and_not_for_ever(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        change(world, overrides={"hours": "Mon-Fri 14:00-18:00 UTC"})
        words = confirming(world)
        write(world, "STOP", words)
        process = world.process(poll_us=MINUTE)
        await world.wait(MINUTE)
        assert len(world.sends()) == 1
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        write(world, "STOP", words, chat="+34600999888")
        await world.wait(2 * DAY)
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        await world.wait(5 * MINUTE)
        await process.stop()
        assert len(world.sends()) == 1

    world.play(script)


def test_what_cannot_be_sent_stops_nobody_from_opting_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch, longest_text={"message": 5})

    async def script(world: World) -> None:
        answered(world)
        write(world, "STOP", confirming(world))
        assert world.read(lambda tx: tx.deliveries.page()) == []
        assert world.read(lambda tx: tx.suppressions.covers(EVA))

    world.play(script)


def test_whoever_is_erased_is_told_nothing(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        write(world, "STOP", words)
        world.write(lambda tx: erasing.erase(tx, EVA, world.clock.now()))
        write(world, "stop", words)
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        process = world.process()
        await world.wait(MINUTE)
        await process.stop()
        assert world.sends() == []

    world.play(script)


def test_a_letter_is_confirmed_by_a_letter_that_answers_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch, actions=frozenset({"email"}))

    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        eva = "eva@example.com"
        write(world, "STOP\n\n> Our offer", words, eva, name="one@x", subject="Re: Our offer")
        (row,) = told(world)
        (part,) = Content.from_list(row.content or []).parts
        assert (row.action, render(part.subject, {}), part.answers) == (
            "email",
            "Re: Our offer",
            ("<one@x>",),
        )
        write(world, "", words, "ben@example.com", subject="unsubscribe")
        assert len(told(world)) == 2

    world.play(script)


@pytest.mark.parametrize("links", [False, True])
def test_a_link_is_confirmed_only_where_that_is_said_and_calls_off_what_waits(
    world: World, links: bool
) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world, links=links)
        world.campaign(targets=[Target(EVA)])
        world.campaign(name="summer", targets=[Target(EVA), Target("+34600999888")])
        process = world.process()
        await world.until(lambda: len(world.sends()) == 1)
        world.write(lambda tx: campaigns.pause(tx, "summer", world.clock.now()))
        desk = UnsubscribeDesk(process.journal, world.clock, LINKS, words.after_link)
        for _ in range(2):
            assert await desk.unsubscribe(LINKS.of(1).rpartition("/")[2])
        await world.wait(MINUTE)
        await process.stop()
        assert [row.state for row in told(world)] == (["sent"] if links else [])
        waiting = world.read(lambda tx: tx.waiting.of_target(EVA))
        assert waiting == []
        rows = world.read(lambda tx: tx.deliveries.page())
        reasons = {row.reason for row in rows if row.state == DeliveryState.CANCELLED}
        assert reasons <= {"unsubscribed by the link in a message"}

    world.play(script)


def test_whoever_looks_at_the_conversation_sees_it(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        write(world, "STOP", words)

        def lines() -> list[tuple[str, str, str]]:
            shown = world.read(lambda tx: conversation_view(tx, conversation(world), 9))
            return [(line.by, line.text, line.state) for line in shown]

        assert sorted(lines()) == [("opt-out", HEARD, "ready"), ("them", "STOP", "")]
        process = world.process()
        await world.wait(MINUTE)
        assert lines() == [("them", "STOP", ""), ("opt-out", HEARD, "sent")]
        write(world, "START", words)
        assert ("us", HEARD, "sent") in lines(), "it was said, and is not true any more"
        await process.stop()

    world.play(script)


def test_verify_sees_any_other_that_has_passed(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        write(world, "STOP", words)
        process = world.process()
        await world.wait(MINUTE)
        await process.stop()
        assert world.read(lambda tx: verify(tx, world.clock.now())) == []
        (one,) = told(world)
        world.write(lambda tx: tx.suppressions.let_pass(EVA, one.id + 1))
        found = world.read(lambda tx: verify(tx, world.clock.now()))
        assert [each.invariant for each in found] == ["never to the suppressed"]
        world.write(lambda tx: tx.suppressions.let_pass(EVA, one.id))

    world.play(script)


@pytest.mark.parametrize("seed", range(6))
def test_once_for_every_time_they_opt_out_whatever_else_happens(world: World, seed: int) -> None:
    """Told as often as they were not suppressed and became so; never anything in between."""
    rng = random.Random(seed)

    async def script(world: World) -> None:
        answered(world)
        words = confirming(world)
        process = world.process()
        out, reported, expected = False, False, 0
        for step in range(25):
            match rng.choice(["stop", "stop", "start", "again", "campaign", "crash", "rest"]):
                case "stop":
                    write(world, "STOP", words, name=f"stop {step}")
                    expected += not out
                    out = True
                    await world.wait(30 * SECOND)
                case "start":
                    write(world, "START", words, name=f"start {step}")
                    out = False
                case "again":
                    write(world, "STOP", words, name="the same report")
                    expected += not out and not reported
                    out, reported = out or not reported, True
                    await world.wait(30 * SECOND)
                case "campaign":
                    world.campaign(name=f"c{step}", targets=[Target(EVA)])
                case "crash":
                    process.die()
                    process = world.process(f"p{step}")
                case "rest":
                    await world.wait(MINUTE)
        await world.wait(5 * MINUTE)
        await process.stop()
        assert len([row for row in told(world) if row.state == DeliveryState.SENT]) == expected

    world.play(script)
