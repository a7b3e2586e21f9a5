"""What many people write at once: the statements that are the same for all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from paceline.core.states import DeliveryState
from paceline.engine.ports import Inbound
from paceline.engine.ports.listening import Heard, Waiting
from paceline.store.base import dump
from tests.store.counting import counted
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


def test_conversations_that_there_are_are_held_by_whoever_looks(scene: Scene) -> None:
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        known = tx.conversations.hear(ann, "ab", T0)
        tx.conversations.change(known.id, first_at=T0, due_at=T0 + 9)
    with scene.store.write() as tx:
        chats = [(ann, "a\0b"), (ann, "ab"), (ben, "ab"), (ann, EVA)]
        held = tx.listening.look([ann], [], chats=chats).held
        assert held == {(ann, "a\0b"): held[ann, "ab"], (ann, "ab"): tx.conversations.get(known.id)}
        made = tx.listening.open({(ann, "a\0b"): T0 + 5, (ben, "ab"): T0 + 5})
        assert made[ann, "a\0b"] == held[ann, "ab"], "somebody was faster"
        assert (made[ben, "ab"].heard_at, made[ben, "ab"].mode) == (T0 + 5, "auto")
        assert tx.listening.open({}) == {}


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("says", [True, False])
def test_messages_and_how_conversations_stand_are_written_together(
    scene: Scene, says: bool, waits: bool
) -> None:
    ann = scene.account()
    with scene.store.write() as tx:
        talk = tx.conversations.hear(ann, EVA, T0)
        messages = [heard(ann, "m1", where=talk.id), heard(ann, "m2", where=talk.id)]
        waiting = Waiting(talk.id, T0 + 1, T0, T0 + 1, T0 + 9)
        numbers = tx.listening.add(messages if says else [], [waiting] if waits else [])
        assert [one.id for one in tx.inbox.waiting(talk.id)] == numbers
        assert len(numbers) == 2 * says
        after = tx.conversations.get(talk.id)
    times = {"heard_at": T0 + 1, "first_at": T0, "last_at": T0 + 1, "due_at": T0 + 9}
    assert after == (talk._replace(**times) if waits else talk)


def test_few_statements_take_in_all_of_them(scene: Scene) -> None:
    ann = scene.account()
    chats = [(ann, f"+346001112{number:02}") for number in range(32)]
    with scene.store.write() as tx:
        tx.listening.open(dict.fromkeys(chats, T0))
    with scene.store.write() as tx, counted() as asked:
        looked = tx.listening.look([ann], ["hook.1"], chats, [(ann, "m1")], chats)
        waiting = [Waiting(one.id, T0, T0, T0, T0) for one in looked.held.values()]
        tx.listening.add(
            [heard(ann, f"m{place}", chat) for place, (_, chat) in enumerate(chats)], waiting
        )
    assert len(asked) == (4 if scene.kind == "postgresql" else 7), asked


def test_what_is_known_is_looked_up_by_its_names_also_in_a_plan_of_an_empty_table(
    postgres_scene: Scene,
) -> None:
    """Such a plan is kept, while the table grows by thousands a second."""
    ann = postgres_scene.account()
    names = [(ann, EVA)]
    with postgres_scene.store.write() as tx:
        tx.listening.look([ann], [], names, [(ann, "m1")], names)
        cursor = tx._context.cursor()  # type: ignore[attr-defined]
        (text,) = [
            text
            for (name, text) in cursor.execute(
                "SELECT name, statement FROM pg_prepared_statements"
            ).fetchall()
            if "AS (" in text and "inbound" in text and "INSERT" not in text
        ]
        cursor.execute(f"PREPARE again AS {text}")
        marks = ", ".join(["NULL"] * (text.count("$")))
        plan = "\n".join(row[0] for row in cursor.execute(f"EXPLAIN EXECUTE again ({marks})"))
    assert "Index Only Scan using uq_inbound_account_id on inbound" in plan, plan
    assert "Seq Scan" not in plan, plan


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
    failed = "UPDATE deliveries SET state = 'failed', sent_at = NULL, parts_done = "
    for parts, found in ((0, set()), (1, expected)):
        scene.sql(f"{failed} {parts} WHERE id = {sent}")
        with scene.store.write() as tx:
            assert tx.listening.minded(names) == found, "of half a message they have got something"
            assert tx.listening.look([ann], [], names, []).minded == found
            odd = [(ann, f"{target[:3]}\0{target[3:]}"), (ann, "\0")]
            kept_as = frozenset(odd[:1] if found else ())
            assert tx.listening.minded(odd) == tx.listening.look([ann], [], odd, []).minded
            assert tx.listening.minded(odd) == kept_as
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
        taken = tx.turns.take_over(turns[2], "two", 1_000, T0, 0)
        assert taken is not None
        held = [(turn.id, turn.generation) for turn in (*turns, taken)]
        renewed = tx.listening.renew(held, 9_000_000)
        assert renewed == {turns[0].id, taken.id, turns[3].id}
        now = tx.now
        leases = [tx.turns.get(turn.id).lease_until_at for turn in turns]
        assert leases == [now + 9_000_000, None, now + 9_000_000, now + 9_000_000]
        assert not tx.listening.renew(held[1:3], 1), "one is on its way, the other taken over"
        assert tx.listening.renew([], 1) == set()
