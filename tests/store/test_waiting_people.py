"""Who waits, and for whom: people written to elsewhere, strangers, and what lies far ahead."""

from typing import Any

import pytest

from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import Address, Contact, Far, NewDelivery, Seen
from tests.store.scene import T0, Lane, Scene, intent, settlement


def sent(scene: Scene, lane: Lane, target: str, state: DeliveryState = DeliveryState.SENT) -> int:
    """A delivery to this target that has gone out, or whatever has become of it."""
    run_id = scene.run()
    delivery_id = scene.delivery(run_id, lane.account_id, target=target)
    assert scene.intend(lane, intent(delivery_id, run_id)).intended
    if state is not DeliveryState.SENDING:
        scene.settle(lane, settlement(delivery_id, run_id, state))
    return delivery_id


def person(scene: Scene, *addresses: str) -> int:
    with scene.store.write() as tx:
        (contact_id,) = tx.contacts.add([Contact(0, ())], T0)
        tx.contacts.give([(contact_id, Address("email", address)) for address in addresses])
    return contact_id


def found(
    scene: Scene, runs: list[int], addresses: list[str], people: tuple[int, ...] = ()
) -> list[int]:
    with scene.store.read() as tx:
        return [row.id for row in tx.waiting.to_people(runs, addresses, people)]


# ---------------------------------------------------------------------- strangers


def test_whom_an_account_knows_of_very_many(scene: Scene) -> None:
    lane, other = scene.lane(scene.account()), scene.lane(scene.account())
    odd = ['quo"te', "back\\slash", "ünïcode"]
    for target in odd:
        sent(scene, lane, target)
    sent(scene, lane, "unknown", DeliveryState.UNKNOWN)
    sent(scene, lane, "sending", DeliveryState.SENDING)
    sent(scene, lane, "failed", DeliveryState.FAILED)
    sent(scene, other, "theirs")
    scene.delivery(scene.run(), lane.account_id, target="waiting")
    asked = [*odd, "unknown", "sending", "failed", "theirs", "waiting", *map(str, range(25_000))]
    with scene.store.read() as tx:
        known = tx.waiting.known(lane.account_id, asked)
        assert known == {*odd, "unknown", "sending"}
        assert tx.waiting.known(other.account_id, asked) == {"theirs"}
        assert tx.waiting.known(lane.account_id, []) == set()
        # One at a time the answer is the same.
        for target in asked[:9]:
            assert tx.deliveries.knows(lane.account_id, target) == (target in known)


def nobodys(scene: Scene, run_id: int, target: str, due_at: int = T0) -> int:
    return scene.delivery(run_id, None, target=target, due_at=due_at)  # type: ignore[arg-type]


def test_a_stretch_of_a_pool_says_whom_the_account_knows(scene: Scene) -> None:
    lane, run_id = scene.lane(scene.account()), scene.run()
    with scene.store.write() as tx:
        tx.pools.open(run_id, [lane.account_id])
    sent(scene, lane, "old-1")
    sent(scene, lane, "old-2", DeliveryState.UNKNOWN)
    # All are due at one instant but the last two.
    names = ["new-1", "old-1", "new-2", "new-3", "old-2"]
    numbers = [nobodys(scene, run_id, name) for name in names]
    later = nobodys(scene, run_id, "new-4", T0 + 5)
    nobodys(scene, run_id, "old-1", T0 + 9)
    scene.delivery(run_id, lane.account_id, target="old-1")
    with scene.store.read() as tx:

        def look(behind: tuple[int, int], until_at: int, limit: int) -> list[Seen]:
            return tx.path.acquainted(lane.account_id, run_id, behind, until_at, limit)

        first = look((-1, 0), T0 + 5, 2)
        assert first == [Seen(T0, numbers[0], False), Seen(T0, numbers[1], True)]
        rest = look((T0, numbers[1]), T0 + 5, 9)
        assert [(one.id, one.known) for one in rest] == [
            (numbers[2], False),
            (numbers[3], False),
            (numbers[4], True),
            (later, False),
        ]
        assert look((T0, numbers[4]), T0 + 4, 9) == []
        row = tx.path.one(numbers[1])
        assert (row.id, row.target, row.account_id) == (numbers[1], "old-1", None)
        assert row == tx.path.pooled(run_id, T0, 2)[1]
        assert tx.path.next_pooled_at(run_id) == T0
        assert tx.path.next_pooled_at(run_id, T0) == T0 + 5
        assert tx.path.next_pooled_at(run_id, T0 + 9) is None


