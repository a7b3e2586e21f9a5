"""The audit finds what was planted, and nothing where all is well."""

import sqlite3
from dataclasses import replace

from paceline.core.outcome import unknown
from paceline.core.states import DeliveryState
from tests.store.scene import T0, Scene, intent, settlement

UNCHECKED = {
    "sqlite": "PRAGMA ignore_check_constraints = ON",
    "postgresql": "ALTER TABLE deliveries "
    + ", ".join(
        f"DROP CONSTRAINT IF EXISTS ck_deliveries_{name}"
        for name in ("due_waits", "ready_is_due", "sent_has_instant")
    ),
}


def test_a_lost_count_is_found(scene: Scene) -> None:
    _, run_id, _ = scene.on_its_way()
    with scene.store.read() as tx:
        assert tx.audit.recount() == []
    scene.sql("UPDATE counters SET n = 3 WHERE run_id = :r AND state = 'sending'", r=run_id)
    scene.sql("UPDATE runs SET total = 7 WHERE id = :r", r=run_id)
    with scene.store.read() as tx:
        counter, total = tx.audit.recount()
    assert f"run {run_id}" in counter
    assert counter.endswith("the counter says 3 sending, there are 1")
    assert total == f"run {run_id}: its total says 7, there are 1 deliveries"


def test_a_delivery_without_its_counter_is_found(scene: Scene) -> None:
    scene.on_its_way()
    scene.sql("DELETE FROM counters")
    with scene.store.read() as tx:
        assert len(tx.audit.recount()) == 1


def test_a_part_accepted_twice_is_found(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    again = settlement(delivery_id, run_id, DeliveryState.READY, due_at=T0, parts_done=0)
    scene.settle(lane, again)
    scene.intend(lane, intent(delivery_id, run_id, attempt=2))
    with scene.store.read() as tx:
        assert tx.audit.accepted_twice() == []
    scene.settle(lane, settlement(delivery_id, run_id, attempt=2))
    with scene.store.read() as tx:
        assert tx.audit.accepted_twice() == [(delivery_id, 0, 2)]


def test_a_doubt_resolved_as_accepted_is_accepted_once(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.settle(lane, settlement(delivery_id, run_id, DeliveryState.UNKNOWN, unknown("timeout")))
    scene.settle(lane, settlement(delivery_id, run_id))
    with scene.store.write() as tx:
        resolved = tx.ledger.of_delivery(delivery_id)[2]
        assert (resolved.kind, resolved.outcome) == ("resolution", "accepted")
        assert tx.audit.accepted_twice() == []
        tx.ledger.append(replace(resolved, kind="outcome", attempt=2))
        assert tx.audit.accepted_twice() == [(delivery_id, 0, 2)]


def test_a_delivery_on_its_way_in_a_lane_nobody_holds_is_found(scene: Scene) -> None:
    lane, _, delivery_id = scene.on_its_way()
    scene.expire(lane.lease.process_id)
    with scene.store.write() as tx:
        assert tx.audit.misplaced() == []  # whoever takes over looks after it
        tx.lanes.release(lane.lease)
        assert tx.audit.misplaced() == []  # due now, so somebody takes over in a moment
    scene.sql("UPDATE lanes SET wake_at = NULL")
    with scene.store.read() as tx:
        assert tx.audit.misplaced() == [
            f"delivery {delivery_id} is sending but nobody holds its lane"
        ]


def test_an_intent_after_the_suppression_is_found(scene: Scene) -> None:
    _, _, delivery_id = scene.on_its_way()
    target = scene.get(delivery_id).target
    with scene.store.write() as tx:
        tx.suppressions.add(target, "later", "operator", T0 + 1)
        assert tx.audit.suppressed_after() == []
        tx.suppressions.remove(target)
        tx.suppressions.add(target, "before", "operator", T0 - 1)
        assert tx.audit.suppressed_after() == [(delivery_id, T0, T0 - 1)]
        tx.suppressions.remove(target)
        tx.suppressions.add("@" + target.partition("@")[2], "all of them", "operator", T0 - 2)
        tx.suppressions.add("@elsewhere.example", "others", "operator", T0 - 2)
        assert tx.audit.suppressed_after() == [(delivery_id, T0, T0 - 2)]


def test_impossible_shapes_are_found(fresh_scene: Scene) -> None:
    scene = fresh_scene
    run_id, account_id = scene.run(), scene.account()
    lane = scene.lane(account_id)
    ids = [scene.delivery(run_id, account_id) for _ in range(5)]
    for delivery_id in ids:
        scene.intend(lane, intent(delivery_id, run_id))
        scene.settle(lane, settlement(delivery_id, run_id))
    with scene.store.read() as tx:
        assert tx.audit.misplaced() == []
    due, never, timeless, traceless, ahead = ids
    _plant(scene, f"UPDATE deliveries SET due_at = 5 WHERE id = {due}")
    _plant(scene, f"UPDATE deliveries SET state = 'ready' WHERE id = {never}")
    _plant(scene, f"UPDATE deliveries SET sent_at = NULL WHERE id = {timeless}")
    _plant(scene, f"DELETE FROM ledger WHERE delivery_id = {traceless}")
    _plant(scene, f"UPDATE ledger SET attempt = 2 WHERE delivery_id = {ahead} AND kind = 'outcome'")
    with scene.store.read() as tx:
        faults = tx.audit.misplaced()
    assert faults == [
        f"delivery {due} is sent but still due",
        f"delivery {never} is ready but never due",
        f"delivery {timeless} is sent but has no instant of sending",
        f"delivery {traceless} is sent but the ledger has no intent of its last attempt",
        f"delivery {ahead} is sent but the ledger has attempts it does not know of",
    ]


def _plant(scene: Scene, corruption: str) -> None:
    """What the database itself forbids has to be forced."""
    if scene.kind == "sqlite":
        connection = sqlite3.connect(scene.url.removeprefix("sqlite:///"))
        connection.execute(UNCHECKED["sqlite"])
        connection.execute(corruption)
        connection.commit()
        connection.close()
    else:
        scene.sql(UNCHECKED["postgresql"])
        scene.sql(corruption)
