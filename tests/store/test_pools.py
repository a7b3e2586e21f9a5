"""Pooled deliveries: one account has each, the counters follow, and what is not begun goes back."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.pools import NOBODY
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit


def _pooled(scene: Scene, members: int = 2) -> tuple[list[Lane], int, int]:
    """Lanes that share a run, and a delivery that is nobody's."""
    accounts, run_id = [scene.account() for _ in range(members)], scene.run()
    with scene.store.write() as tx:
        tx.pools.open(run_id, accounts)
    lanes = [scene.lane(account_id) for account_id in accounts]
    return lanes, run_id, _nobodys(scene, run_id)


def _nobodys(scene: Scene, run_id: int) -> int:
    return scene.delivery(run_id, None)  # type: ignore[arg-type]


def _counts(scene: Scene, run_id: int) -> dict[int, dict[str, int]]:
    with scene.store.read() as tx:
        found = tx.runs.accounts(run_id)
    return {
        account: {state.value: n for state, n in states.items() if n}
        for account, states in found.items()
        if any(states.values())
    }


def _sound(scene: Scene) -> None:
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_the_intent_takes_what_is_nobodys(scene: Scene) -> None:
    (lane, _), run_id, delivery_id = _pooled(scene)
    assert _counts(scene, run_id) == {NOBODY: {"ready": 1}}
    assert scene.intend(lane, intent(delivery_id, run_id, pooled=True)).intended
    assert scene.get(delivery_id).account_id == lane.account_id
    assert _counts(scene, run_id) == {lane.account_id: {"sending": 1}}
    scene.settle(lane, settlement(delivery_id, run_id))
    assert _counts(scene, run_id) == {lane.account_id: {"sent": 1}}
    _sound(scene)


def test_of_two_in_one_group_the_first_has_it(scene: Scene) -> None:
    (one, two), run_id, delivery_id = _pooled(scene)
    wish = intent(delivery_id, run_id, pooled=True)
    first, second = scene.apply(unit(one, wish), unit(two, wish))
    assert (first.intended, second.intended) == (True, False)
    assert scene.get(delivery_id).account_id == one.account_id
    assert _counts(scene, run_id) == {one.account_id: {"sending": 1}}
    _sound(scene)


def test_what_has_an_account_is_not_taken_and_what_has_none_is_not_intended(scene: Scene) -> None:
    (one, two), run_id, delivery_id = _pooled(scene)
    assert not scene.intend(one, intent(delivery_id, run_id)).intended
    own = scene.delivery(run_id, one.account_id)
    assert not scene.intend(two, intent(own, run_id, pooled=True)).intended
    assert scene.get(delivery_id).account_id is None
    assert scene.get(own).account_id == one.account_id
    _sound(scene)


def test_a_refused_intent_takes_nothing(scene: Scene) -> None:
    (lane, _), run_id, delivery_id = _pooled(scene)
    target = scene.get(delivery_id).target
    with scene.store.write() as tx:
        tx.settings.fence()
        tx.suppressions.add(target, "asked", "operator", T0)
    assert not scene.intend(lane, intent(delivery_id, run_id, pooled=True)).intended
    assert scene.get(delivery_id).account_id is None
    assert _counts(scene, run_id) == {NOBODY: {"ready": 1}}
    _sound(scene)


def test_members_see_the_run_and_are_touched_by_it(scene: Scene) -> None:
    (one, two), run_id, delivery_id = _pooled(scene)
    stranger = scene.account()
    with scene.store.write() as tx:
        before = [tx.lanes.get(lane.account_id).revision for lane in (one, two)]
        tx.lanes.touch_run(run_id, T0)
        assert [tx.lanes.get(lane.account_id).revision for lane in (one, two)] == [
            revision + 1 for revision in before
        ]
        for account_id, seen in ((one.account_id, True), (two.account_id, True), (stranger, False)):
            restored = tx.path.restore(account_id)
            assert restored is not None
            assert [run.pooled for run in restored.runs if run.id == run_id] == [True] * seen
        assert [row.id for row in tx.path.pooled(run_id, T0, 5)] == [delivery_id]
        assert tx.path.next_pooled_at(run_id) == T0
        assert tx.path.due(one.account_id, run_id, T0, 5) == []


def test_only_what_was_never_begun_is_given_back(scene: Scene) -> None:
    (one, two), run_id, refused = _pooled(scene)
    begun, follow_up = _nobodys(scene, run_id), scene.delivery(run_id, one.account_id, step=2)
    for delivery_id, parts_done in ((refused, 0), (begun, 1)):
        assert scene.intend(one, intent(delivery_id, run_id, pooled=True)).intended
        scene.settle(one, settlement(delivery_id, run_id, DeliveryState.SENDING, parts_done=0))
        with scene.store.write() as tx:
            tx.deliveries.move(delivery_id, "retry", at=T0, parts_done=parts_done)
    with scene.store.write() as tx:
        assert tx.pools.give_back(one.account_id) == [run_id]
        assert tx.pools.give_back(one.account_id) == []
    owners = [scene.get(number).account_id for number in (refused, begun, follow_up)]
    assert owners == [None, one.account_id, one.account_id]
    # Its attempts stay with it: the next to take it counts on from there.
    assert scene.intend(two, intent(refused, run_id, pooled=True, attempt=2)).intended
    _sound(scene)


def test_the_second_of_two_processes_waits_and_finds_it_taken(postgres_scene: Scene) -> None:
    scene = postgres_scene
    (one, two), run_id, delivery_id = _pooled(scene)
    wish = intent(delivery_id, run_id, pooled=True)
    engine = create_engine(scene.url)
    with ThreadPoolExecutor(1) as threads, engine.connect() as looking:
        with scene.store.write() as tx:
            assert tx.path.apply([unit(one, wish)])[0].intended
            other = threads.submit(scene.intend, two, wish)
            while not looking.execute(
                text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            ).scalar_one():
                looking.rollback()
                assert not other.done(), other.result()
        assert not other.result().intended
    engine.dispose()
    assert scene.get(delivery_id).account_id == one.account_id
    assert _counts(scene, run_id) == {one.account_id: {"sending": 1}}
    _sound(scene)


@pytest.mark.parametrize("state", list(RunState))
def test_a_pool_that_is_over_is_nobodys_any_more(scene: Scene, state: RunState) -> None:
    (one, _), run_id, _ = _pooled(scene)
    scene.sql("UPDATE runs SET state = :state WHERE id = :id", state=state.value, id=run_id)
    under_way = state in (RunState.WAITING, RunState.RUNNING, RunState.PAUSED)
    with scene.store.read() as tx:
        assert tx.pools.of_account(one.account_id) == [run_id] * under_way
