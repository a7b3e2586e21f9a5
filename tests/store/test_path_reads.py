"""What a lane reads: the queue in its order, what was left behind, and all it begins with."""

from typing import Any, cast

import pytest
from sqlalchemy import create_engine

from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import NewDelivery
from paceline.store import path_postgresql, path_postgresql_sure
from paceline.store.asked import spelled
from paceline.store.base import columns
from paceline.store.database import open_store
from paceline.store.path_postgresql import PostgresqlPath
from paceline.store.path_reads import limited
from paceline.store.path_sqlite import SqlitePath
from tests.store.scene import CHECKPOINT, T0, Scene, intent, settlement, unit

D = DeliveryState


def test_due_deliveries_come_oldest_first_and_only_those(scene: Scene) -> None:
    account_id, other, run_id = scene.account(), scene.account(), scene.run()
    late = scene.delivery(run_id, account_id, due_at=T0 + 20)
    early = scene.delivery(run_id, account_id, due_at=T0 + 10)
    same = scene.delivery(run_id, account_id, due_at=T0 + 20)
    scene.delivery(run_id, account_id, due_at=T0 + 31)
    scene.delivery(run_id, account_id, due_at=None)
    scene.delivery(run_id, other, due_at=T0)
    scene.delivery(scene.run(), account_id, due_at=T0)
    with scene.store.read() as tx:
        found = tx.path.due(account_id, run_id, T0 + 30, 10)
        assert [delivery.id for delivery in found] == [early, late, same]
        assert [d.id for d in tx.path.due(account_id, run_id, T0 + 30, 2)] == [early, late]
        assert tx.path.due(account_id, run_id, T0 + 9, 10) == []
        assert tx.path.next_due_at(account_id, run_id) == T0 + 10
        assert tx.path.next_due_at(account_id, run_id, T0 + 10) == T0 + 20
        assert tx.path.next_due_at(account_id, run_id, T0 + 31) is None
        assert tx.path.next_due_at(other, 999_999) is None


