"""What was sent again while in doubt does not end as if it had never arrived."""

import pytest

from paceline.core import outcome as outcomes
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DELIVERY, DeliveryState
from paceline.engine.ports import LedgerRow
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit

D = DeliveryState
REFUSED = Outcome(OutcomeKind.REJECTED, reason="no such group")
OPEN = "; an earlier try may have arrived, held for a person"


def lost(scene: Scene) -> tuple[Lane, int, int]:
    """A lane, a run and its delivery, whose first try was lost, and which is to be sent again."""
    lane, run_id, delivery_id = scene.on_its_way()
    loss = settlement(
        delivery_id, run_id, D.UNKNOWN, outcomes.unknown("no answer"), parts_done=0, due_at=T0
    )
    assert scene.settle(lane, loss).settled == (True,)
    with scene.store.write() as tx:
        assert tx.deliveries.move(delivery_id, "retry", at=T0 + 5) is D.READY
    return lane, run_id, delivery_id


@pytest.mark.parametrize("event", ["cancel", "skip", "fail"])
def test_it_becomes_unknown_again_instead(scene: Scene, event: str) -> None:
    _, run_id, delivery_id = lost(scene)
    with scene.store.write() as tx:
        assert tx.deliveries.move(delivery_id, event, at=T0 + 9, reason="over") is D.UNKNOWN
    after = scene.get(delivery_id)
    assert (after.state, after.due_at, after.reason) == (D.UNKNOWN, None, f"over{OPEN}")
    assert scene.counts(run_id) == {"unknown": 1}


@pytest.mark.parametrize("event", ["cancel", "skip"])
def test_it_stays_behind_when_the_rest_of_its_run_ends(scene: Scene, event: str) -> None:
    lane, run_id, delivery_id = lost(scene)
    others = [scene.delivery(run_id, lane.account_id) for _ in range(2)]
    with scene.store.write() as tx:
        assert tx.deliveries.move_all(run_id, event, at=T0 + 9, reason="over") == 2
    assert scene.get(delivery_id).reason == f"over{OPEN}"
    assert {scene.state(other) for other in others} == {DELIVERY.next(D.READY, event)}
    assert scene.counts(run_id)["unknown"] == 1


def test_what_was_never_tried_cannot_be_lost(scene: Scene) -> None:
    run_id, account_id = scene.run(), scene.account()
    delivery_id = scene.delivery(run_id, account_id)
    with scene.store.write() as tx:
        assert tx.deliveries.move(delivery_id, "lose", at=T0 + 9) is None
    assert scene.state(delivery_id) is D.READY


def test_a_person_has_the_last_word(scene: Scene) -> None:
    _, _, delivery_id = lost(scene)
    with scene.store.write() as tx:
        tx.deliveries.move(delivery_id, "cancel", at=T0 + 9)
        assert tx.deliveries.move(delivery_id, "fail", at=T0 + 10) is D.FAILED


@pytest.mark.parametrize("said", ["absent", "rejected", "accepted"])
def test_what_was_heard_since_ends_the_doubt(scene: Scene, said: str) -> None:
    """Whether by looking or by a late answer; an acceptance ends it where more parts follow."""
    _, run_id, delivery_id = lost(scene)
    with scene.store.write() as tx:
        (first, *_) = tx.ledger.of_delivery(delivery_id)
        tx.ledger.append(heard(first, said))
        assert tx.deliveries.move(delivery_id, "cancel", at=T0 + 9) is D.CANCELLED
    assert scene.counts(run_id) == {"cancelled": 1}


def heard(intended: LedgerRow, said: str) -> LedgerRow:
    values = {name: getattr(intended, name) for name in intended.__slots__}
    return LedgerRow(**values | {"kind": "resolution", "outcome": said, "slots": 0, "at": T0 + 7})


def test_an_earlier_part_of_which_nothing_was_heard_in_time_is_no_doubt(scene: Scene) -> None:
    """It was found, or nothing would be known of the parts after it."""
    _, _, delivery_id = lost(scene)
    with scene.store.write() as tx:
        tx.deliveries.move(delivery_id, "lose", at=T0 + 6)
        tx.deliveries.move(delivery_id, "retry", at=T0 + 7, parts_done=1)
        assert tx.deliveries.move(delivery_id, "cancel", at=T0 + 9) is D.CANCELLED


def test_a_later_try_that_fails_leaves_the_doubt(scene: Scene) -> None:
    lane, run_id, delivery_id = lost(scene)
    again = intent(delivery_id, run_id, attempt=2, at=T0 + 20)
    assert scene.intend(lane, again).intended
    refused = settlement(
        delivery_id,
        run_id,
        D.FAILED,
        REFUSED,
        attempt=2,
        intent_at=T0 + 20,
        parts_done=0,
        reason="no such group",
    )
    with scene.store.write() as tx:
        assert not tx.deliveries.lose(delivery_id, T0 + 21), "it is on its way"
        tx.path.apply([unit(lane, settlements=(refused,))])
        assert tx.deliveries.get(delivery_id).state is D.FAILED
        assert tx.deliveries.lose(delivery_id, T0 + 22)
    assert scene.get(delivery_id).reason == f"no such group{OPEN}"
    assert scene.counts(run_id) == {"unknown": 1}


def test_what_failed_and_was_never_lost_has_failed(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    refused = settlement(delivery_id, run_id, D.FAILED, REFUSED, parts_done=0)
    scene.settle(lane, refused)
    with scene.store.write() as tx:
        assert not tx.deliveries.lose(delivery_id, T0 + 22)
    assert scene.state(delivery_id) is D.FAILED
