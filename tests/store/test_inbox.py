"""What comes in: messages, each once, and mailboxes that one process at a time reads."""

from paceline.engine.ports import Inbound, NewAlert
from tests.store.scene import T0, Scene


def message(number: str = "m1", **more: object) -> Inbound:
    whose = {"chat": "anna@example.com", "sender": "anna@example.com"}
    given: dict[str, object] = {**whose, "text": "Yes", "at": T0, **more}
    return Inbound(number, **given)  # type: ignore[arg-type]


def test_a_message_is_kept_once_and_by_account(scene: Scene) -> None:
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        assert tx.inbox.add(ann, message(), None, T0) is not None
        assert tx.inbox.add(ann, message(), None, T0 + 1) is None
        assert tx.inbox.add(ben, message(), None, T0) is not None
        assert tx.inbox.add(ann, message("m2", at=0, text="a\0b\ud800"), None, T0 + 5) is not None
    with scene.store.read() as tx:
        second, first = tx.inbox.latest(ann)
        assert (first.text, first.at, first.received_at) == ("Yes", T0, T0)
        assert (second.at, second.delivery_id) == (T0 + 5, None)
        assert "\0" not in second.text, "what no database can keep is left out"
        assert [one.account_id for one in tx.inbox.latest(limit=2)] == [ann, ben]


def test_what_somebody_wrote_is_blotted_out(scene: Scene) -> None:
    ann = scene.account()
    with scene.store.write() as tx:
        tx.inbox.add(ann, message("m1"), None, T0)
        tx.inbox.add(ann, message("m2", sender="ben@example.com", chat="ben@example.com"), None, T0)
        assert tx.inbox.blot_out({"anna@example.com": "erased:1", "nobody": "erased:2"}) == 1
        other, gone = tx.inbox.latest(ann)
    assert (gone.sender, gone.chat, gone.text) == ("erased:1", "erased:1", "")
    assert other.text == "Yes"


def test_a_mailbox_is_read_by_one_at_a_time(fresh_scene: Scene) -> None:
    scene = fresh_scene
    ann = scene.account()
    with scene.store.write() as tx:
        held = tx.watches.take(ann, 1_000_000)
        assert held is not None and (held.cursor, held.problem) == ("", "")
        assert tx.watches.take(ann, 1_000_000) is None, "somebody reads it"
        after = tx.watches.change(held, 1_000_000, cursor="7:12", read_at=T0)
        assert after is not None and (after.cursor, after.generation) == ("7:12", held.generation)
        assert tx.watches.change(after, None) is not None, "given back"
        again = tx.watches.take(ann, 1_000_000)
        assert again is not None and again.cursor == "7:12"
        assert tx.watches.change(held, 1_000_000, cursor="9:9") is None, "it was ours before"
        assert [one.cursor for one in tx.watches.list()] == ["7:12"]


def test_a_lease_that_is_over_is_taken_by_another(fresh_scene: Scene) -> None:
    scene = fresh_scene
    ann = scene.account()
    with scene.store.write() as tx:
        first = tx.watches.take(ann, 0)
    with scene.store.write() as tx:
        second = tx.watches.take(ann, 1_000_000)
        assert first is not None and second is not None
        assert second.generation == first.generation + 1
        assert tx.watches.change(first, 1_000_000, cursor="stale") is None


def test_bounces_are_told_apart_by_when_they_came(fresh_scene: Scene) -> None:
    scene = fresh_scene
    lane, _, sent = scene.on_its_way()
    with scene.store.write() as tx:
        assert tx.ledger.bounces(lane.account_id, 0) == (0, 0)
        tx.deliveries.move(sent, "bounce", at=T0 + 5)
        assert tx.ledger.bounces(lane.account_id, T0) == (1, 0)
        assert tx.ledger.bounces(lane.account_id, T0 + 6) == (0, 0)
    scene.sql(f"UPDATE deliveries SET sent_at = {T0} WHERE id = {sent}")
    with scene.store.read() as tx:
        assert tx.ledger.bounces(lane.account_id, T0) == (0, 1)


def test_what_somebody_has_written_since_is_found_by_any_of_their_names(fresh_scene: Scene) -> None:
    scene = fresh_scene
    ann = scene.account()
    with scene.store.write() as tx:
        for number, (sender, at) in enumerate((("eva", T0), ("eva", T0 + 5), ("ben", T0 + 5))):
            said = message()._replace(provider_id=f"m{number}", sender=sender, chat=sender, at=at)
            row = tx.inbox.add(ann, said, None, T0 + 9)
            assert row is not None
            tx.inbox.put_into(row, tx.conversations.hear(ann, sender, T0).id)
        assert [one.provider_id for one in tx.inbox.written_since({"eva", "me"}, T0)] == ["m1"]
        assert tx.inbox.written_since({"eva"}, T0 + 5) == []


def test_how_conversations_stand_can_be_seen_in_one_look(fresh_scene: Scene) -> None:
    scene = fresh_scene
    ann = scene.account()
    with scene.store.write() as tx:
        before = tx.audit.talks()
        assert before._replace(now=0) == (0, (), {}, (), 0, ())
        row = tx.inbox.add(ann, message(), None, T0)
        talk = tx.conversations.hear(ann, "eva", T0)
        assert row is not None
        tx.inbox.put_into(row, talk.id)
        turn = tx.turns.begin(talk.id, "one", 1_000_000, T0)
        tx.alerts.put(NewAlert("conversation.person:1", "conversation.person", "it needs one"), T0)
        after = tx.audit.talks()
        assert turn is not None
        assert after.active == (
            (turn.id, talk.id, "thinking", "one", 1, after.now + 1_000_000, T0, None),
        )
        assert (after.received, after.modes) == (1, {talk.id: "auto"})
        assert after.alerts == ("conversation.person:1",)
        tx.turns.move(turn, "say_nothing", T0)
        assert tx.audit.talks().active == ()


def test_how_far_it_has_been_taken_in_can_be_seen_in_a_few_numbers(fresh_scene: Scene) -> None:
    scene = fresh_scene
    ann = scene.account()
    with scene.store.write() as tx:
        before = tx.audit.mail()
        assert (before.suppressed, before.bounced, before.received) == (0, 0, 0)
        assert (before.alerts, before.watches, before.accounts) == ((0, 0, 0), {}, {ann: "active"})
        held = tx.watches.take(ann, 1_000_000)
        assert held is not None
        tx.inbox.add(ann, message(), None, T0)
        tx.suppressions.add("anna@example.com", "she asked", "operator", T0)
        for _ in range(2):
            tx.alerts.put(NewAlert("k", "mailbox.failing", "it fails", account_id=ann), T0)
        tx.watches.change(held, None, cursor="7", problem="away")
        after = tx.audit.mail()
    assert (after.suppressed, after.received, after.alerts) == (1, 1, (1, 2, 0))
    assert after.watches == {ann: ("7", 1, False, "away")}
