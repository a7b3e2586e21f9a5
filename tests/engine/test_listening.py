"""Messages that come at once: taken in together, and as if one had come after the other."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from paceline.core.instants import SECOND
from paceline.core.model import FollowUp, Target
from paceline.core.opting_out import DEFAULT
from paceline.engine import conversations, listening
from paceline.engine.commands import erasing, hooking, returns
from paceline.engine.listening import Reported
from paceline.engine.ports import Inbound, Receipt, Tx
from paceline.engine.ports.listening import Looked
from paceline.store.listening import Listening
from tests.engine.scenes import deliveries
from tests.engine.talking import EVA, answered
from tests.engine.test_follow_ups import SECOND_MESSAGE
from tests.engine.test_reporting import admitted, desk_of, reporting, said, secret
from tests.engine.world import World
from tests.engine.worlds import Worlds

NAMES = ("ann", "ben")
PEOPLE = tuple(f"+3460011122{number}" for number in range(5))


def stored(tx: Tx, name: str) -> hooking.Stored:
    found = hooking.stored_for(tx, name)
    assert found is not None
    return found


def house(world: World) -> None:
    """Two accounts, one of which is answered; nobody answers one of the people."""
    answered(world, "ann")
    world.account("ben")
    for name in NAMES:
        secret(world, name)

    def mute(tx: Tx) -> None:
        for account in tx.accounts.list():
            conversation = tx.conversations.hear(account.id, PEOPLE[0], world.clock.now())
            tx.conversations.change(conversation.id, mode="muted")

    world.write(mute)


def drawn(luck: random.Random, at: int) -> list[tuple[str, tuple[Inbound, ...], int]]:
    """Reports of a few people to both accounts, some told twice, and some nobody's to answer."""
    reports = []
    for _ in range(luck.randint(1, 12)):
        messages = tuple(
            Inbound(
                f"m{luck.randrange(25)}",
                chat := luck.choice(PEOPLE),
                chat,
                luck.choice(["Hello", "", "a\0b", "Ж" * 90]),
                luck.choice([0, at - 5]),
                from_us=luck.random() < 0.1,
                automatic=luck.random() < 0.1,
                group=luck.random() < 0.1,
            )
            for _ in range(luck.randint(0, 3))
        )
        reports.append((luck.choice(NAMES), messages, at + luck.randrange(3)))
    return reports


def kept(world: World) -> list[Any]:
    """All that is known afterwards, but for the numbers."""

    def work(tx: Tx) -> list[Any]:
        talks = {one.id: one._replace(id=0) for one in tx.conversations.list(limit=100)}
        chats = sorted(talks.values(), key=lambda one: (one.account_id, one.chat))
        inbox = [
            (one._replace(id=0, conversation_id=None), talks.get(one.conversation_id or 0))
            for one in tx.inbox.latest(limit=1_000)
        ]
        return [chats, sorted(inbox, key=repr)]

    return world.read(work)


def told(world: World, luck: random.Random, *, together: bool) -> list[Any]:
    """What a few bursts of reports come to, and what is known after each of them."""
    reporting(world)

    def take_in(tx: Tx, reports: list[Any]) -> list[Any]:
        if together:
            listed = [Reported(stored(tx, name), messages, at) for name, messages, at in reports]
            return listening.take_in(tx, listed)
        return [
            returns.take_in(tx, stored(tx, name).account, messages, at)
            for name, messages, at in reports
        ]

    async def script(world: World) -> list[Any]:
        house(world)
        found: list[Any] = []
        for _ in range(4):
            reports = drawn(luck, world.clock.now() + luck.randrange(20) * SECOND)
            found.append(world.write(partial(take_in, reports=reports)))
            found.append(kept(world))
        return found

    return world.play(script)


@pytest.mark.parametrize("seed", range(25))
def test_it_comes_to_the_same_as_one_by_one(worlds: Worlds, seed: int) -> None:
    at_once = told(worlds.fresh(), random.Random(seed), together=True)
    assert at_once == told(worlds.fresh(), random.Random(seed), together=False)


@pytest.mark.parametrize("together", [True, False])
def test_names_that_no_database_can_keep_are_taken_in_as_they_can_be_kept(
    on_either: World, together: bool
) -> None:
    """Whoever reports would repeat it for ever, and all that was reported with it."""
    reporting(on_either)
    odd = Inbound("m\0one", "\0ev\0a", "e\ud800", "hi", 0, also=("\0", "a\0b"))

    async def script(world: World) -> None:
        house(world)

        def take_in(tx: Tx, message: Inbound) -> int:
            by, now = stored(tx, "ann"), world.clock.now()
            if not together:
                return returns.take_in(tx, by.account, [message], now).received
            (came_to,) = listening.take_in(tx, [Reported(by, (message,), now)])
            assert isinstance(came_to, returns.TakenIn)
            return came_to.received

        again = odd._replace(provider_id="mone", chat="eva")
        counts = [world.write(partial(take_in, message=one)) for one in (odd, odd, again)]
        assert counts == [1, 0, 0]
        (kept,) = world.read(lambda tx: tx.inbox.latest(limit=10))
        assert (kept.provider_id, kept.chat, kept.sender) == ("mone", "eva", "e?")
        talks = world.read(lambda tx: tx.conversations.list(limit=10))
        assert [one.id for one in talks if one.chat == "eva"] == [kept.conversation_id]

    on_either.play(script)


