"""People who are muted everywhere: nobody answers them, whichever account they write to."""

from __future__ import annotations

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import MINUTE, SECOND
from paceline.engine import conversations, listening, muting
from paceline.engine.commands.erasing import erase
from paceline.engine.commands.returns import TakenIn
from paceline.engine.listening import Reported
from paceline.engine.ports import Contact, Inbound, Tx
from paceline.engine.ports.answering import Answer, Burst, ResponderRefused
from paceline.engine.ports.people import Address
from tests.engine.talking import EVA, Desk, Scripted, answered, conversation, hear, said, taking
from tests.engine.test_conversations import alerts_of
from tests.engine.test_listening import stored
from tests.engine.test_reporting import reporting, secret
from tests.engine.world import World


def test_what_is_being_made_for_them_anywhere_is_not_sent(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        answered(world, "ben")
        desk = Desk(world, responder := Scripted(taking(world, 30)))
        hear(world, "hi")
        hear(world, "hi", account="ben")
        await world.wait(20 * SECOND)
        assert responder.at_once == 2
        number, now = conversation(world).id, world.clock.now()
        changed = world.write(lambda tx: muting.mute_everywhere(tx, number, now))
        assert len(changed) == 2
        answered(world, "cleo")
        hear(world, "and you?", account="cleo")
        await world.wait(3 * MINUTE)
        assert world.sends() == []
        assert {burst.account for burst in responder.asked} == {"ann", "ben"}
        now = world.clock.now()
        world.write(lambda tx: muting.unmute_everywhere(tx, number, now))
        await world.wait(MINUTE)
        assert len(world.sends()) == 3
        await desk.stop()

    world.play(script)


def test_nobody_who_was_erased_is_kept_among_the_muted(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: muting.mute_everywhere(tx, number, now))
        assert world.read(lambda tx: tx.muting.among([EVA])) == {EVA}
        world.write(lambda tx: erase(tx, EVA, now))
        assert world.read(lambda tx: tx.muting.among([EVA])) == frozenset()

    world.play(script)


def mute(world: World, number: int) -> int:
    """How many conversations it changed."""
    now = world.clock.now()
    return len(world.write(lambda tx: muting.mute_everywhere(tx, number, now)))


def report(world: World, message: Inbound) -> None:
    """By its hook, with whatever else comes at the same time."""

    def take_in(tx: Tx) -> None:
        (came_to,) = listening.take_in(tx, [Reported(stored(tx, "ann"), (message,), tx.now)])
        assert came_to == TakenIn(received=1)

    world.write(take_in)


def mode(world: World, chat: str, account: str = "ann") -> str:
    number = world.account_now(account).id
    found = world.read(lambda tx: tx.conversations.find(number, chat))
    assert found is not None
    return found.mode


def test_a_chat_is_known_by_who_writes_in_it(on_either: World) -> None:
    """Where a chat has an id of its own on every account: the people have the same names."""

    async def script(world: World) -> None:
        for name in ("ann", "ben", "cleo"):
            answered(world, name)
        profile = "https://www.linkedin.com/in/eva"
        hear(world, "hi", chat="chat:1", sender="ACoAAEva")
        hear(world, "hi", chat="chat:2", sender="ACoAAEva", account="ben")
        hear(world, "hi", chat="chat:8", sender="ACoAABen", account="ben")
        assert mute(world, conversation(world, "chat:1").id) == 2
        assert (mode(world, "chat:2", "ben"), mode(world, "chat:8", "ben")) == ("muted", "auto")
        hear(world, "hi", chat="chat:3", sender="ACoAAEva", account="cleo", also=(profile,))
        assert mode(world, "chat:3", "cleo") == "muted"
        everywhere = [f"chat:{number}" for number in (1, 2, 3)]
        assert world.read(lambda tx: tx.muting.among([*everywhere, "chat:8"])) == {*everywhere}
        # What else they are called is known from then on.
        hear(world, "hi", chat="chat:4", sender="another", account="cleo", also=(profile,))
        assert mode(world, "chat:4", "cleo") == "muted"
        number, now = conversation(world, "chat:1").id, world.clock.now()
        again = world.write(lambda tx: muting.unmute_everywhere(tx, number, now))
        assert {one.chat for one in again} == {"chat:1", "chat:2", "chat:3", "chat:4"}
        hear(world, "hi", chat="chat:5", sender="another", account="cleo", also=(profile,))
        assert mode(world, "chat:5", "cleo") == "auto"

    on_either.play(script)


def test_reports_of_many_know_them_as_well(on_either: World) -> None:
    async def script(world: World) -> None:
        reporting(world)
        answered(world)
        secret(world, "ann")
        hear(world, "hi", chat="chat:1", sender="ACoAAEva")
        mute(world, conversation(world, "chat:1").id)
        for place, (chat, sender, also) in enumerate(
            [
                ("chat:2", "ACoAAEva", ("eva@lid",)),
                ("chat:3", "eva@lid", ()),
                ("chat:4", "ACoAABen", ()),
            ]
        ):
            message = Inbound(f"new-{place}", chat, sender, "hi", 0, also=also)
            report(world, message)
        modes = [mode(world, f"chat:{number}") for number in (2, 3, 4)]
        assert modes == ["muted", "muted", "auto"]

    on_either.play(script)


def test_somebody_whose_number_is_hidden_later_is_still_muted(world: World) -> None:
    """Their provider told both names once."""

    async def script(world: World) -> None:
        answered(world)
        answered(world, "ben")
        hear(world, "hi")
        mute(world, conversation(world).id)
        hear(world, "hello?", also=("12345678@lid",))
        hear(world, "hello?", chat="12345678@lid", account="ben")
        assert mode(world, "12345678@lid", "ben") == "muted"

    world.play(script)


def test_an_address_that_becomes_known_later_is_muted(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        mute(world, conversation(world).id)
        known = [Address("phone", EVA), Address("email", "eva@example.org")]
        now = world.clock.now()

        def learn(tx: Tx) -> None:
            (number,) = tx.contacts.add([Contact(0, ())], now)
            tx.contacts.give([(number, one) for one in known])

        world.write(learn)
        hear(world, "by letter", chat="eva@example.org")
        assert mode(world, "eva@example.org") == "muted"
        number = conversation(world).id
        world.write(lambda tx: muting.unmute_everywhere(tx, number, now))
        assert mode(world, "eva@example.org") == "auto"

    world.play(script)


# ---------------------------------------------------------------------- who had it before


@pytest.mark.parametrize("everywhere", [False, True])
def test_what_a_person_had_taken_is_theirs_again(on_either: World, everywhere: bool) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.take(tx, number, now))
        if everywhere:
            mute(world, number)
        else:
            world.write(lambda tx: muting.mute(tx, number, now))
        assert conversation(world).mode == "muted"
        hear(world, "and?")
        await world.wait(MINUTE)
        unmute = muting.unmute_everywhere if everywhere else muting.unmute
        world.write(lambda tx: unmute(tx, number, world.clock.now()))
        await world.wait(10 * MINUTE)
        assert world.sends() == []
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", conversations.TAKEN)
        assert (found.first_at is not None, found.before_mute) == (True, None)
        assert world.read(lambda tx: tx.alerts.list()) == [], "they know of it"
        world.write(lambda tx: conversations.hand_back(tx, number, world.clock.now()))
        await world.wait(MINUTE)
        assert said(world) == ["re: hi\nand?"]
        await desk.stop()

    on_either.play(script)


async def _handed_over_and_muted(world: World) -> tuple[Desk, int]:
    """A conversation that the responder would not answer, and that somebody mutes then."""
    answered(world)

    async def refuses(burst: Burst) -> Answer:
        raise ResponderRefused("not a word")

    desk = Desk(world, Scripted(refuses))
    hear(world, "hi")
    await world.wait(20 * SECOND)
    number = conversation(world).id
    world.write(lambda tx: muting.mute(tx, number, world.clock.now()))
    return desk, number


def test_what_was_handed_to_a_person_needs_one_again(world: World) -> None:
    async def script(world: World) -> None:
        desk, number = await _handed_over_and_muted(world)
        assert world.read(lambda tx: tx.alerts.list()) == []
        world.write(lambda tx: muting.unmute(tx, number, world.clock.now()))
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", "not a word")
        assert len(alerts_of(world, "conversation.person")) == 1
        await desk.stop()

    world.play(script)


def test_what_a_person_answered_while_it_was_muted_needs_none_any_more(world: World) -> None:
    async def script(world: World) -> None:
        desk, number = await _handed_over_and_muted(world)
        now, providers = world.clock.now(), world.providers
        world.write(lambda tx: conversations.reply(tx, number, "by hand", providers, now))
        await world.wait(MINUTE)
        world.write(lambda tx: muting.unmute(tx, number, world.clock.now()))
        found = conversation(world)
        assert (found.mode, found.reason) == ("human", conversations.TAKEN)
        assert alerts_of(world, "conversation.person") == []
        await desk.stop()

    world.play(script)


def test_taken_while_it_is_muted_it_is_theirs_and_handed_back_nobodys(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.take(tx, number, now))
        world.write(lambda tx: muting.mute(tx, number, now))
        world.write(lambda tx: conversations.hand_back(tx, number, now))
        assert conversation(world).before_mute is None
        world.write(lambda tx: muting.mute(tx, number, now))
        world.write(lambda tx: muting.unmute(tx, number, now))
        assert conversation(world).mode == "auto"
        with pytest.raises(ConflictError, match="is not muted"):
            world.write(lambda tx: muting.unmute(tx, number, now))

    world.play(script)
