"""People whom nobody answers, whichever account they write to."""

from __future__ import annotations

import pytest

from paceline.engine.ports import Contact, Inbound
from paceline.engine.ports.people import Address
from tests.store.scene import T0, Scene
from tests.store.test_talking import EVA, account_of, write

BEN = "+34600333444"
LETTERS = "eva@example.org"


def know(scene: Scene, *addresses: Address) -> None:
    """A contact with these addresses."""
    with scene.store.write() as tx:
        (number,) = tx.contacts.add([Contact(0, ())], T0)
        tx.contacts.give([(number, one) for one in addresses])


def test_who_is_muted_is_muted_once(scene: Scene) -> None:
    with scene.store.write() as tx:
        tx.muting.add([], T0, 1)
        tx.muting.add([EVA, LETTERS], T0, 1)
        tx.muting.add([EVA, BEN], T0 + 1, 2)
        tx.muting.add(["old"], T0, None)
        assert tx.muting.among([EVA, "+1"]) == {EVA}
        assert tx.muting.of([LETTERS]) == {EVA: 1, LETTERS: 1}
        assert tx.muting.of(["old", "+1"]) == {"old": None}
        assert tx.muting.remove(["+1"]) == 0
        assert tx.muting.remove([LETTERS, "old"]) == 3, "what was muted together ends together"
        assert tx.muting.among([EVA, LETTERS, BEN, "old"]) == {BEN}


@pytest.mark.parametrize("name", [EVA, "x@lid", LETTERS])
def test_a_conversation_with_them_begins_muted(scene: Scene, name: str) -> None:
    """By whichever of the names of whoever writes, and by any other address of their contact."""
    before, ann = write(scene, "a"), account_of(scene)
    know(scene, Address("phone", EVA), Address("email", LETTERS))
    with scene.store.write() as tx:
        tx.muting.add([name, BEN], T0, before)
        assert tx.conversations.hear(ann, EVA, T0).mode == "auto", "it has begun before"
        assert tx.conversations.hear(ann, BEN, T0).mode == "muted"
        assert tx.conversations.hear(ann, "+1", T0).mode == "auto"
        assert tx.conversations.hear(ann, "chat-1", T0, [EVA, "x@lid"]).mode == "muted"
    ben = scene.account()
    with scene.store.write() as tx:
        chats = {(ben, "chat-1"): T0, (ben, "+1"): T0, (ann, EVA): T0}
        held = tx.listening.hold(chats, {(ben, "chat-1"): {EVA, "x@lid\0"}})
        modes = {chat: one.mode for chat, one in held.items()}
    assert modes == {(ben, "chat-1"): "muted", (ben, "+1"): "auto", (ann, EVA): "auto"}


def test_an_address_that_is_learned_later_is_theirs_as_well(scene: Scene) -> None:
    ann = scene.account()
    with scene.store.write() as tx:
        tx.muting.add([EVA], T0, 1)
        assert tx.muting.of([LETTERS]) == {}
    know(scene, Address("phone", EVA), Address("email", LETTERS))
    with scene.store.write() as tx:
        assert tx.muting.of([LETTERS]) == {EVA: 1}
        held = tx.listening.hold({(ann, LETTERS): T0, (ann, BEN): T0})
        assert (held[ann, LETTERS].mode, held[ann, BEN].mode) == ("muted", "auto")


def test_conversations_are_found_by_who_has_written_in_them(scene: Scene) -> None:
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        named = tx.conversations.hear(ann, EVA, T0)
        chat = tx.conversations.hear(ben, "chat-1", T0)
        ours = tx.conversations.hear(ben, "chat-2", T0)
        for talk, sender, from_us in ((chat, EVA, False), (chat, "", False), (ours, EVA, True)):
            message = Inbound(f"m{talk.id}{sender}", talk.chat, sender, "hi", 0, from_us=from_us)
            number = tx.inbox.add(talk.account_id, message, None, T0)
            assert number is not None
            tx.inbox.put_into(number, talk.id)
        assert [one.id for one in tx.muting.conversations([EVA])] == [named.id, chat.id]
        assert [one.id for one in tx.muting.conversations([EVA], ben)] == [chat.id]
        assert tx.muting.conversations([BEN]) == []
        assert tx.muting.names_in(chat.id) == {EVA}
        assert tx.muting.names_in(ours.id) == frozenset()


def test_an_address_is_known_by_itself_and_not_by_what_is_written_above_a_letter(
    scene: Scene,
) -> None:
    ann, run_id = scene.account(), scene.run()
    sent = scene.delivery(run_id, ann)
    with scene.store.write() as tx:
        talk = tx.conversations.hear(ann, LETTERS, T0)
        for place, answered in enumerate((None, sent)):
            message = Inbound(f"m{place}", LETTERS, "form@example.org", "hi", 0)
            number = tx.inbox.add(ann, message, answered, T0)
            assert number is not None
            tx.inbox.put_into(number, talk.id)
        assert tx.muting.names_in(talk.id) == {tx.deliveries.get(sent).target}
        assert tx.muting.conversations(["form@example.org"]) == []
        assert tx.muting.conversations([LETTERS]) == [talk]


def test_what_nobody_knows_the_conversation_of_is_filled_in(scene: Scene) -> None:
    with scene.store.write() as tx:
        tx.muting.add(["old"], T0, None)
        tx.muting.add([EVA], T0, 1)
        tx.muting.learn({"old": 2, EVA: 2, BEN: 3}, T0 + 1)
        assert tx.muting.of(["old", EVA, BEN]) == {"old": 2, EVA: 1, BEN: 3}


def test_whom_they_answer_as_is_one_of_their_names(scene: Scene) -> None:
    ann, ben, run_id = scene.account(), scene.account(), scene.run()
    mine, another = scene.delivery(run_id, ann), scene.delivery(run_id, ben)
    with scene.store.write() as tx:
        talk = tx.conversations.hear(ann, "chat-1", T0)
        for place, answered in enumerate((mine, another)):
            message = Inbound(f"m{place}", "chat-1", "x", "hi", 0)
            number = tx.inbox.add(ann, message, answered, T0)
            assert number is not None
            tx.inbox.put_into(number, talk.id)
        assert tx.muting.names_in(talk.id) == {"x", tx.deliveries.get(mine).target}
