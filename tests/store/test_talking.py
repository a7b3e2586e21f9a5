"""Conversations and turns: one at a time, whoever asks, and everything in exactly one of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from paceline.core.errors import IllegalTransition, NotFoundError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.states import TurnState
from paceline.engine.ports import Inbound
from paceline.engine.ports.conversations import Turn
from tests.store.scene import T0, Scene

EVA = "+34600111222"
LEASE_US = 30 * SECOND


def account_of(scene: Scene) -> int:
    with scene.store.read() as tx:
        found = tx.accounts.find("ann")
    return found.id if found else scene.account("ann")


def write(scene: Scene, *texts: str, chat: str = EVA) -> int:
    """Somebody writes; the conversation's number."""
    account_id = account_of(scene)
    with scene.store.write() as tx:
        conversation = tx.conversations.hear(account_id, chat, T0)
        for text in texts:
            number = tx.inbox.add(account_id, Inbound(text, chat, chat, text, T0), None, T0)
            assert number is not None
            tx.inbox.put_into(number, conversation.id)
        tx.conversations.change(conversation.id, first_at=T0, last_at=T0, due_at=T0 + 5)
        return conversation.id


def begin(scene: Scene, conversation_id: int, owner: str = "one") -> Turn | None:
    with scene.store.write() as tx:
        tx.conversations.hold(conversation_id)
        return tx.turns.begin(conversation_id, owner, LEASE_US, T0)


def test_a_person_and_an_account_have_one_conversation(scene: Scene) -> None:
    number, ann, ben = write(scene, "a"), account_of(scene), scene.account()
    with scene.store.write() as tx:
        again = tx.conversations.hear(ann, EVA, T0 + 9)
        earlier = tx.conversations.hear(ann, EVA, T0 + 3)
        other = tx.conversations.hear(ben, EVA, T0)
    assert (again.id, again.heard_at, earlier.heard_at) == (number, T0 + 9, T0 + 9)
    assert other.id != number
    with scene.store.write() as tx, pytest.raises(NotFoundError, match="conversation 999"):
        tx.conversations.hold(999)


def test_what_is_due_is_found_until_it_has_a_turn(scene: Scene) -> None:
    number, other = write(scene, "a"), write(scene, "b", chat="+1")
    ways, answering = ["sales", "help"], {"way": "help"}
    with scene.store.write() as tx:
        tx.accounts.update(account_of(scene), answering=answering)

        def due(at: Instant, limit: int = 9) -> list[int]:
            return [one.id for one in tx.conversations.due(at, limit, ways, T0)]

        assert due(T0 + 4) == []
        assert tx.conversations.next_due_at() == T0 + 5
        assert due(T0 + 5) == [number, other]
        assert due(T0 + 5, 1) == [number]
        tx.conversations.change(other, mode="human", reason="a person's")
        assert due(T0 + 5) == [number]
        assert [one.id for one in tx.conversations.list(modes=["human"])] == [other]
    begin(scene, number)
    with scene.store.write() as tx:
        tx.conversations.change(number, first_at=T0, last_at=T0, due_at=T0)
        assert tx.conversations.due(T0 + 5, 9, ways, T0) == []
        assert tx.conversations.next_due_at() is None


def test_what_is_due_in_other_ways_is_left_for_a_while(scene: Scene) -> None:
    number, ann = write(scene, "a"), account_of(scene)
    with scene.store.write() as tx:
        for answering, ways, anyway_at, found in (
            ({"way": "help"}, ["help"], T0, [number]),
            ({"way": "help"}, ["sales"], T0 + 5, []),
            ({"way": "help"}, ["sales"], T0 + 6, [number]),
            ({"way": "help"}, [], T0, []),
            ({}, ["help"], T0, []),
        ):
            tx.accounts.update(ann, answering=answering)
            due = tx.conversations.due(T0 + 9, 9, ways, anyway_at)
            assert [one.id for one in due] == found


def test_there_is_one_active_turn_with_all_that_waits(scene: Scene) -> None:
    number = write(scene, "a", "b")
    turn = begin(scene, number)
    assert turn is not None
    write(scene, "c")
    assert begin(scene, number, "two") is None
    with scene.store.write() as tx:
        assert [one.text for one in tx.turns.taken(turn.id)] == ["a", "b"]
        assert [one.id for one in tx.turns.active()] == [turn.id]
        assert tx.turns.move(turn, "say_nothing", T0 + 1)
        assert tx.turns.active(number) == []
    second = begin(scene, number, "two")
    assert second is not None
    account_id = account_of(scene)
    with scene.store.read() as tx:
        assert [one.text for one in tx.turns.taken(second.id)] == ["c"]
        found = tx.conversations.find(account_id, EVA)
        assert found is not None and (found.first_at, found.due_at) == (None, None)
        assert [one.id for one in tx.turns.of_conversation(number, 9)] == [second.id, turn.id]


