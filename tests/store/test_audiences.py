"""Audiences: members in their order, a revision that tells of changes, and statements by chunk."""

from paceline.engine.audience_columns import Columns
from paceline.engine.commands import audiences
from paceline.engine.commands.audiences import Taken
from tests.store.counting import counted
from tests.store.scene import T0, Scene
from tests.store.test_contacts import put

COLUMNS = Columns.of(["email", "town"])


def test_members_keep_their_order_and_join_once(scene: Scene) -> None:
    with scene.store.write() as tx:
        ids = put(tx, 5)
        made = tx.audiences.open("news", T0)
        assert tx.audiences.open("news", T0 + 1) == made
        assert tx.audiences.add(made.id, [ids[3], ids[1], ids[3]]) == 2
        assert tx.audiences.add(made.id, [ids[1], ids[0]]) == 1
        assert tx.audiences.add(made.id, []) == 0
    with scene.store.read() as tx:
        members = [member.contact.id for member in tx.audiences.members(made.id)]
        assert members == [ids[3], ids[1], ids[0]]
        assert tx.audiences.of_contact(ids[1]) == ["news"]
        assert tx.audiences.of_contact(ids[4]) == []
        (found,) = tx.audiences.list()
    assert (found.name, found.members, found.revision, found.created_at) == ("news", 3, 0, T0)


def test_members_come_a_page_at_a_time(scene: Scene) -> None:
    with scene.store.write() as tx:
        ids = put(tx, 4_100)
        audience_id = tx.audiences.open("news", T0).id
        tx.audiences.add(audience_id, ids)
    with scene.store.read() as tx, counted() as asked:
        members = [member.contact.id for member in tx.audiences.members(audience_id)]
    assert members == ids
    assert len(asked) == 4, "three pages, and one to see that there is no more"


def test_whoever_leaves_changes_every_audience_they_were_in(scene: Scene) -> None:
    with scene.store.write() as tx:
        one, two = put(tx, 2)
        first, second, third = (tx.audiences.open(name, T0).id for name in "abc")
        tx.audiences.add(first, [one, two])
        tx.audiences.add(second, [one])
        tx.audiences.changed(third, T0 + 1)
        assert tx.audiences.leave(one, T0 + 5) == 2
        assert tx.audiences.leave(one, T0 + 6) == 0
        found = {a.name: (a.members, a.revision, a.changed_at) for a in tx.audiences.list()}
        assert found == {"a": (1, 1, T0 + 5), "b": (0, 1, T0 + 5), "c": (0, 1, T0 + 1)}
        tx.audiences.remove(first)
        assert tx.audiences.find("a") is None
        assert tx.contacts.find("p1@example.com") is not None, "people stay"


def test_a_chunk_costs_the_same_few_statements_whatever_its_size(scene: Scene) -> None:
    with scene.store.write() as tx:
        audience_id = tx.audiences.open("news", T0).id
    costs = []
    for first, count in ((0, 10), (10, 1_000), (10, 1_000)):
        rows = [
            COLUMNS.person(n, {"email": f"p{n}@example.com", "town": "Bonn"})
            for n in range(first, first + count)
        ]
        with scene.store.write() as tx, counted() as asked:
            taken, rejects = audiences.take_in(tx, audience_id, rows, T0)
        assert rejects == []
        costs.append((taken, len(asked)))
    (ten, small), (thousand, large), (again, known) = costs
    assert (ten, thousand, again) == (Taken(10, 0, 10), Taken(1_000, 0, 1_000), Taken())
    assert small == large <= 14
    assert known < large
    with scene.store.read() as tx:
        found = tx.audiences.find("news")
    assert found is not None
    assert (found.members, found.revision) == (1_010, 2), "the same again is no change"
