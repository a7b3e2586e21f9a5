"""Lanes and processes: one owner at a time, told apart by generation, woken in time."""

from dataclasses import replace

import pytest

from paceline.core.errors import NotFoundError
from paceline.core.instants import HOUR, SECOND
from paceline.store.base import Context
from tests.store.counting import counted
from tests.store.scene import T0, Scene, intent, settlement

PAST, FUTURE = 5, 1 << 60


def _due(scene: Scene, process_id: int, limit: int = 10) -> list[int]:
    with scene.store.read() as tx:
        return [row.account_id for row in tx.lanes.due(process_id, limit)]


def _touch(scene: Scene, account_id: int, wake_at: int = PAST) -> None:
    with scene.store.write() as tx:
        tx.lanes.touch(account_id, wake_at)


def _sleep(scene: Scene, account_id: int, wake_at: int) -> None:
    scene.sql("UPDATE lanes SET wake_at = :at WHERE account_id = :id", at=wake_at, id=account_id)


def test_a_new_lane_is_free_and_asleep(scene: Scene) -> None:
    account_id = scene.account()
    with scene.store.read() as tx:
        row = tx.lanes.get(account_id)
        assert (row.generation, row.owner, row.revision, row.wake_at) == (0, None, 0, None)
        assert tx.lanes.next_wake_at() is None
        with pytest.raises(NotFoundError, match="lane 999999 does not exist"):
            tx.lanes.get(999_999)
    assert _due(scene, scene.process()) == []


def test_lanes_of_some_accounts_only_are_looked_for(scene: Scene) -> None:
    first, second, third = scene.account(), scene.account(), scene.account()
    ours, gone = scene.process(), scene.process()
    scene.lane(second, gone)
    scene.expire(gone)
    scene.lane(third, ours)
    for account_id in (first, second, third):
        _touch(scene, account_id)
    with scene.store.read() as tx:
        for chosen in ([], [first], [second], [third], [third, first], [999_999]):
            due = tx.lanes.due(ours, 10, chosen)
            assert {row.account_id for row in due} == set(chosen) - {999_999}
        assert len(tx.lanes.due(ours, 10)) == 3
        assert len(tx.lanes.due(ours, 1, [first, second])) == 1
    _sleep(scene, first, FUTURE)
    with scene.store.read() as tx:
        assert tx.lanes.next_wake_at([first]) == tx.lanes.next_wake_at() == FUTURE
        assert tx.lanes.next_wake_at([second, third]) is None
        assert tx.lanes.due(ours, 10, [first]) == []


def test_taking_raises_the_generation_and_clears_the_wake(scene: Scene) -> None:
    account_id, process_id = scene.account(), scene.process()
    _touch(scene, account_id)
    with scene.store.write() as tx:
        row = tx.lanes.take(account_id, process_id)
        assert row is not None
        assert (row.generation, row.owner, row.wake_at) == (1, process_id, None)
        assert tx.lanes.get(account_id) == row


def test_only_one_can_take_a_lane(scene: Scene) -> None:
    account_id, first, second = scene.account(), scene.process(), scene.process()
    lane = scene.lane(account_id, first)
    with scene.store.write() as tx:
        assert tx.lanes.take(account_id, second) is None
        assert tx.lanes.take(account_id, first) is None
    scene.expire(first)
    taken = scene.lane(account_id, second)
    assert taken.lease.generation == lane.lease.generation + 1
    with scene.store.write() as tx:  # the one who lost it can do nothing with it
        assert not tx.lanes.quiet(lane.lease, lane.revision)
        assert not tx.lanes.park(lane.lease, lane.revision, T0)
        assert not tx.lanes.release(lane.lease)
        assert tx.lanes.get(account_id).owner == second


def test_a_process_nobody_knows_takes_nothing(scene: Scene) -> None:
    account_id = scene.account()
    with scene.store.write() as tx:
        assert tx.lanes.take(account_id, 999_999) is None
        assert tx.lanes.take(999_999, 999_999) is None


