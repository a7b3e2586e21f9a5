"""Intents: one passes when every guard is open, and each guard alone refuses it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from paceline.core.instants import HOUR
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import Lease
from tests.store.scene import CHECKPOINT, T0, Lane, Scene, intent, settlement, unit

Breaking = Callable[[Scene, Lane, int, int], None]


@pytest.fixture
def scene(path_scene: Scene) -> Scene:
    return path_scene


def test_an_intent_takes_the_delivery_and_leaves_its_mark(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)

    result = scene.intend(lane, intent(delivery_id, run_id, at=T0 + 5))

    assert (result.held, result.settled, result.intended) == (True, (), True)
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.attempts, delivery.due_at) == ("sending", 1, None)
    assert scene.counts(run_id) == {"sending": 1}
    with scene.store.read() as tx:
        (row,) = tx.ledger.of_delivery(delivery_id)
    assert (row.kind, row.at, row.intent_at, row.started_at) == ("intent", T0 + 5, T0 + 5, None)
    assert (row.slots, row.policy_id, row.generation) == (1, 1, lane.lease.generation)
    assert (row.account_id, row.run_id, row.action) == (account_id, run_id, "message")


def test_what_is_known_of_earlier_tries_stays_with_the_delivery(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)
    scene.sql(
        "UPDATE deliveries SET retries = 2, reason = 'busy', provider_id = 'p-1', sent_at = 7"
    )

    assert scene.intend(lane, intent(delivery_id, run_id)).intended

    ((*known,),) = scene.sql("SELECT retries, reason, provider_id, sent_at FROM deliveries")
    assert known == [2, "busy", "p-1", 7]


def _take_over(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    scene.expire(lane.lease.process_id)
    scene.lane(lane.account_id)


def _touch(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.lanes.touch(lane.account_id, T0)


def _stop(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.settings.fence()
        tx.settings.stop("")


def _suppress(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    target = scene.get(delivery_id).target
    with scene.store.write() as tx:
        tx.settings.fence()
        tx.suppressions.add(target, "asked", "operator", T0)


def _suppress_domain(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    _, _, domain = scene.get(delivery_id).target.partition("@")
    with scene.store.write() as tx:
        tx.settings.fence()
        tx.suppressions.add(f"@{domain}", "asked", "operator", T0)


def _pause_run(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.runs.move(run_id, "pause", at=T0)


def _pause_account(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.accounts.move(lane.account_id, "pause")


def _suspend_account(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.accounts.move(lane.account_id, "suspend")


def _remove_account(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.accounts.update(lane.account_id, removed_at=T0)


def _cancel_delivery(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        tx.deliveries.move(delivery_id, "cancel", at=T0)


def _expire(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    scene.expire(lane.lease.process_id)


def _give_back(scene: Scene, lane: Lane, run_id: int, delivery_id: int) -> None:
    with scene.store.write() as tx:
        assert tx.lanes.park(lane.lease, lane.revision, None)


@pytest.mark.parametrize(
    ("break_guard", "held"),
    [
        (_take_over, False),
        (_give_back, False),
        (_expire, True),
        (_touch, True),
        (_stop, True),
        (_suppress, True),
        (_suppress_domain, True),
        (_pause_run, True),
        (_pause_account, True),
        (_suspend_account, True),
        (_remove_account, True),
        (_cancel_delivery, True),
    ],
)
def test_each_guard_alone_refuses_a_start(scene: Scene, break_guard: Breaking, held: bool) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)
    break_guard(scene, lane, run_id, delivery_id)
    before = scene.get(delivery_id)

    result = scene.intend(lane, intent(delivery_id, run_id))

    assert (result.held, result.intended) == (held, False)
    assert scene.get(delivery_id) == before
    assert scene.ledger(delivery_id) == []
    assert "sending" not in scene.counts(run_id)


@pytest.mark.parametrize(
    ("break_guard", "passes"),
    [
        (_take_over, False),
        (_give_back, False),
        (_expire, False),
        (_stop, False),
        (_suppress, False),
        (_suppress_domain, False),
        # A delivery that has started finishes.
        (_touch, True),
        (_pause_run, True),
        (_pause_account, True),
        (_suspend_account, True),
    ],
)
def test_a_further_part_needs_lane_lease_and_permission_only(
    scene: Scene, break_guard: Breaking, passes: bool
) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.settle(lane, settlement(delivery_id, run_id, DeliveryState.SENDING))
    break_guard(scene, lane, run_id, delivery_id)

    result = scene.intend(lane, intent(delivery_id, run_id, part=1, starts=False))

    assert result.intended is passes
    assert ((1, 1, "intent", None) in scene.ledger(delivery_id)) is passes
    assert scene.state(delivery_id) is DeliveryState.SENDING


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempt": 2},
        {"attempt": 0},
        {"run_id": 999_999},
        {"delivery_id": 999_999},
        {"starts": False},
    ],
)
def test_an_intent_must_name_what_is_there(scene: Scene, wrong: dict[str, int]) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)
    assert not scene.intend(lane, intent(delivery_id, run_id)._replace(**wrong)).intended
    assert scene.state(delivery_id) is DeliveryState.READY


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.RUNNING])
def test_only_a_running_run_starts_deliveries(sqlite_scene: Scene, state: RunState) -> None:
    scene = sqlite_scene
    account_id, run_id = scene.account(), scene.run(state)
    lane = scene.lane(account_id)
    assert not scene.intend(lane, intent(scene.delivery(run_id, account_id), run_id)).intended


def test_a_lane_sends_for_its_own_account_only(scene: Scene) -> None:
    mine, theirs, run_id = scene.account(), scene.account(), scene.run()
    delivery_id = scene.delivery(run_id, theirs)
    assert not scene.intend(scene.lane(mine), intent(delivery_id, run_id)).intended


def test_a_stranger_with_the_right_generation_is_refused(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)
    lease = Lease(account_id, scene.process(), lane.lease.generation)
    result = scene.intend(replace(lane, lease=lease), intent(delivery_id, run_id))
    assert (result.held, result.intended) == (False, False)


def test_what_is_on_its_way_is_not_started_again(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    assert not scene.intend(lane, intent(delivery_id, run_id)).intended
    assert not scene.intend(lane, intent(delivery_id, run_id, attempt=2)).intended
    assert scene.counts(run_id) == {"sending": 1}


def test_parts_go_in_order_and_each_once(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    second = intent(delivery_id, run_id, part=1, starts=False)
    assert not scene.intend(lane, second).intended  # the first has not been settled
    scene.settle(lane, settlement(delivery_id, run_id, DeliveryState.SENDING))
    third = intent(delivery_id, run_id, part=2, starts=False)
    assert not scene.intend(lane, third).intended
    assert scene.intend(lane, second).intended
    assert not scene.intend(lane, second).intended  # as after a commit whose answer was lost


def test_the_same_delivery_twice_in_a_group_passes_once(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    wish = intent(scene.delivery(run_id, account_id), run_id)
    results = scene.apply(unit(lane, wish), unit(lane, wish))
    assert sorted(result.intended for result in results) == [False, True]
    assert scene.counts(run_id) == {"sending": 1}


def test_a_group_settles_and_intends_for_many_lanes_at_once(scene: Scene) -> None:
    run_id = scene.run()
    lanes = [scene.lane(scene.account()) for _ in range(5)]
    first = [scene.delivery(run_id, lane.account_id) for lane in lanes]
    second = [scene.delivery(run_id, lane.account_id) for lane in lanes]
    assert all(
        result.intended
        for result in scene.apply(
            *(unit(lane, intent(d, run_id)) for lane, d in zip(lanes, first, strict=True))
        )
    )
    scene.expire(lanes[2].lease.process_id)

    results = scene.apply(
        *(
            unit(lane, intent(wanted, run_id), (settlement(done, run_id),), CHECKPOINT)
            for lane, done, wanted in zip(lanes, first, second, strict=True)
        )
    )

    assert [result.settled for result in results] == [(True,)] * 5
    assert [result.intended for result in results] == [True, True, False, True, True]
    assert scene.counts(run_id) == {"sent": 5, "sending": 4, "ready": 1}


def test_a_unit_settles_a_part_and_intends_the_next(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    (result,) = scene.apply(
        unit(
            lane,
            intent(delivery_id, run_id, part=1, starts=False),
            (settlement(delivery_id, run_id, DeliveryState.SENDING),),
        )
    )
    assert (result.settled, result.intended) == ((True,), True)
    assert scene.get(delivery_id).parts_done == 1


@pytest.mark.parametrize("doubted", [False, True])
def test_what_a_group_gives_back_it_may_intend_again(scene: Scene, doubted: bool) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    if doubted:
        lost = settlement(delivery_id, run_id, DeliveryState.UNKNOWN, parts_done=0)
        assert scene.settle(lane, lost).settled == (True,)
    again = settlement(delivery_id, run_id, DeliveryState.READY, due_at=T0, parts_done=0)

    (result,) = scene.apply(unit(lane, intent(delivery_id, run_id, attempt=2), (again,)))

    assert (result.settled, result.intended) == ((True,), True)
    assert scene.get(delivery_id).attempts == 2
    assert scene.counts(run_id) == {"sending": 1}


def test_the_checkpoint_is_written_by_the_owner_only(scene: Scene) -> None:
    account_id = scene.account()
    lane = scene.lane(account_id)
    scene.apply(unit(lane, usage='{"tat_at": 1}'), unit(lane, usage='{"tat_at": 2}'))
    with scene.store.read() as tx:
        restored = tx.path.restore(account_id)
    assert restored is not None
    assert restored.checkpoint == {"tat_at": 2}  # the last one of a group counts

    scene.expire(lane.lease.process_id)
    scene.lane(account_id)
    assert not scene.apply(unit(lane, usage='{"tat_at": 3}'))[0].held
    with scene.store.read() as tx:
        again = tx.path.restore(account_id)
    assert again is not None
    assert again.checkpoint == {"tat_at": 2}


def test_an_empty_group_is_nothing(scene: Scene) -> None:
    assert scene.apply() == []


def test_a_lease_that_ends_now_has_ended(sqlite_scene: Scene) -> None:
    scene = sqlite_scene
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id, scene.process(lease_us=HOUR))
    delivery_id = scene.delivery(run_id, account_id)
    scene.clock.now = T0 + HOUR
    assert not scene.intend(lane, intent(delivery_id, run_id)).intended
    scene.clock.now = T0 + HOUR - 1
    assert scene.intend(lane, intent(delivery_id, run_id)).intended
