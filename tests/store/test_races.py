"""Two processes at once: what one has committed the other cannot miss, nor slip past.

The order of events is forced by the database's own locks: a thread that must wait is seen waiting
before the other goes on. Nothing here depends on how long anything takes.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import create_engine, text

from paceline.core.errors import StoreConflict, StoreError
from paceline.core.states import RUN, DeliveryState, RunState
from paceline.engine.ports import LaneResult, NewDelivery, Tx
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit

D = DeliveryState
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


@pytest.fixture(params=["asking", "trusting"])
def ready(postgres_scene: Scene, request: pytest.FixtureRequest) -> tuple[Scene, Lane, int, int]:
    scene = postgres_scene
    scene.trusting = request.param == "trusting"
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    return scene, lane, run_id, scene.delivery(run_id, account_id)


def _until_somebody_waits(scene: Scene, pending: Future[object]) -> None:
    """Go on only when the other transaction is held up by a lock."""
    engine = create_engine(scene.url)
    with engine.connect() as connection:
        while connection.execute(text(WAITING)).scalar_one() == 0:
            connection.rollback()
            assert not pending.done(), pending.result()
    engine.dispose()


def _in_transaction(scene: Scene, work: Callable[[Tx], object]) -> object:
    with scene.store.write() as tx:
        return work(tx)


def test_a_takeover_waits_for_the_intent_under_way(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, delivery_id = ready
    successor = scene.process()
    with scene.store.write() as tx:
        (result,) = tx.path.apply([unit(lane, intent(delivery_id, run_id))])
        assert result.intended
        scene.expire(lane.lease.process_id)
        take = pool.submit(
            _in_transaction, scene, lambda other: other.lanes.take(lane.account_id, successor)
        )
        _until_somebody_waits(scene, take)
    taken = take.result()
    assert taken is not None
    with scene.store.read() as tx:  # whoever takes over sees what was under way
        assert [d.id for d, _ in tx.path.stranded(lane.account_id)] == [delivery_id]


def test_an_intent_waits_for_the_takeover_and_then_fails(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, delivery_id = ready
    successor = scene.process()
    scene.expire(lane.lease.process_id)
    with scene.store.write() as tx:
        assert tx.lanes.take(lane.account_id, successor) is not None
        late = pool.submit(scene.intend, lane, intent(delivery_id, run_id))
        _until_somebody_waits(scene, late)
    assert (late.result().held, late.result().intended) == (False, False)
    assert scene.state(delivery_id) is D.READY


def test_an_intent_waits_for_a_pause_and_then_fails(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, delivery_id = ready
    with scene.store.write() as tx:  # without a fence: the run's own row holds the intent
        tx.runs.move(run_id, "pause", at=T0)
        late = pool.submit(scene.intend, lane, intent(delivery_id, run_id))
        _until_somebody_waits(scene, late)
    assert (late.result().held, late.result().intended) == (True, False)


def test_a_bounce_is_never_missed_by_a_follow_up(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, first = ready
    assert scene.intend(lane, intent(first, run_id)).intended
    scene.settle(lane, settlement(first, run_id))
    second = scene.delivery(run_id, lane.account_id, step=2)
    scene.sql(
        "UPDATE deliveries SET after_id = :first WHERE id = :second", first=first, second=second
    )
    with scene.store.write() as tx:
        assert tx.deliveries.move(first, "bounce", at=T0) is D.BOUNCED
        late = pool.submit(scene.intend, lane, intent(second, run_id))
        _until_somebody_waits(scene, late)
    assert (late.result().held, late.result().intended) == (True, False)
    assert scene.state(second) is D.READY


@pytest.mark.parametrize("command", ["suppress", "stop", "pause_account"])
def test_a_command_behind_the_fence_is_never_missed(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor, command: str
) -> None:
    scene, lane, run_id, delivery_id = ready
    target = scene.get(delivery_id).target
    commands: dict[str, Callable[[Tx], object]] = {
        "suppress": lambda tx: tx.suppressions.add(target, "asked", "operator", T0),
        "stop": lambda tx: tx.settings.stop("fire"),
        "pause_account": lambda tx: tx.accounts.move(lane.account_id, "pause"),
    }
    with scene.store.write() as tx:
        tx.settings.fence()
        late = pool.submit(scene.intend, lane, intent(delivery_id, run_id))
        _until_somebody_waits(scene, late)
        commands[command](tx)
    assert (late.result().held, late.result().intended) == (True, False)
    assert scene.ledger(delivery_id) == []


def test_a_fence_waits_for_the_intents_under_way(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, delivery_id = ready
    with scene.store.write() as tx:
        tx.path.apply([unit(lane, intent(delivery_id, run_id))])
        fence = pool.submit(
            _in_transaction,
            scene,
            lambda other: (other.settings.fence(), other.deliveries.get(delivery_id).state),
        )
        _until_somebody_waits(scene, fence)
    assert fence.result() == (None, D.SENDING)


def test_a_fence_that_comes_too_late_does_not_deadlock(
    ready: tuple[Scene, Lane, int, int],
) -> None:
    scene, lane, run_id, delivery_id = ready
    with scene.store.write() as tx:
        tx.path.apply([unit(lane, intent(delivery_id, run_id))])
        with pytest.raises(StoreError, match="before the first write"), scene.store.write() as b:
            b.settings.put("a", 1)
            b.settings.fence()
        tx.settings.fence()  # alone it may come late, because there is nobody to wait for
    assert scene.state(delivery_id) is D.SENDING


def test_two_intents_for_one_delivery_pass_once(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, delivery_id = ready
    wish = intent(delivery_id, run_id)
    with scene.store.write() as tx:
        (first,) = tx.path.apply([unit(lane, wish)])
        second = pool.submit(scene.intend, lane, wish)
        _until_somebody_waits(scene, second)
    assert (first.intended, second.result().intended) == (True, False)
    assert scene.counts(run_id) == {"sending": 1}


def test_two_settlements_of_one_attempt_move_it_once(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, run_id, delivery_id = ready
    scene.intend(lane, intent(delivery_id, run_id))
    with scene.store.write() as tx:
        (first,) = tx.path.apply([unit(lane, settlements=(settlement(delivery_id, run_id),))])
        second = pool.submit(
            scene.settle, lane, settlement(delivery_id, run_id, D.READY, due_at=T0)
        )
        _until_somebody_waits(scene, second)
    assert (first.settled, second.result().settled) == ((True,), (False,))
    assert scene.counts(run_id) == {"sent": 1}


def test_only_one_of_two_takers_gets_the_lane(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    scene = postgres_scene
    account_id, first, second = scene.account(), scene.process(), scene.process()
    with scene.store.write() as tx:
        assert tx.lanes.take(account_id, first) is not None
        late = pool.submit(
            _in_transaction, scene, lambda other: other.lanes.take(account_id, second)
        )
        _until_somebody_waits(scene, late)
    assert late.result() is None


def test_a_lane_touched_meanwhile_is_not_parked(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, lane, _, _ = ready
    with scene.store.write() as tx:
        tx.lanes.touch(lane.account_id, T0)
        park = pool.submit(
            _in_transaction, scene, lambda o: o.lanes.park(lane.lease, lane.revision, None)
        )
        _until_somebody_waits(scene, park)
    assert park.result() is False


def test_groups_of_two_processes_pass_each_other(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    """Many groups at once, over the same run: nobody waits forever, nothing is counted twice."""
    scene = postgres_scene
    run_id = scene.run()
    process_ids = [scene.process(), scene.process()]
    lanes = [[scene.lane(scene.account(), process) for _ in range(4)] for process in process_ids]
    queues = {
        lane: [scene.delivery(run_id, lane.account_id) for _ in range(6)]
        for mine in lanes
        for lane in mine
    }

    def work(mine: list[Lane]) -> list[LaneResult]:
        results: list[LaneResult] = []
        for n in range(7):
            results += scene.apply(
                *(
                    unit(
                        lane,
                        intent(queues[lane][n], run_id) if n < 6 else None,
                        (settlement(queues[lane][n - 1], run_id),) if n else (),
                        "{}",
                    )
                    for lane in mine
                )
            )
        return results

    for results in pool.map(work, lanes):
        assert all(all(result.settled) for result in results)
    assert scene.counts(run_id) == {"sent": 48}
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def _counters_held(scene: Scene, account_id: int) -> object:
    """Whether somebody else has a counter of this account locked; asked without waiting."""
    engine = create_engine(scene.url)
    with engine.connect() as connection:
        free = connection.execute(
            text("SELECT 1 FROM counters WHERE account_id = :id FOR UPDATE SKIP LOCKED"),
            {"id": account_id},
        ).all()
        every = connection.execute(
            text("SELECT 1 FROM counters WHERE account_id = :id"), {"id": account_id}
        ).all()
    engine.dispose()
    return len(free) < len(every)


@pytest.mark.parametrize("change", ["add", "add_one", "move", "move_all", "postpone", "release"])
def test_the_lane_is_locked_before_runs_counters_and_deliveries(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor, change: str
) -> None:
    """While an intent holds the lane, nobody who wants it too holds what the intent wants."""
    scene, lane, run_id, delivery_id = ready
    planned = scene.run(RunState.WAITING)
    other = scene.delivery(planned, lane.account_id, due_at=None)
    new = NewDelivery(run_id, lane.account_id, 7, "ann@example.com", T0, due_at=T0)
    changes: dict[str, Callable[[Tx], object]] = {
        "add": lambda tx: tx.deliveries.add([new], T0),
        "add_one": lambda tx: tx.deliveries.add_one(new, T0),
        "move": lambda tx: tx.deliveries.move(delivery_id, "skip", at=T0),
        "move_all": lambda tx: tx.deliveries.move_all(run_id, "cancel", at=T0),
        "postpone": lambda tx: tx.deliveries.postpone(delivery_id, T0 + 1, "later"),
        "release": lambda tx: tx.deliveries.release(planned, T0, T0),
    }
    with scene.store.write() as tx:
        tx.path.apply([unit(lane)])
        late = pool.submit(_in_transaction, scene, changes[change])
        _until_somebody_waits(scene, late)
        assert not _counters_held(scene, lane.account_id)
        (result,) = tx.path.apply([unit(lane, intent(delivery_id, run_id))])
        assert result.intended
        tx.lanes.touch(lane.account_id, T0)
    late.result()
    assert scene.state(other) is (D.READY if change == "release" else D.PLANNED)
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_a_run_is_moved_behind_its_campaign(
    ready: tuple[Scene, Lane, int, int], pool: ThreadPoolExecutor
) -> None:
    scene, _, run_id, _ = ready
    with scene.store.write() as tx:
        campaign_id = tx.runs.get(run_id).campaign_id
        tx.campaigns.move(campaign_id, "launch", at=T0)
        late = pool.submit(
            _in_transaction, scene, lambda other: other.runs.move(run_id, "cancel", at=T0)
        )
        _until_somebody_waits(scene, late)
        assert tx.runs.move(run_id, "pause", at=T0) is RunState.PAUSED
    assert late.result() is RUN.table[RunState.PAUSED, "cancel"]


def test_a_deadlock_is_told_as_a_conflict(postgres_scene: Scene, pool: ThreadPoolExecutor) -> None:
    scene = postgres_scene
    first, second = scene.account(), scene.account()

    def both(a: int, b: int, met: Barrier) -> None:
        with scene.store.write() as tx:
            tx.lanes.touch(a, T0)
            met.wait()
            tx.lanes.touch(b, T0)

    met = Barrier(2)
    pending = [pool.submit(both, first, second, met), pool.submit(both, second, first, met)]
    raised = [found.exception() for found in pending]
    assert [type(error) for error in raised if error] == [StoreConflict]


def test_readers_go_on_while_a_file_is_written(
    sqlite_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    scene = sqlite_scene
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)
    with scene.store.write() as tx:
        tx.path.apply([unit(lane, intent(delivery_id, run_id))])
        assert pool.submit(scene.state, delivery_id).result() is D.READY
    assert pool.submit(scene.state, delivery_id).result() is D.SENDING