def test_what_another_process_was_told_of_meanwhile_changes_nothing_here(
    on_either: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there when this process looked, and is when it writes."""
    real = Listening.look

    def look(self: Listening, *asked: Any) -> Looked:
        return real(self, *asked)._replace(known=frozenset())

    async def script(world: World) -> None:
        house(world)
        now = world.clock.now()
        _, eva, ben, *_ = PEOPLE

        def take_in(tx: Tx, *names: tuple[str, str]) -> list[Any]:
            by = stored(tx, "ann")
            return listening.take_in(
                tx,
                [Reported(by, (Inbound(name, chat, chat, "Hi", 0),), now) for name, chat in names],
            )

        world.write(lambda tx: take_in(tx, ("m1", eva), ("m2", ben)))
        world.write(
            lambda tx: [tx.turns.begin(one.id, "x", 1, now) for one in tx.conversations.list()]
        )
        calm = {one.chat: one for one in world.read(lambda tx: tx.conversations.list())}
        monkeypatch.setattr(Listening, "look", look)
        told = world.write(lambda tx: take_in(tx, ("m1", eva), ("m2", ben), ("m3", ben)))
        assert [one.received for one in told] == [0, 0, 1]
        after = {one.chat: one for one in world.read(lambda tx: tx.conversations.list())}
        assert after[eva] == calm[eva] and calm[eva].first_at is None
        assert after[ben] == conversations.heard_in(calm[ben], world.account_now("ann"), now)

    reporting(on_either)
    on_either.play(script)


def test_what_is_no_message_or_asks_for_something_goes_its_own_way() -> None:
    hello = Inbound("m1", EVA, EVA, "Hello", 0)
    assert listening.messages_in([hello, hello], DEFAULT) == (hello, hello)
    assert listening.messages_in([], DEFAULT) == ()
    for other in (
        Receipt("p1", "read", 0),
        hello._replace(text="STOP"),
        hello._replace(answers="home-7-0"),
    ):
        assert listening.messages_in([hello, other], DEFAULT) is None


def test_many_reports_at_once_are_one_write_and_each_is_there_once(on_either: World) -> None:
    reporting(on_either)

    async def script(world: World) -> None:
        answered(world, "ann")
        process = world.process()
        desk = desk_of(world, process)
        who = await admitted(world, desk)
        calls: list[int] = []
        before = listening.take_in

        def counted(tx: Tx, reports: Any) -> Any:
            calls.append(len(reports))
            return before(tx, reports)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(listening, "take_in", counted)
            told = [
                desk.take(
                    who, {"x-proof": "right"}, said(Inbound(f"m{n % 30}", EVA, EVA, f"{n}", 0)), {}
                )
                for n in range(40)
            ]
            assert await asyncio.gather(*told) == ["taken"] * 40
        assert sum(calls) == 40 and len(calls) < 5
        rows = world.read(lambda tx: tx.inbox.latest(limit=100))[::-1]
        assert [one.text for one in rows] == [f"{n}" for n in range(30)], "in the order they came"
        await process.stop()

    on_either.play(script)


def test_whoever_a_campaign_waits_for_is_sent_the_second_message(on_either: World) -> None:
    """Also if they wrote with many others, and also if they are known by no name any more."""
    reporting(on_either)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        waited_for = [Target(PEOPLE[1]), Target(PEOPLE[2])]
        world.campaign(targets=waited_for, follow_up=FollowUp(SECOND_MESSAGE))
        process = world.process()
        await world.until(lambda: world.counts().get("sent", 0) == 2)
        desk = desk_of(world, process)
        who = await admitted(world, desk)
        world.write(lambda tx: erasing.erase(tx, PEOPLE[2], world.clock.now()))
        said_by = {chat: Inbound(f"m{chat}", chat, chat, "yes", 0) for chat in PEOPLE}
        listed = [Reported(who.by, (one,), world.clock.now()) for one in said_by.values()]
        came_to = world.write(lambda tx: listening.take_in(tx, listed))
        by_itself = [one == "by itself" for one in came_to]
        assert by_itself == [chat in PEOPLE[1:3] for chat in PEOPLE]
        proof = {"x-proof": "right"}
        for _ in range(2):
            told = [desk.take(who, proof, said(one), {}) for one in said_by.values()]
            assert await asyncio.gather(*told) == ["taken"] * 5
        assert len(world.read(lambda tx: tx.inbox.latest())) == 5
        assert [row.target for row in deliveries(world) if row.step == 2][:1] == [PEOPLE[1]]
        await process.stop()

    on_either.play(script)