def test_due_lanes_are_free_orphaned_or_touched_and_ours(scene: Scene) -> None:
    ours, theirs, dead = scene.process(), scene.process(), scene.process()
    accounts = [scene.account() for _ in range(8)]
    free, later, asleep, touched, quiet, strange, orphan, removed = accounts
    for account_id, wake_at in ((free, 30), (removed, PAST)):
        _touch(scene, account_id, wake_at)
    _sleep(scene, later, FUTURE)
    for account_id, owner in ((touched, ours), (quiet, ours), (strange, theirs), (orphan, dead)):
        scene.lane(account_id, owner)
    for account_id in (touched, strange):
        _touch(scene, account_id, 20)
    scene.expire(dead)
    with scene.store.write() as tx:
        tx.accounts.update(removed, removed_at=T0)

    assert asleep not in _due(scene, ours)
    assert _due(scene, ours) == [orphan, touched, free]
    assert _due(scene, theirs) == [orphan, strange, free]
    assert _due(scene, ours, limit=2) == [orphan, touched]


def test_the_next_wake_is_that_of_a_free_lane(scene: Scene) -> None:
    free, owned, removed = (scene.account() for _ in range(3))
    scene.lane(owned)
    for account_id, wake_at in ((free, T0 + 30), (owned, T0 + 10), (removed, T0 + 20)):
        _sleep(scene, account_id, wake_at)
    with scene.store.write() as tx:
        tx.accounts.update(removed, removed_at=T0)
        assert tx.lanes.next_wake_at() == T0 + 30


def test_a_touch_only_ever_brings_the_wake_forward(scene: Scene) -> None:
    account_id = scene.account()
    for wake_at, expected in ((20, 20), (30, 20), (10, 10)):
        _touch(scene, account_id, wake_at)
        with scene.store.read() as tx:
            assert tx.lanes.get(account_id).wake_at == expected
    with scene.store.read() as tx:
        assert tx.lanes.get(account_id).revision == 3


