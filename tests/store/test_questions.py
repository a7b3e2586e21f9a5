"""The beginning of a turn, and what it is about: the same on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.core.errors import NotFoundError
from paceline.core.instants import SECOND
from paceline.core.states import TurnState
from paceline.engine.ports import Address, Contact, Inbound, Tx
from paceline.engine.ports.questions import Matter
from tests.store.counting import counted
from tests.store.scene import T0, Scene
from tests.store.test_talking import EVA, LEASE_US, account_of, begin, write

MOST = 3


def begun(scene: Scene, conversation_id: int, *, most: int = MOST) -> Matter | None:
    with scene.store.write() as tx:
        return tx.questions.begin(conversation_id, "one", LEASE_US, T0 + 5, most)


def say(tx: Tx, account_id: int, conversation_id: int, name: str, at: int, chat: str = EVA) -> None:
    number = tx.inbox.add(account_id, Inbound(name, chat, chat, name, at), None, T0)
    assert number is not None
    tx.inbox.put_into(number, conversation_id)


def was_sent(scene: Scene, delivery_id: int, at: int) -> None:
    new = f"state = 'sent', sent_at = {at}, due_at = NULL"
    scene.sql(f"UPDATE deliveries SET {new} WHERE id = {delivery_id}")


def test_all_that_waits_is_in_it_in_the_order_in_which_it_was_written(scene: Scene) -> None:
    number = write(scene, "b", "c")
    with scene.store.write() as tx:
        say(tx, account_of(scene), number, "a", T0 - 7)
        tx.accounts.update(account_of(scene), answering={"way": "help"})
    matter = begun(scene, number)
    assert matter is not None
    assert [one.text for one in matter.taken] == ["a", "b", "c"]
    assert {one.turn_id for one in matter.taken} == {matter.turn.id}
    assert (matter.turn.state, matter.turn.owner) == (TurnState.THINKING, "one")
    assert (matter.turn.generation, matter.turn.attempts, matter.turn.reason) == (1, 1, "")
    assert (matter.conversation.chat, matter.conversation.due_at) == (EVA, T0 + 5)
    assert (matter.fields, matter.theirs, matter.ours) == ({}, [], [])
    with scene.store.write() as tx:
        now = tx.now
        assert matter.turn == tx.turns.get(matter.turn.id)
        assert matter.account == tx.accounts.get(account_of(scene))
        held = tx.conversations.hold(number)
    assert now < (matter.turn.lease_until_at or 0) + SECOND <= now + LEASE_US + SECOND
    assert (held.first_at, held.last_at, held.due_at) == (None, None, None)


def test_what_was_said_before_goes_along_and_what_is_known_of_them(scene: Scene) -> None:
    number = write(scene, "a", "b", "c", "d")
    assert begin(scene, number) is not None
    scene.sql("UPDATE turns SET state = 'done'")
    run_id, ann = scene.run(), account_of(scene)
    ours = [scene.delivery(run_id, ann, target=EVA) for _ in range(5)]
    other = scene.delivery(run_id, scene.account(), target=EVA)
    for place, delivery_id in enumerate([*ours[:4], other]):
        was_sent(scene, delivery_id, T0 + place)
    write(scene, "e")
    with scene.store.write() as tx:
        (person,) = tx.contacts.add([Contact(0, (), {"first_name": "Eva"})], T0)
        tx.contacts.give([(person, Address("phone", EVA))])
    matter = begun(scene, number)
    assert matter is not None
    assert ([one.text for one in matter.taken], matter.fields) == (["e"], {"first_name": "Eva"})
    assert [one.text for one in matter.theirs] == ["d", "c", "b"]
    assert [one.id for one in matter.ours] == [ours[3], ours[2], ours[1]]
    assert matter.ours[0] == scene.get(ours[3])
    with scene.store.write() as tx:
        say(tx, ann, number, "f", T0)  # it waits, and nobody has to know yet
        again = tx.questions.matter(matter.turn, matter.conversation, MOST)
        none = tx.questions.matter(matter.turn, matter.conversation, 0)
    assert again == matter
    assert (none.taken, none.theirs, none.ours) == (matter.taken, [], [])


@pytest.mark.parametrize(("chat", "found"), [("34600111222@c.us", 1), ("erased:7", 0)])
def test_people_are_written_to_where_they_are_whatever_they_write_from(
    scene: Scene, chat: str, found: int
) -> None:
    number = write(scene, "a", chat=chat)
    for target in (EVA, chat):
        sent = scene.delivery(scene.run(), account_of(scene), target=target)
        was_sent(scene, sent, T0)
    matter = begun(scene, number)
    assert matter is not None
    assert [one.target for one in matter.ours] == [EVA] * found
    with scene.store.read() as tx:
        assert tx.questions.matter(matter.turn, matter.conversation, MOST) == matter


@pytest.mark.parametrize(
    "otherwise",
    [
        "UPDATE conversations SET mode = 'human'",
        f"UPDATE conversations SET due_at = {T0 + 6}",
        "UPDATE conversations SET due_at = NULL",
    ],
)
def test_none_begins_where_nobody_is_to_be_answered_now(scene: Scene, otherwise: str) -> None:
    number = write(scene, "a")
    scene.sql(otherwise)
    before = scene.sql("SELECT * FROM conversations")
    assert begun(scene, number) is None
    assert scene.sql("SELECT * FROM conversations") == before
    assert scene.sql("SELECT 1 FROM turns") == []
    assert scene.sql("SELECT turn_id FROM inbound") == [(None,)]


def test_none_begins_beside_another(scene: Scene) -> None:
    number = write(scene, "a")
    first = begun(scene, number)
    write(scene, "b")
    assert first is not None and begun(scene, number) is None
    with scene.store.read() as tx:
        assert [one.id for one in tx.turns.active(number)] == [first.turn.id]
        assert [one.text for one in tx.inbox.waiting(number)] == ["b"]
        assert (tx.conversations.get(number) or first.conversation).due_at == T0 + 5


def test_where_nothing_waits_it_is_as_if_nobody_had_begun(scene: Scene) -> None:
    number = write(scene)
    assert begun(scene, number) is None
    assert scene.sql("SELECT 1 FROM turns") == []
    assert scene.sql("SELECT first_at, last_at, due_at FROM conversations") == [(None,) * 3]
    with pytest.raises(NotFoundError, match="conversation 999"):
        begun(scene, 999)


def test_what_is_being_put_into_the_conversation_is_waited_for(postgres_scene: Scene) -> None:
    """Else it would be in no turn, and nothing would say that it waits."""
    scene, waits = postgres_scene, "SELECT 1 FROM pg_locks WHERE NOT granted"
    number, ann = write(scene, "a"), account_of(scene)
    with ThreadPoolExecutor(1) as pool:
        with scene.store.write() as tx:
            tx.conversations.hold(number)
            later = pool.submit(begun, scene, number)
            while not scene.sql(waits):
                assert not later.done(), "it did not wait"
            say(tx, ann, number, "b", T0)
        matter = later.result()
    assert matter is not None
    assert [one.text for one in matter.taken] == ["a", "b"]


def test_few_statements_begin_a_turn(scene: Scene) -> None:
    number = write(scene, "a")
    with counted() as asked:
        assert begun(scene, number) is not None
    assert len(asked) == (3 if scene.kind == "postgresql" else 8), asked
