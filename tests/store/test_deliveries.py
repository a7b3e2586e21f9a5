"""Deliveries outside the hot path: created, released, moved, postponed, paged."""

import pytest

from paceline.core.errors import IllegalTransition, NotFoundError, StoreError
from paceline.core.states import DELIVERY, DeliveryState
from paceline.engine.ports import NewDelivery
from paceline.store.schema import IN_FLIGHT
from tests.store.scene import T0, Scene, intent, settlement

D = DeliveryState
EVENTS = sorted({event for _, event in DELIVERY.table} - {"intend"})


def _put(scene: Scene, delivery_id: int, state: DeliveryState) -> None:
    """Bring a ready delivery to another state by the shortest legal way."""
    ways = {
        D.READY: [],
        D.SENDING: ["intend"],
        D.SENT: ["intend", "accept"],
        D.FAILED: ["intend", "fail"],
        D.BOUNCED: ["intend", "bounce"],
        D.UNKNOWN: ["intend", "lose"],
        D.SKIPPED: ["skip"],
        D.CANCELLED: ["cancel"],
    }
    for event in ways[state]:
        if event == "intend":
            delivery = scene.get(delivery_id)
            lane = scene.lane(delivery.account_id)
            assert scene.intend(lane, intent(delivery_id, delivery.run_id)).intended
        else:
            with scene.store.write() as tx:
                assert tx.deliveries.move(delivery_id, event, at=T0 + 1) is not None


def test_creating_counts(scene: Scene) -> None:
    first, second, run_id = scene.account(), scene.account(), scene.run()
    rows = [
        NewDelivery(run_id, account_id, position, f"{position}@example.com", T0, due_at=due_at)
        for position, (account_id, due_at) in enumerate(
            [(first, None), (first, T0), (second, None), (second, None)]
        )
    ]
    with scene.store.write() as tx:
        assert tx.deliveries.add(iter(rows), T0) == 4
        assert tx.deliveries.add([], T0) == 0
        assert tx.runs.get(run_id).total == 4
        accounts = tx.runs.accounts(run_id)
        counts = tx.runs.counts(run_id)
    assert {a: {s: n for s, n in by.items() if n} for a, by in accounts.items()} == {
        first: {D.PLANNED: 1, D.READY: 1},
        second: {D.PLANNED: 2},
    }
    assert list(counts) == list(D)
    assert (counts[D.PLANNED], counts[D.READY], counts[D.SENT]) == (3, 1, 0)