def test_a_clock_that_is_ahead_delays_no_wake(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    scene.delivery(run_id, account_id)
    with scene.store.write() as tx:
        for touch in (
            lambda: tx.lanes.touch(account_id, FUTURE),
            lambda: tx.lanes.touch_run(run_id, FUTURE),
            lambda: tx.lanes.touch_all(FUTURE),
        ):
            touch()
            assert tx.lanes.get(account_id).wake_at == tx.now
    assert _due(scene, scene.process()) == [account_id]


def test_a_lane_that_was_touched_is_not_parked(scene: Scene) -> None:
    account_id = scene.account()
    lane = scene.lane(account_id)
    _touch(scene, account_id)
    with scene.store.write() as tx:
        assert not tx.lanes.quiet(lane.lease, lane.revision)
        assert not tx.lanes.park(lane.lease, lane.revision, FUTURE)
        seen = tx.lanes.get(account_id).revision
        assert tx.lanes.quiet(lane.lease, seen)
        assert tx.lanes.get(account_id).wake_at is None
        assert tx.lanes.park(lane.lease, seen, T0 + 50)
        row = tx.lanes.get(account_id)
        assert (row.owner, row.wake_at, row.generation) == (None, T0 + 50, 1)


def test_a_released_lane_is_due_at_once_or_when_told(scene: Scene) -> None:
    account_id, process_id = scene.account(), scene.process()
    lane = scene.lane(account_id, process_id)
    with scene.store.write() as tx:
        assert not tx.lanes.release(replace(lane.lease, generation=7))
        assert tx.lanes.release(lane.lease)
    assert _due(scene, process_id) == [account_id]
    again = scene.lane(account_id, process_id)
    with scene.store.write() as tx:
        assert tx.lanes.release(again.lease, FUTURE)
        assert tx.lanes.get(account_id).wake_at == FUTURE
    assert _due(scene, process_id) == []


def test_touching_a_run_touches_those_who_still_have_something_to_do(scene: Scene) -> None:
    waiting, done, other = (scene.account() for _ in range(3))
    run_id = scene.run()
    scene.delivery(run_id, waiting)
    lane = scene.lane(done)
    delivery_id = scene.delivery(run_id, done)
    scene.intend(lane, intent(delivery_id, run_id))
    scene.settle(lane, settlement(delivery_id, run_id))
    with scene.store.write() as tx:
        tx.lanes.touch_run(run_id, T0)
        assert [tx.lanes.get(a).revision for a in (waiting, done, other)] == [1, 0, 0]
        tx.lanes.touch_all(T0)
        assert [tx.lanes.get(a).revision for a in (waiting, done, other)] == [2, 1, 1]


def test_a_process_joins_renews_and_leaves(scene: Scene) -> None:
    with scene.store.write() as tx:
        now = tx.now
        row = tx.processes.join("worker", 15 * SECOND)
        assert (row.name, row.started_at, row.lease_until_at) == ("worker", now, now + 15 * SECOND)
    account_id = scene.account()
    lane = scene.lane(account_id, row.id)
    with scene.store.write() as tx:
        assert tx.processes.renew(row.id, HOUR) == tx.now + HOUR
        assert tx.processes.list()[0].lease_until_at == tx.now + HOUR
        tx.processes.leave(row.id)
        assert tx.processes.list() == []
        assert tx.processes.renew(row.id, HOUR) is None
        free = tx.lanes.get(account_id)
        assert (free.owner, free.wake_at) == (None, tx.now)
        assert not tx.lanes.release(lane.lease)


def test_only_the_long_dead_without_lanes_are_buried(scene: Scene) -> None:
    alive, dead, owning = (scene.process() for _ in range(3))
    scene.lane(scene.account(), owning)
    scene.expire(dead)
    scene.expire(owning)
    with scene.store.write() as tx:
        assert tx.processes.dead(HOUR)
        assert tx.processes.bury(HOUR) == 1
        assert [row.id for row in tx.processes.list()] == [alive, owning]
        assert not tx.processes.dead(HOUR)
        assert tx.processes.bury(HOUR) == 0


def test_the_number_of_a_process_is_never_given_out_again(scene: Scene) -> None:
    first = scene.process()
    with scene.store.write() as tx:
        tx.processes.leave(first)
    assert scene.process() > first


def test_looking_for_due_lanes_reads_no_whole_table(sqlite_scene: Scene) -> None:
    plans = sqlite_scene.sql(
        "EXPLAIN QUERY PLAN SELECT account_id FROM lanes WHERE owner IS NULL "
        "AND wake_at IS NOT NULL AND wake_at <= 5"
    ) + sqlite_scene.sql(
        "EXPLAIN QUERY PLAN SELECT account_id FROM lanes WHERE owner = 1 AND wake_at <= 5"
    )
    assert "ix_lanes_free" in plans[0][3]
    assert "ix_lanes_owner" in plans[1][3]


def test_a_lane_that_is_held_is_not_held_again(scene: Scene) -> None:
    """Each is a way to the server and back; what was locked stays so until the transaction ends."""
    first, second = scene.account(), scene.account()
    with scene.store.write() as tx, counted() as asked:
        context: Context = tx._context  # type: ignore[attr-defined]
        tx.lanes.touch(first, PAST)
        asked.clear()
        context.hold_lanes([first])
        assert asked == []
        context.hold_lanes([second, first])
        context.hold_lanes([second])
        assert len(asked) == (1 if scene.kind == "postgresql" else 0)


def test_a_lane_is_touched_as_often_as_it_is_told(scene: Scene) -> None:
    """Whoever has looked at it between the two, in the same transaction, must look again."""
    account_id = scene.account()
    with scene.store.write() as tx:
        tx.lanes.touch(account_id, PAST)
        seen = tx.lanes.get(account_id)
        tx.lanes.touch(account_id, PAST)
        assert tx.lanes.get(account_id).revision == seen.revision + 1
