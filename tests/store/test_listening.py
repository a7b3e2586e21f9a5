"""What many people write at once: the statements that are the same for all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from paceline.core.states import DeliveryState
from paceline.engine.ports import Inbound
from paceline.engine.ports.listening import Heard, Waiting
from paceline.store.base import dump
from tests.store.scene import T0, Scene

EVA, BEN = "+34600111222", "+34600333444"


def heard(account_id: int, name: str, chat: str = EVA, where: int | None = None) -> Heard:
    return Heard(account_id, Inbound(name, chat, chat, f"text of {name}", 0), T0, where)


def test_conversations_are_found_or_made(scene: Scene) -> None:
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        known = tx.conversations.hear(ann, EVA, T0)
        held = tx.listening.hold({(ann, EVA): T0 + 9, (ann, BEN): T0 + 1, (ben, EVA): T0 + 2})
        assert held[ann, EVA] == known
        assert (held[ann, BEN].heard_at, held[ann, BEN].created_at) == (T0 + 1, T0 + 1)
        assert len({one.id for one in held.values()}) == 3
        assert tx.listening.hold({}) == {}
        odd = tx.listening.hold({(ann, "a\0b"): T0})[ann, "a\0b"]
        assert odd == tx.listening.hold({(ann, "ab"): T0})[ann, "ab"]


def test_messages_are_numbered_in_order_and_each_is_there_once(scene: Scene) -> None:
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        where = tx.conversations.hear(ann, EVA, T0).id
        names = [f"m{number}" for number in range(150)]
        numbers = tx.listening.add([heard(ann, name, where=where) for name in names])
        assert None not in numbers and numbers == sorted(numbers, key=lambda one: one or 0)
        again = [heard(ann, "m7"), heard(ben, "m7"), heard(ben, "m7"), heard(ann, "new")]
        found = [number is not None for number in tx.listening.add(again)]
        assert found == [False, True, False, True]
        assert [one.provider_id for one in tx.inbox.waiting(where)] == names
        (kept,) = tx.inbox.latest(ben)
        assert (kept.text, kept.conversation_id, kept.at) == ("text of m7", None, T0)
        assert tx.listening.add([]) == []


def test_how_conversations_stand_is_written_for_all_of_them(scene: Scene) -> None:
    ann = scene.account()
    with scene.store.write() as tx:
        first, second, third = (tx.conversations.hear(ann, chat, T0) for chat in (EVA, BEN, "x"))
        tx.listening.let_wait(
            [
                Waiting(second.id, T0 + 1, T0, T0 + 1, T0 + 9),
                Waiting(first.id, T0 + 2, None, None, None),
            ]
        )
        tx.listening.let_wait([])
        after = {one.id: one for one in tx.conversations.list()}
    assert after[first.id] == first._replace(heard_at=T0 + 2)
    times = {"heard_at": T0 + 1, "first_at": T0, "last_at": T0 + 1, "due_at": T0 + 9}
    assert after[second.id] == second._replace(**times)
    assert after[third.id] == third


def test_what_has_to_be_known_is_told_at_once(scene: Scene) -> None:
    ann, ben = scene.account("ann"), scene.account()
    with scene.store.write() as tx:
        tx.settings.put("hook.1", "sealed")
        tx.listening.add([heard(ann, "m1")])
        looked = tx.listening.look(
            [ann, ben], ["hook.1", "hook.2"], [(ann, EVA)], [(ann, "m1\0"), (ben, "m1"), (ann, "2")]
        )
        assert looked.accounts == {number: tx.accounts.get(number) for number in (ann, ben)}
    assert (looked.settings, looked.minded) == ({"hook.1": "sealed"}, frozenset())
    assert looked.known == {(ann, "m1\0")}


@pytest.mark.parametrize(
    ("settings", "minds"),
    [
        ({}, False),
        ({"stop_on_reply": False}, False),
        ({"stop_on_reply": True}, True),
        ({"follow_up": {"on": "reply", "within": "24h"}}, True),
    ],
)
def test_whom_a_campaign_waits_for(
    fresh_scene: Scene, settings: dict[str, object], minds: bool
) -> None:
    scene = fresh_scene
    lane, _, sent = scene.on_its_way()
    ann, ben = lane.account_id, scene.account()
    target = scene.get(sent).target
    scene.sql("UPDATE campaigns SET settings = :given", given=dump(settings))
    names = [(ann, target), (ben, target), (ann, "somebody else")]
    expected = {(ann, target)} if minds else set()
    for state in (DeliveryState.SENDING, DeliveryState.SENT):
        scene.sql(f"UPDATE deliveries SET state = '{state}', sent_at = {T0} WHERE id = {sent}")
        with scene.store.read() as tx:
            assert tx.listening.minded(names) == expected
    scene.sql("UPDATE campaigns SET kind = 'direct'")
    with scene.store.read() as tx:
        assert tx.listening.minded(names) == frozenset(), "nobody waits for an answer to an answer"


def test_the_same_report_to_two_processes_at_once_is_there_once(scene: Scene) -> None:
    ann, at_once = scene.account(), Barrier(2)

    def one(_: int) -> int:
        at_once.wait(10)
        with scene.store.write() as tx:
            held = tx.listening.hold({(ann, chat): T0 for chat in (EVA, BEN)})
            news = [heard(ann, f"m{n}", EVA, held[ann, EVA].id) for n in range(20)]
            return sum(number is not None for number in tx.listening.add(news))

    with ThreadPoolExecutor(2) as threads:
        assert sum(threads.map(one, range(2))) == 20
    with scene.store.read() as tx:
        assert len(tx.inbox.latest(ann, limit=100)) == 20


def test_turns_are_renewed_together_as_long_as_they_are_held(scene: Scene) -> None:
    ann = scene.account()
    with scene.store.write() as tx:
        turns = []
        for number, chat in enumerate((EVA, BEN, "x", "y")):
            where = tx.conversations.hear(ann, chat, T0).id
            tx.listening.add([heard(ann, f"m{number}", chat, where)])
            turn = tx.turns.begin(where, "one", 1_000, T0)
            assert turn is not None
            turns.append(turn)
        tx.turns.move(turns[1], "reply", T0)
        taken = tx.turns.take_over(turns[2], "two", 1_000, T0, T0 + 1)
        assert taken is not None
        held = [(turn.id, turn.generation) for turn in (*turns, taken)]
        renewed = tx.listening.renew(held, 9_000_000)
        assert renewed == {turns[0].id, taken.id, turns[3].id}
        now = tx.now
        leases = [tx.turns.get(turn.id).lease_until_at for turn in turns]
        assert leases == [now + 9_000_000, None, now + 9_000_000, now + 9_000_000]
        assert not tx.listening.renew(held[1:3], 1), "one is on its way, the other taken over"
        assert tx.listening.renew([], 1) == set()