def test_an_exception_leaves_nothing_behind(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    with pytest.raises(ZeroDivisionError), scene.store.write() as tx:
        tx.deliveries.add_one(NewDelivery(run_id, account_id, 1, "a", T0), T0)
        raise ZeroDivisionError
    assert scene.counts(run_id) == {}
    with scene.store.read() as tx:
        assert tx.runs.get(run_id).total == 0


def test_a_delivery_of_no_run_is_refused_by_the_database(scene: Scene) -> None:
    account_id = scene.account()
    with pytest.raises(StoreError), scene.store.write() as tx:
        tx.deliveries.add([NewDelivery(999_999, account_id, 1, "a", T0)], T0)


def test_releasing_makes_the_plan_due(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    with scene.store.write() as tx:
        plan = [
            NewDelivery(run_id, account_id, n, f"{n}@example.com", T0 + n * 10) for n in range(4)
        ]
        tx.deliveries.add(plan, T0)
        assert tx.deliveries.release(run_id, T0 + 15, T0) == 4
        assert tx.deliveries.release(run_id, T0 + 15, T0) == 0
        due = [d.due_at for d in tx.deliveries.page(run_id=run_id)]
    assert due == [T0 + 15, T0 + 15, T0 + 20, T0 + 30]
    assert scene.counts(run_id) == {"ready": 4}


@pytest.mark.parametrize("state", [state for state in D if state is not D.PLANNED])
def test_every_event_moves_exactly_where_the_table_says(scene: Scene, state: DeliveryState) -> None:
    for event in EVENTS:
        account_id, run_id = scene.account(), scene.run()
        delivery_id = scene.delivery(run_id, account_id)
        _put(scene, delivery_id, state)
        before = scene.get(delivery_id)
        expected = DELIVERY.table.get((state, event))
        if event == "lose" and state is not D.SENDING:
            expected = None  # nothing of it was lost before: tests/store/test_doubts.py
        with scene.store.write() as tx:
            found = tx.deliveries.move(delivery_id, event, at=T0 + 9, reason="why")
        assert found is expected, event
        after = scene.get(delivery_id)
        if expected is None:
            assert after == before
        else:
            assert (after.state, after.reason) == (expected, "why")
        assert scene.counts(run_id) == {after.state.value: 1}


def test_events_that_cannot_be_are_defects(scene: Scene) -> None:
    delivery_id = scene.delivery(scene.run(), scene.account())
    with scene.store.write() as tx:
        with pytest.raises(IllegalTransition, match="explode"):
            tx.deliveries.move(delivery_id, "explode", at=T0)
        with pytest.raises(IllegalTransition, match="path"):
            tx.deliveries.move(delivery_id, "intend", at=T0)
        with pytest.raises(NotFoundError, match="delivery 999999 does not exist"):
            tx.deliveries.move(999_999, "skip", at=T0)
        with pytest.raises(NotFoundError, match="delivery 999999 does not exist"):
            tx.deliveries.get(999_999)


def test_a_move_sets_what_belongs_to_its_state(scene: Scene) -> None:
    run_id, account_id = scene.run(), scene.account()
    delivery_id = scene.delivery(run_id, account_id)
    _put(scene, delivery_id, D.UNKNOWN)
    with scene.store.write() as tx:
        assert tx.deliveries.move(
            delivery_id, "retry", at=T0 + 5, due_at=T0 + 8, retries=2, parts_done=1
        )
    delivery = scene.get(delivery_id)
    assert (delivery.due_at, delivery.retries, delivery.parts_done) == (T0 + 8, 2, 1)
    other = scene.delivery(scene.run(), scene.account())
    _put(scene, other, D.UNKNOWN)
    with scene.store.write() as tx:
        assert tx.deliveries.move(other, "accept", at=T0 + 6, provider_id="id-7") is D.SENT
    sent = scene.get(other)
    assert (sent.sent_at, sent.provider_id, sent.due_at) == (T0 + 6, "id-7", None)


def test_no_event_leads_from_one_of_its_sources_to_another() -> None:
    for event in EVENTS:
        sources = DELIVERY.sources(event)
        assert not {DELIVERY.next(source, event) for source in sources} & set(sources), event


def test_a_whole_run_is_moved_where_the_table_allows(scene: Scene) -> None:
    first, second, run_id = scene.account(), scene.account(), scene.run()
    with scene.store.write() as tx:
        tx.deliveries.add([NewDelivery(run_id, first, n, "p", T0) for n in range(3)], T0)
    ready = [scene.delivery(run_id, second) for _ in range(2)]
    _put(scene, ready[0], D.SENDING)
    with scene.store.write() as tx:
        assert tx.deliveries.move_all(run_id, "cancel", at=T0, account_id=second) == 1
        assert tx.deliveries.move_all(run_id, "cancel", at=T0, reason="over") == 3
        assert tx.deliveries.move_all(run_id, "cancel", at=T0) == 0
        with pytest.raises(IllegalTransition):
            tx.deliveries.move_all(run_id, "explode", at=T0)
    assert scene.counts(run_id) == {"cancelled": 4, "sending": 1}
    with scene.store.write() as tx:
        assert tx.deliveries.move_all(run_id, "fail", at=T0) == 1
        assert tx.deliveries.move_all(run_id, "retry", at=T0 + 3) == 1
    assert scene.get(ready[0]).due_at == T0 + 3


def test_only_what_waits_is_postponed(scene: Scene) -> None:
    run_id = scene.run()
    waiting, moving, doubtful = (scene.delivery(run_id, scene.account()) for _ in range(3))
    _put(scene, moving, D.SENDING)
    _put(scene, doubtful, D.UNKNOWN)
    with scene.store.write() as tx:
        assert tx.deliveries.postpone(waiting, T0 + 77, "later", 3)
        assert not tx.deliveries.postpone(waiting, None, "never")
        assert not tx.deliveries.postpone(moving, T0 + 77, "later")
        assert tx.deliveries.postpone(doubtful, T0 + 77, "ask again")
        assert tx.deliveries.postpone(doubtful, None, "a person must look")
        assert not tx.deliveries.postpone(999_999, T0, "nobody")
    delivery = scene.get(waiting)
    assert (delivery.due_at, delivery.reason, delivery.retries) == (T0 + 77, "later", 3)
    assert scene.get(doubtful).due_at is None
    assert scene.counts(run_id) == {"ready": 1, "sending": 1, "unknown": 1}


def test_pages_follow_each_other_without_gap_or_overlap(scene: Scene) -> None:
    first, second, run_id, other = scene.account(), scene.account(), scene.run(), scene.run()
    ids = [scene.delivery(run_id, account) for _ in range(5) for account in (first, second)]
    scene.delivery(other, first)
    found: list[int] = []
    with scene.store.write() as tx:
        tx.deliveries.move(ids[4], "skip", at=T0)
        while page := tx.deliveries.page(
            run_id=run_id, after_id=found[-1] if found else 0, limit=3
        ):
            found += [delivery.id for delivery in page]
        assert found == ids
        assert [d.id for d in tx.deliveries.page(run_id=run_id, account_id=second)] == ids[1::2]
        assert [d.id for d in tx.deliveries.page(state=D.SKIPPED)] == [ids[4]]
        assert len(tx.deliveries.page()) == 11


def test_contacts_are_remembered_across_accounts(scene: Scene) -> None:
    run_id = scene.run()
    for at in (30, 10, 20):
        lane = scene.lane(scene.account())
        delivery_id = scene.delivery(run_id, lane.account_id, target="ann@example.com")
        scene.intend(lane, intent(delivery_id, run_id))
        scene.settle(lane, settlement(delivery_id, run_id, settled_at=T0 + at))
    scene.delivery(run_id, scene.account(), target="bob@example.com")
    with scene.store.read() as tx:
        targets = ["ann@example.com", "bob@example.com", *(f"{n}@x" for n in range(1_500))]
        assert tx.deliveries.contacted(targets, T0 + 15) == {"ann@example.com": (T0 + 20, T0 + 30)}
        assert tx.deliveries.contacted([], 0) == {}


def test_what_may_have_reached_somebody_is_a_contact_too(scene: Scene) -> None:
    run_id, target = scene.run(), "ann@example.com"
    sending, doubtful, refused, waiting = (
        scene.delivery(run_id, scene.account(), target=target) for _ in range(4)
    )
    for n, delivery_id in enumerate((sending, doubtful, refused)):
        lane = scene.lane(scene.get(delivery_id).account_id)
        scene.intend(lane, intent(delivery_id, run_id, at=T0 + 10 * n))
        if delivery_id != sending:
            state = D.UNKNOWN if delivery_id == doubtful else D.FAILED
            scene.settle(lane, settlement(delivery_id, run_id, state, settled_at=T0 + 500))
    assert scene.state(waiting) is D.READY
    with scene.store.read() as tx:
        assert tx.deliveries.contacted([target], T0) == {target: (T0, T0 + 10)}
        assert tx.deliveries.contacted([target], T0 + 5) == {target: (T0 + 10,)}
        assert tx.deliveries.contacted([target], T0 + 11) == {}


def test_contacts_under_way_are_found_by_their_index(sqlite_scene: Scene) -> None:
    plan = sqlite_scene.sql(
        f"EXPLAIN QUERY PLAN SELECT id FROM deliveries WHERE target = 'a' AND {IN_FLIGHT}"
    )
    assert "ix_deliveries_in_flight" in plan[0][3]


def test_a_hundred_thousand_are_created_without_being_held_in_memory(scene: Scene) -> None:
    accounts, run_id = [scene.account() for _ in range(4)], scene.run()
    asked = 0

    def rows() -> object:
        nonlocal asked
        for position in range(100_000):
            asked += 1
            yield NewDelivery(
                run_id,
                accounts[position % 4],
                position,
                f"{position}@example.com",
                T0,
                due_at=T0 + position,
                fields={"name": "N"},
            )

    with scene.store.write() as tx:
        created = tx.deliveries.add(rows(), T0)  # type: ignore[arg-type]
    scene.store.analyse()
    assert created == asked == 100_000
    assert scene.counts(run_id) == {"ready": 100_000}
    with scene.store.read() as tx:
        assert tx.runs.get(run_id).total == 100_000
        assert tx.path.next_due_at(accounts[3], run_id) == T0 + 3
        assert len(tx.path.due(accounts[1], run_id, T0 + 400_000, 50)) == 50