def test_what_was_begun_comes_before_what_is_fresh(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    fresh = [scene.delivery(run_id, account_id, due_at=T0 + n) for n in range(3)]
    retry, doubt, later = (scene.delivery(run_id, account_id) for _ in range(3))
    scene.apply(*(unit(lane, intent(d, run_id)) for d in (retry, doubt, later)))
    scene.settle(
        lane,
        settlement(retry, run_id, D.READY, due_at=T0 + 20, parts_done=0),
        settlement(doubt, run_id, D.UNKNOWN, due_at=T0 + 10, parts_done=0),
        settlement(later, run_id, D.READY, due_at=T0 + 99, parts_done=0),
    )
    with scene.store.read() as tx:
        found = [d.id for d in tx.path.due(account_id, run_id, T0 + 30, 10)]
        assert found == [doubt, retry, *fresh]
        assert [d.id for d in tx.path.due(account_id, run_id, T0 + 30, 3)] == found[:3]
        assert [d.id for d in tx.path.due(account_id, run_id, T0 + 30, 1)] == [doubt]
        assert [d.id for d in tx.path.due(account_id, run_id, T0 + 15, 10)] == [doubt, *fresh]


def test_a_read_delivery_is_whole(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    delivery_id = scene.delivery(
        run_id,
        account_id,
        target="ann@example.com",
        fields={"name": "Änn"},
        content=[{"kind": "text", "text": "Only you"}],
        action="email",
        reply=True,
        expires_at=T0 + 99,
        recipient_hours="Mon-Fri 09:00-17:00 UTC",
    )
    with scene.store.write() as tx:
        tx.suppressions.add("ann@example.com", "asked", "operator", T0)
    with scene.store.read() as tx:
        (delivery,) = tx.path.due(account_id, run_id, T0, 5)
        assert delivery == tx.deliveries.get(delivery_id)
    assert delivery.fields == {"name": "Änn"}
    assert delivery.content == [{"kind": "text", "text": "Only you"}]
    assert (delivery.action, delivery.reply, delivery.suppressed) == ("email", True, True)
    assert (delivery.expires_at, delivery.state) == (T0 + 99, D.READY)
    assert delivery.recipient_hours == "Mon-Fri 09:00-17:00 UTC"


def test_a_doubt_that_will_be_asked_about_is_due_too(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.settle(lane, settlement(delivery_id, run_id, D.UNKNOWN, due_at=T0 + 4))
    with scene.store.read() as tx:
        (delivery,) = tx.path.due(lane.account_id, run_id, T0 + 4, 5)
        assert (delivery.id, delivery.state) == (delivery_id, D.UNKNOWN)
        assert tx.runs.awaiting_proof(run_id)
    with scene.store.write() as tx:
        assert tx.deliveries.postpone(delivery_id, None, "a person must look")
    with scene.store.read() as tx:
        assert not tx.runs.awaiting_proof(run_id)
        assert tx.path.next_due_at(lane.account_id, run_id) is None


def test_what_was_left_on_its_way_is_found_with_its_intent(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    called, between, settled = (scene.delivery(run_id, account_id) for _ in range(3))
    scene.apply(*(unit(lane, intent(d, run_id)) for d in (called, between, settled)))
    scene.settle(
        lane,
        settlement(between, run_id, D.SENDING),
        settlement(settled, run_id, D.SENT),
    )
    with scene.store.read() as tx:
        found = {d.id: row and (row.part, row.attempt) for d, row in tx.path.stranded(account_id)}
        assert found == {called: (0, 1), between: None}
    scene.intend(lane, intent(between, run_id, part=1, starts=False))
    with scene.store.read() as tx:
        found = {d.id: row and (row.part, row.attempt) for d, row in tx.path.stranded(account_id)}
        assert found == {called: (0, 1), between: (1, 1)}
        assert tx.path.stranded(999_999) == []


def test_restoring_gives_everything_a_lane_needs(scene: Scene) -> None:
    account_id = scene.account("ann")
    running, paused, done = scene.run(), scene.run(RunState.PAUSED), scene.run()
    lane = scene.lane(account_id)
    for run_id in (running, paused, done):
        scene.delivery(run_id, account_id)
    (last,) = _ids(scene, done)
    scene.intend(lane, intent(last, done))
    scene.apply(unit(lane, usage=CHECKPOINT, settlements=(settlement(last, done),)))
    with scene.store.write() as tx:
        tx.lanes.touch(account_id, T0)
    with scene.store.read() as tx:
        restored = tx.path.restore(account_id)
        assert tx.path.restore(999_999) is None
    assert restored is not None
    assert (restored.account.name, restored.account.policy) == ("ann", {"rate": "1/s"})
    assert (restored.revision, restored.stopped) == (1, False)
    assert restored.checkpoint == {"tat_at": 1, "health": {}}
    assert [run.id for run in restored.runs] == [running, paused]
    assert restored.runs[0].content == [{"kind": "text", "text": "Hello"}]

    with scene.store.write() as tx:
        tx.settings.stop("fire")
        assert (again := tx.path.restore(account_id)) is not None
        assert again.stopped
        tx.accounts.update(account_id, removed_at=T0)
        assert tx.path.restore(account_id) is None


def test_the_queue_is_read_by_its_indexes(scene: Scene) -> None:
    """Each half of a page is a walk along its own index: no sorting, nothing read in vain."""
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    with scene.store.write() as tx:
        plan = (NewDelivery(run_id, account_id, n, f"{n}@x", T0, due_at=T0) for n in range(3_000))
        tx.deliveries.add(plan, T0)
    begun = _ids(scene, run_id)[:20]
    scene.apply(*(unit(lane, intent(d, run_id)) for d in begun))
    scene.settle(lane, *(settlement(d, run_id, D.READY, due_at=T0) for d in begun))
    scene.store.analyse()
    queries = (SqlitePath if scene.kind == "sqlite" else PostgresqlPath).queries
    values = (account_id, run_id, T0 + 5)
    page = limited(queries.due, 5)
    _reads_by(scene, page, values * 2, "ix_deliveries_begun", "ix_deliveries_due")


def test_a_page_is_planned_once_and_not_for_every_claim(postgres_scene: Scene) -> None:
    account_id, run_id = postgres_scene.account(), postgres_scene.run()
    with postgres_scene.store.write() as tx:
        plan = (NewDelivery(run_id, account_id, n, f"{n}@x", T0, due_at=T0) for n in range(3_000))
        tx.deliveries.add(plan, T0)
    postgres_scene.store.analyse()
    store = open_store(postgres_scene.url)  # with a connection that has not planned anything yet
    try:
        for _ in range(20):
            with store.read() as tx:
                assert len(tx.path.due(account_id, run_id, T0 + 5, 7)) == 7
        with store.read() as tx:
            cursor = cast(Any, tx)._context.cursor()
            cursor.execute(
                "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
                " WHERE statement LIKE '%begun%LIMIT 7%'"
            )
            [(kept, made_anew)] = cursor.fetchall()
    finally:
        store.close()
    assert kept > made_anew


@pytest.mark.parametrize(
    ("statement", "source"),
    [(path_postgresql._START, "ready"), (path_postgresql._CONTINUE, "sending")],
    ids=["start", "continue"],
)
def test_what_is_intended_is_found_by_its_number_whatever_the_statistics_say(
    postgres_scene: Scene, statement: str, source: str
) -> None:
    """They were gathered while everything was planned. By them hardly anything is ready, and the
    whole table would be read, once for every message of the group."""
    account_id, run_id = postgres_scene.account(), postgres_scene.run()
    with postgres_scene.store.write() as tx:
        plan = (NewDelivery(run_id, account_id, n, f"{n}@x", T0) for n in range(3_000))
        tx.deliveries.add(plan, T0)
    postgres_scene.store.analyse()
    with postgres_scene.store.write() as tx:
        tx.deliveries.release(run_id, T0, T0)
    numbers = _ids(postgres_scene, run_id)[:200]
    wishes = [(number, 0, 1, account_id, run_id, "message", T0, 1, 1) for number in numbers]
    with postgres_scene.store.write() as tx:
        cursor = cast(Any, tx)._context.cursor()
        cursor.execute(path_postgresql.FENCE)
        cursor.execute(f"EXPLAIN (COSTS OFF) {statement}", (source, *columns(wishes)))
        found = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Scan using pk_deliveries" in found, found
    assert "Index Cond: (id = w" in found, found


def test_what_a_group_writes_on_trust_is_found_by_its_number(postgres_scene: Scene) -> None:
    """By statistics of an hour ago, or of a table that was empty, all of it would be read. What is
    looked at is the plan that is kept for it."""
    account_id, run_id = postgres_scene.account(), postgres_scene.run()
    with postgres_scene.store.write() as tx:
        plan = (NewDelivery(run_id, account_id, n, f"{n}@x", T0) for n in range(3_000))
        tx.deliveries.add(plan, T0)
    postgres_scene.store.analyse()
    text = spelled(path_postgresql_sure._WRITE).text.decode()
    nulls = ", ".join(["NULL"] * path_postgresql_sure._WRITE.count("%s"))
    with postgres_scene.store.write() as tx:
        cursor = cast(Any, tx)._context.cursor()
        cursor.execute(path_postgresql.FENCE)
        cursor.execute(f"PREPARE written AS {text}")
        cursor.execute(f"EXPLAIN (COSTS OFF) EXECUTE written ({nulls})")
        found = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("DEALLOCATE written")
    assert "Index Scan using pk_deliveries" in found, found
    assert "Seq Scan" not in found, found


def _reads_by(scene: Scene, query: str, values: tuple[int, ...], *indexes: str) -> None:
    explain = "EXPLAIN QUERY PLAN" if scene.kind == "sqlite" else "EXPLAIN (COSTS OFF)"
    engine = create_engine(scene.url)
    with engine.connect() as connection:
        plan = [str(row) for row in connection.exec_driver_sql(f"{explain} {query}", values)]
    engine.dispose()
    text = "\n".join(plan)
    for index in indexes:
        assert f"{index} " in text, text
    assert "sort" not in text.lower(), text
    assert "b-tree" not in text.lower(), text


def _ids(scene: Scene, run_id: int) -> list[int]:
    with scene.store.read() as tx:
        return [delivery.id for delivery in tx.deliveries.page(run_id=run_id)]


@pytest.mark.parametrize(
    ("entry", "target", "suppressed"),
    [
        ("@example.com", "ann@example.com", True),
        ("@example.com", "ann@mail.example.com", False),
        ("@example.com", "ann@example.com.au", False),
        ("@example.com", "+4915112345678", False),
        ("@example.com", "example.com", False),
        ("@müller.example", "änn@müller.example", True),
        ("ann@example.com", "ben@example.com", False),
        ("+4915112345678", "+4915112345678", True),
    ],
)
def test_people_are_suppressed_by_themselves_or_with_their_domain(
    fresh_scene: Scene, entry: str, target: str, suppressed: bool
) -> None:
    scene = fresh_scene
    account_id, run_id = scene.account(), scene.run()
    delivery_id = scene.delivery(run_id, account_id, target=target)
    with scene.store.write() as tx:
        tx.suppressions.add(entry, "asked", "operator", T0)
    with scene.store.read() as tx:
        (read,) = tx.path.due(account_id, run_id, T0, 5)
        assert read.suppressed is suppressed
        assert tx.deliveries.get(delivery_id).suppressed is suppressed
        assert tx.waiting.suppressed([target, "x@y.example"]) == ({target} if suppressed else set())
        assert tx.suppressions.covers(target) is suppressed