@pytest.mark.parametrize("name", ["acquainted", "pooled"])
def test_what_is_nobodys_is_found_in_the_queues_own_order(scene: Scene, name: str) -> None:
    """However many are due, even at the same instant, they are not gone through to be sorted."""
    run_id, account_id = scene.run(), scene.account()
    with scene.store.write() as tx:
        tx.pools.open(run_id, [account_id])
        rows = [
            NewDelivery(run_id, None, number, f"p-{number}", scheduled_at=T0, due_at=T0)
            for number in range(4_000)
        ]
        tx.deliveries.add(rows, T0)
    sqlite = scene.kind == "sqlite"
    if not sqlite:
        scene.sql("ANALYZE deliveries")
    with scene.store.read() as tx:
        path: Any = tx.path
        query = getattr(path.queries, name).replace("{limit}", "64")
        places = {"acquainted": (account_id, account_id, run_id, T0, T0, 1_000)}
        cursor = path._context.cursor()
        explain = "EXPLAIN QUERY PLAN" if sqlite else "EXPLAIN"
        cursor.execute(f"{explain} {query}", places.get(name, (run_id, T0)))
        told = " ".join(str(line) for line in cursor.fetchall()).lower()
    assert "ix_deliveries_due" in told, told
    # Tables that happen to be empty may be read as a whole; what waits may not.
    assert not any(word in told for word in ("sort", "temp b-tree", "seq scan on del")), told


# ---------------------------------------------------------------------- elsewhere


def test_where_anything_waits_in_a_running_run(scene: Scene) -> None:
    one, two = scene.account(), scene.account()
    ours, pooled, paused = scene.run(), scene.run(), scene.run(RunState.PAUSED)
    with scene.store.write() as tx:
        tx.pools.open(pooled, [one, two])
    scene.delivery(ours, one)
    scene.delivery(paused, two)
    nobodys(scene, pooled, "somebody")
    lane = scene.lane(two)
    sent(scene, lane, "gone")
    with scene.store.read() as tx:
        assert tx.waiting.places() == {(ours, one), (pooled, None)}


def test_what_waits_for_people_at_any_of_their_addresses(scene: Scene) -> None:
    account_id, run_id, other = scene.account(), scene.run(), scene.run()
    anna, bert = person(scene, "anna@x", "anna-2"), person(scene, "bert@x")
    by_person = scene.delivery(run_id, account_id, target="anna-2", contact_id=anna)
    once_hers = scene.delivery(run_id, account_id, target="anna-old", contact_id=anna)
    unnamed = scene.delivery(run_id, account_id, target="anna@x")
    berts = scene.delivery(run_id, account_id, target="bert@x", contact_id=bert)
    nobody = scene.delivery(run_id, account_id, target="carl")
    theirs = scene.delivery(other, account_id, target="carl")
    lane = scene.lane(account_id)
    gone = scene.delivery(run_id, account_id, target="carl")
    assert scene.intend(lane, intent(gone, run_id)).intended
    assert found(scene, [run_id], [], (anna,)) == [by_person, once_hers, unnamed]
    assert found(scene, [run_id], ["carl", "anna@x"]) == [unnamed, nobody]
    assert found(scene, [other, run_id], ["carl"], (bert,)) == [berts, nobody, theirs]
    assert found(scene, [], ["carl"]) == found(scene, [run_id], []) == []
    many = [str(number) for number in range(25_000)]
    assert found(scene, [run_id], [*many, "carl"], (*range(900_000, 925_000), bert)) == [
        berts,
        nobody,
    ]


# ---------------------------------------------------------------------- far ahead


def following(scene: Scene, run_id: int, account_id: int, step: int, after_id: int) -> int:
    with scene.store.write() as tx:
        new = NewDelivery(run_id, account_id, 0, "somebody", scheduled_at=T0, step=step)
        number = tx.deliveries.add_one(new, T0)
    scene.sql("UPDATE deliveries SET after_id = :after WHERE id = :id", after=after_id, id=number)
    return number


def test_only_what_is_due_first_and_what_follows_it(scene: Scene) -> None:
    one, two, run_id = scene.account(), scene.account(), scene.run()
    with scene.store.write() as tx:
        tx.pools.open(run_id, [one, two])
    due = [scene.delivery(run_id, (one, two)[n % 2], due_at=T0 + n) for n in range(6)]
    pooled = nobodys(scene, run_id, "somebody", T0 + 8)
    follows = following(scene, run_id, one, 2, due[0])
    last = following(scene, run_id, one, 3, follows)
    following(scene, run_id, one, 2, due[4])
    with scene.store.read() as tx:
        near = [row.id for row in tx.waiting.deliveries([run_id], T0 + 2)]
        assert near == [*due[:3], follows, last]
        assert tx.waiting.nth_due_at([run_id], 2) == T0 + 2
        assert tx.waiting.nth_due_at([run_id], 10) is None, "there are no more than that"
        assert tx.waiting.nth_due_at([], 0) is None
        far = tx.waiting.beyond([run_id], T0 + 2)
        assert sorted(far, key=str) == sorted(
            [
                Far(run_id, one, 1, T0 + 4, T0 + 4),
                Far(run_id, two, 2, T0 + 3, T0 + 5),
                Far(run_id, None, 1, T0 + 8, T0 + 8),
            ],
            key=str,
        )
        by_owner = {lot.account_id: lot for lot in far}
        assert tx.waiting.due_between(by_owner[two], T0 + 3, T0 + 5) == 1
        assert tx.waiting.due_between(by_owner[two], T0, T0 + 9) == 3
        assert tx.waiting.due_between(by_owner[None], T0, T0 + 8) == 1
        assert [row.id for row in tx.waiting.deliveries([run_id])][:7] == [*due, pooled]
