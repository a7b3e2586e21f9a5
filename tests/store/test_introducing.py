"""People made known by campaigns that are created at the same time: one person, one contact."""

from concurrent.futures import Future, ThreadPoolExecutor

from paceline.core.model import Target
from paceline.engine.commands.introducing import introduced
from paceline.engine.people import recognised
from tests.store.counting import counted
from tests.store.scene import T0, Scene

MAIL, PHONE = "anna@example.com", "+4915112345678"
BOTH = (("email", MAIL), ("phone", PHONE))
WAITING = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
PATIENCE_S = 60


def known(scene: Scene, target: Target) -> int | None:
    with scene.store.write() as tx:
        (found,) = introduced(tx, [target], T0)
    return found.contact_id


def test_both_addresses_lead_to_one_person(scene: Scene) -> None:
    first = known(scene, Target(MAIL, addresses=BOTH))
    assert first is not None and first == known(scene, Target(PHONE, addresses=BOTH))
    with scene.store.read() as tx:
        contact = tx.contacts.get(first)
        assert [tuple(entry) for entry in contact.addresses] == list(BOTH)


def test_a_thousand_take_a_handful_of_statements(scene: Scene) -> None:
    rows = [(("email", f"p{n}@example.com"), ("phone", f"+49151{10**7 + n}")) for n in range(1_000)]
    targets = [Target(row[0][1], addresses=row) for row in rows]
    with scene.store.write() as tx, counted() as asked:
        found = introduced(tx, targets, T0)
    assert len({target.contact_id for target in found}) == 1_000
    assert len(asked) < 15


def test_two_campaigns_at_once_know_the_same_person(postgres_scene: Scene) -> None:
    """The second waits for the first, and finds whom it has made known; who adds nobody goes on."""
    scene = postgres_scene
    with ThreadPoolExecutor(2) as pool:
        with scene.store.write() as tx:
            (first,) = introduced(tx, [Target(MAIL, addresses=BOTH)], T0)
            later: Future[int | None] = pool.submit(known, scene, Target(PHONE, addresses=BOTH))
            while not scene.sql(WAITING):
                assert not later.done(), "it did not wait"
            (stranger,) = pool.submit(_recognised, scene).result(PATIENCE_S)
            assert stranger.contact_id is None
        assert later.result(PATIENCE_S) == first.contact_id


def _recognised(scene: Scene) -> list[Target]:
    with scene.store.write() as tx:
        return recognised(tx, [Target("bob@example.com")])
