"""What a launch writes, and what ``verify`` asks of accepted parts, on both databases."""

from paceline.core.states import DeliveryState
from paceline.engine.ports import NewDelivery
from tests.store.scene import T0, Scene, intent, settlement


def test_a_run_gets_the_window_of_its_launch(scene: Scene) -> None:
    run_id, other_id = scene.run(), scene.run()
    with scene.store.write() as tx:
        tx.runs.set_window(run_id, T0, T0 + 100)
        assert (tx.runs.get(run_id).opens_at, tx.runs.get(run_id).closes_at) == (T0, T0 + 100)
        tx.runs.set_window(run_id, None, None)
        assert (tx.runs.get(run_id).opens_at, tx.runs.get(run_id).closes_at) == (None, None)
        assert tx.runs.get(other_id).opens_at is None


def test_releasing_starts_the_clock_of_the_expiry(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    with scene.store.write() as tx:
        plan = [NewDelivery(run_id, account_id, n, f"{n}", T0 + n * 10) for n in range(3)]
        tx.deliveries.add(plan, T0)
        assert tx.deliveries.release(run_id, T0 + 15, T0, 1000) == 3
        found = tx.deliveries.page(run_id=run_id)
    assert [row.expires_at for row in found] == [T0 + 1015, T0 + 1015, T0 + 1020]


def test_an_accepted_part_that_is_not_counted_is_found(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    delivery_id = scene.delivery(run_id, account_id)
    lane = scene.lane(account_id)
    assert scene.intend(lane, intent(delivery_id, run_id)).intended
    with scene.store.write() as tx:
        assert tx.audit.uncounted() == []
        # Somebody gives it up behind the lane's back; then the provider's answer comes in.
        tx.deliveries.move(delivery_id, "fail", at=T0)
    scene.settle(lane, settlement(delivery_id, run_id, state=DeliveryState.SENT))
    with scene.store.read() as tx:
        assert tx.audit.uncounted() == [(delivery_id, 0)]