def test_with_nothing_waiting_there_is_no_turn(scene: Scene) -> None:
    number = write(scene)
    assert begin(scene, number) is None
    with scene.store.read() as tx:
        assert tx.turns.active() == []


def test_somebody_who_is_erased_is_known_by_another_name(scene: Scene) -> None:
    number, ann = write(scene, "a"), account_of(scene)
    with scene.store.write() as tx:
        tx.conversations.blot_out({EVA: "erased:1"})
        found = tx.conversations.find(ann, "erased:1")
        assert found is not None and found.id == number
        assert tx.conversations.find(ann, EVA) is None


def test_many_that_begin_at_once(scene: Scene) -> None:
    number, at_once = write(scene, "a"), Barrier(4)

    def one(name: str) -> Turn | None:
        at_once.wait(10)
        return begin(scene, number, name)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(one, "abcd"))
    assert sum(turn is not None for turn in found) == 1


def test_a_turn_is_held_by_naming_its_generation(scene: Scene) -> None:
    number = write(scene, "a")
    turn = begin(scene, number)
    assert turn is not None
    with scene.store.write() as tx:
        assert tx.turns.renew(turn, LEASE_US)
        lives = tx.turns.take_over(turn, "two", LEASE_US, T0 + 2, MINUTE)
        assert lives is None, "its owner lives"
        other = tx.turns.take_over(turn, "two", LEASE_US, T0 + 2, LEASE_US - 1)
        assert other is not None
        assert (other.owner, other.generation, other.attempts) == ("two", 2, 2)
        assert other.started_at == T0 + 2
        assert tx.turns.take_over(turn, "three", LEASE_US, T0 + 9, 0) is None
        assert not tx.turns.renew(turn, LEASE_US)
        assert not tx.turns.move(turn, "reply", T0)
        assert tx.turns.again(turn, LEASE_US) is None
        assert tx.turns.move(other, "hand_over", T0 + 3, reason="no\x00 idea")
        ended = tx.turns.get(turn.id)
        assert (ended.state, ended.ended_at, ended.lease_until_at) == (
            TurnState.HANDED,
            T0 + 3,
            None,
        )
        assert "\x00" not in ended.reason
        assert not tx.turns.move(other, "reply", T0)
        with pytest.raises((IllegalTransition, IndexError)):
            tx.turns.move(other, "fly", T0)


def test_what_was_left_is_found(scene: Scene) -> None:
    number = write(scene, "a")
    turn = begin(scene, number)
    assert turn is not None
    with scene.store.read() as tx:
        assert tx.turns.stale(MINUTE, 9) == []
    scene.sql("UPDATE turns SET lease_until_at = 1")
    with scene.store.read() as tx:
        assert [one.id for one in tx.turns.stale(MINUTE, 9)] == [turn.id]
    with scene.store.write() as tx:
        assert tx.turns.renew(turn, 5 * MINUTE)
        assert tx.turns.stale(6 * MINUTE, 9) == []
        assert [one.id for one in tx.turns.stale(MINUTE, 9)] == [turn.id], "a wrong clock's"
    with scene.store.write() as tx:
        tx.turns.move(turn, "reply", T0)
        assert tx.turns.stale(MINUTE, 9) == [], "its answer is on its way"


def test_what_was_given_back_waits_again(scene: Scene) -> None:
    number = write(scene, "a", "b")
    turn = begin(scene, number)
    assert turn is not None
    with scene.store.write() as tx:
        tx.turns.move(turn, "discard", T0)
        tx.turns.give_back(turn)
        assert tx.turns.taken(turn.id) == []
    second = begin(scene, number)
    assert second is not None
    with scene.store.read() as tx:
        assert len(tx.turns.taken(second.id)) == 2


def test_an_answer_is_over_when_its_delivery_is(scene: Scene) -> None:
    number = write(scene, "a")
    turn = begin(scene, number)
    assert turn is not None
    delivery_id = scene.delivery(scene.run(), account_of(scene))
    with scene.store.write() as tx:
        tx.turns.move(turn, "reply", T0, delivery_id=delivery_id)
        assert tx.turns.replied(9) == []
        tx.deliveries.move(delivery_id, "skip", at=T0, reason="too late")
        (over,) = tx.turns.replied(9)
        assert (over.turn.id, over.state, over.reason) == (turn.id, "skipped", "too late")
        assert tx.turns.move(over.turn, "finish", T0)
        assert tx.turns.replied(9) == []
