"""Erasing on both databases, and against whoever creates deliveries at the same moment."""

from concurrent.futures import ThreadPoolExecutor

from paceline.core.model import Target
from paceline.core.outcome import unknown
from paceline.core.states import DeliveryState
from paceline.engine.commands import erasing, suppressions
from paceline.engine.commands.erasing import Erased
from paceline.engine.commands.suppressions import Unwanted
from paceline.engine.people import recognised
from paceline.engine.ports import Address, Contact, NewDelivery
from tests.store.scene import T0, Scene, settlement

MAIL, PHONE = "anna@example.com", "+4915112345678"


def anna(scene: Scene) -> int:
    with scene.store.write() as tx:
        (contact_id,) = tx.contacts.add([Contact(0, (), {"name": "Anna"}, "form", T0)], T0)
        both = (Address("email", MAIL), Address("phone", PHONE))
        tx.contacts.give([(contact_id, entry) for entry in both])
        tx.audiences.add(tx.audiences.open("news", T0).id, [contact_id])
    return contact_id


def erase(scene: Scene, address: str = MAIL) -> Erased:
    with scene.store.write() as tx:
        return erasing.erase(tx, address, T0 + 5)


def test_every_trace_is_replaced_and_the_counts_add_up(scene: Scene) -> None:
    contact_id = anna(scene)
    lane, run_id, sent = scene.on_its_way(target=PHONE)
    scene.settle(lane, settlement(sent, run_id))
    waits = scene.delivery(run_id, lane.account_id, target=MAIL, contact_id=contact_id)
    planned = scene.delivery(run_id, lane.account_id, target="Anna@old", due_at=None)
    scene.sql("UPDATE deliveries SET contact_id = :c WHERE id = :d", c=contact_id, d=planned)
    assert erase(scene, "ANNA@example.com") == Erased(3, 2, 1)
    assert erase(scene, PHONE) == Erased(before=True)
    found = [scene.get(number) for number in (sent, waits, planned)]
    assert [row.state for row in found] == ["sent", "cancelled", "cancelled"]
    assert all(row.target.startswith("erased:") for row in found)
    assert {row.contact_id for row in found} == {contact_id}
    assert len({row.target for row in found}) == 3, "addresses can still be told apart"
    with scene.store.read() as tx:
        left = tx.contacts.get(contact_id)
        assert (left.fields, left.opt_in_source, left.opt_in_at) == ({}, "", None)
        assert left.erased_at == T0 + 5
        assert {entry.address for entry in left.addresses} == {found[0].target, found[1].target}
        assert all(tx.suppressions.has(row.target) for row in found)
        audit = tx.audit
        assert audit.recount() == audit.misplaced() == audit.suppressed_after() == []
        (event,) = tx.events.latest(limit=1)
    assert event.text == "a contact was erased: 3 deliveries, 2 of them cancelled"


def test_a_doubt_about_them_is_left_to_a_person(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way(target=MAIL)
    lost = settlement(
        delivery_id,
        run_id,
        DeliveryState.UNKNOWN,
        unknown("no answer"),
        due_at=T0 + 9,
        parts_done=0,
    )
    scene.settle(lane, lost._replace(reason="no answer"))
    assert erase(scene) == Erased(1, 0, 0)
    found = scene.get(delivery_id)
    assert (found.state, found.due_at) == ("unknown", None)
    assert found.reason == "contact was erased, held for a person"


def test_lists_of_opt_outs_do_not_name_them_again(scene: Scene) -> None:
    anna(scene)
    erase(scene)
    with scene.store.write() as tx:
        assert not suppressions.add(tx, MAIL, "again", T0 + 6)
        rows = [Unwanted(MAIL, "listed"), Unwanted("bob@example.com", "listed")]
        assert suppressions.take_in(tx, rows, T0 + 7) == 1
        assert MAIL not in {entry.address for entry in tx.suppressions.walk()}


def test_erasing_waits_for_a_campaign_that_is_being_created(postgres_scene: Scene) -> None:
    """Else the campaign would have been made without knowing, and the erasure without seeing it."""
    scene, account_id, run_id = postgres_scene, postgres_scene.account(), postgres_scene.run()
    anna(scene)
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as pool:
        with scene.store.write() as tx:
            (target,) = recognised(tx, [Target("Anna@example.com")])
            new = NewDelivery(run_id, account_id, 1, target.address, T0, T0)
            delivery_id = tx.deliveries.add_one(new, T0)
            later = pool.submit(erase, scene)
            while not scene.sql(waiting):
                assert not later.done(), "it did not wait"
        assert later.result() == Erased(1, 1, 1)
    assert scene.state(delivery_id) == "cancelled"


def test_a_campaign_waits_for_an_erasure(postgres_scene: Scene) -> None:
    scene = postgres_scene
    anna(scene)
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

    def create() -> str:
        with scene.store.write() as tx:
            (target,) = recognised(tx, [Target(MAIL)])
        return target.address

    with ThreadPoolExecutor(1) as pool:
        with scene.store.write() as tx:
            erasing.erase(tx, MAIL, T0)
            later = pool.submit(create)
            while not scene.sql(waiting):
                assert not later.done(), "it did not wait"
        assert later.result().startswith("erased:")
