"""People and their addresses: in bulk, on both databases, and counted by what is asked."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.core.errors import NotFoundError, RowBusy
from paceline.core.events import EventKind
from paceline.engine.ports import Address, Contact, Suppression, Tx
from paceline.store.database import open_store
from tests.store.counting import counted
from tests.store.scene import T0, Scene, settlement


def person(number: int, **more: object) -> Contact:
    return Contact(0, (), {"first_name": f"P{number}"}, **more)  # type: ignore[arg-type]


def put(tx: Tx, count: int, first: int = 0) -> list[int]:
    """So many people, each with an e-mail address."""
    tx.contacts.hold(alone=True)
    ids = tx.contacts.add([person(n) for n in range(first, first + count)], T0)
    mail = [Address("email", f"p{n}@example.com") for n in range(first, first + count)]
    tx.contacts.give(list(zip(ids, mail, strict=True)))
    return ids


def test_people_are_written_and_found_in_bulk(scene: Scene) -> None:
    with scene.store.write() as tx:
        ids = put(tx, 5)
        tx.contacts.give([(ids[0], Address("phone", "+4915112345678"))])
    assert ids == sorted(set(ids))
    with scene.store.read() as tx:
        assert tx.contacts.owners(["p0@example.com", "+4915112345678", "nobody"]) == {
            "p0@example.com": ids[0],
            "+4915112345678": ids[0],
        }
        assert tx.contacts.owners([]) == {} == tx.contacts.several([])
        found = tx.contacts.several([ids[0], ids[4], 99_999])
        assert list(found) == [ids[0], ids[4]]
        assert found[ids[0]] == Contact(
            id=ids[0],
            addresses=(Address("email", "p0@example.com"), Address("phone", "+4915112345678")),
            fields={"first_name": "P0"},
            created_at=T0,
            changed_at=T0,
        )
        assert tx.contacts.find("p3@example.com") == tx.contacts.get(ids[3])
        assert tx.contacts.find("p9@example.com") is None
        with pytest.raises(NotFoundError, match="contact 99999 does not exist"):
            tx.contacts.get(99_999)


def test_what_is_known_of_people_changes(scene: Scene) -> None:
    with scene.store.write() as tx:
        one, two = put(tx, 2)
        changed = Contact(one, (), {"town": 'Köln "am" \\Rhein\n'}, "form", T0 + 1, 0, 0, None)
        tx.contacts.change([changed], T0 + 5)
        tx.contacts.change([], T0 + 9)
        tx.contacts.rename({"p0@example.com": "erased:0"})
        tx.contacts.rename({})
    with scene.store.read() as tx:
        found = tx.contacts.get(one)
        assert (found.fields, found.opt_in_source) == (changed.fields, "form")
        assert (found.opt_in_at, found.created_at, found.changed_at) == (T0 + 1, T0, T0 + 5)
        assert found.addresses == (Address("email", "erased:0"),)
        assert tx.contacts.get(two).changed_at == T0


def test_a_thousand_people_take_a_handful_of_statements(scene: Scene) -> None:
    sizes = {}
    first = 0
    for count in (10, 1_000):
        with scene.store.write() as tx, counted() as asked:
            ids = put(tx, count, first)
            tx.contacts.owners([f"p{n}@example.com" for n in range(first, first + count)])
            people = tx.contacts.several(ids)
            tx.contacts.change(list(people.values()), T0 + 1)
        sizes[count] = len(asked)
        first += count
    assert sizes[10] == sizes[1_000] <= 8


def test_traces_are_every_delivery_to_a_person(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    with scene.store.write() as tx:
        (contact_id,) = put(tx, 1)
    by_target = scene.delivery(run_id, account_id, target="p0@example.com")
    by_person = scene.delivery(run_id, account_id, target="old", contact_id=contact_id)
    scene.delivery(run_id, account_id, target="p1@example.com")
    with scene.store.read() as tx:
        assert tx.contacts.traces(contact_id, ["p0@example.com"]) == [by_target, by_person]
        assert tx.contacts.traces(0, []) == []


def test_blotting_out_leaves_nothing_that_names_the_person(scene: Scene) -> None:
    content = [{"kind": "text", "text": "Dear Anna"}, {"kind": "text", "text": "Bye"}]
    lane, run_id, delivery_id = scene.on_its_way(
        target="anna@example.com", fields={"name": "Anna"}, content=content
    )
    reason = "550 <anna@example.com> is away"
    scene.settle(lane, settlement(delivery_id, run_id, reason=reason))
    other = scene.delivery(run_id, lane.account_id, target="bob@example.com", fields={"n": "B"})
    scene.sql(
        "INSERT INTO alerts (key, kind, text, reasons, count, first_at, last_at) "
        "VALUES ('k', 'k', '<anna@example.com>', '[\"<anna@example.com>\"]', 1, 1, 1)"
    )
    with scene.store.write() as tx:
        (contact_id,) = put(tx, 1)
        text, told = f"{delivery_id}: {reason}", {"reason": reason}
        tx.events.add(EventKind.SENDING_STOPPED, text, at=T0, delivery_id=delivery_id, data=told)
        tx.contacts.blot_out([delivery_id], contact_id, {"anna@example.com": "erased:1"})
        tx.contacts.blot_out([], contact_id, {})
        (event,) = tx.events.latest()
    assert event.text == f"{delivery_id}: 550 <(erased)> is away"
    assert event.data == {"reason": "550 <(erased)> is away"}
    (alert,) = scene.sql("SELECT text, reasons FROM alerts")
    assert tuple(alert) == ("<(erased)>", '["<(erased)>"]')
    found = scene.get(delivery_id)
    assert (found.target, found.fields, found.contact_id) == ("erased:1", {}, contact_id)
    assert (found.reason, found.provider_id) == ("(erased)", None)
    assert found.content == [{"kind": "text", "text": "(erased)"}] * 2, "as many parts as before"
    assert scene.get(other).fields == {"n": "B"}


def test_suppressions_in_bulk(scene: Scene) -> None:
    rows = [Suppression(f"p{n}@example.com", "asked", "import", T0 + n) for n in range(2_500)]
    with scene.store.write() as tx, counted() as asked:
        assert tx.suppressions.add("p7@example.com", "first", "operator", T0)
        assert tx.suppressions.add_many([*rows, rows[0]._replace(reason="later")]) == 2_499
        assert tx.suppressions.add_many(rows) == 0
        assert tx.suppressions.add_many([]) == 0
    assert len(asked) <= 8
    with scene.store.read() as tx:
        assert tx.suppressions.count() == 2_500
        assert sorted(tx.suppressions.walk()) == sorted(
            [*rows[:7], Suppression("p7@example.com", "first", "operator", T0), *rows[8:]]
        )
        found = tx.suppressions.among(["p7@example.com", "p8@example.com", "nobody"])
        assert {key: entry.reason for key, entry in found.items()} == {
            "p7@example.com": "first",
            "p8@example.com": "asked",
        }
        assert tx.suppressions.has("p9@example.com")
        assert tx.suppressions.find("nobody") is None
    with scene.store.write() as tx:
        assert tx.suppressions.remove("p9@example.com")
        assert not tx.suppressions.remove("p9@example.com")


def test_whoever_wants_people_for_himself_waits_for_those_who_share_them(
    fresh_postgres_url: Callable[[], str],
) -> None:
    """Also where he has shared them before: that is not the same."""
    url = fresh_postgres_url()
    first, second = open_store(url), open_store(url)
    with first.write() as sharing, ThreadPoolExecutor(1) as elsewhere:
        sharing.contacts.hold(alone=False)
        sharing.contacts.hold(alone=False)

        def take() -> None:
            with second.write() as tx:
                tx.contacts.hold(alone=False)
                tx._context.ask("SET LOCAL lock_timeout = '100ms'")  # type: ignore[attr-defined]
                tx.contacts.hold(alone=True)

        with pytest.raises(RowBusy):
            elsewhere.submit(take).result(30)
    with second.write() as tx:
        tx.contacts.hold(alone=False)
        tx.contacts.hold(alone=True)
    first.close()
    second.close()
