"""What was sent again while in doubt does not end as if it had never arrived."""

from dataclasses import replace

import pytest

from paceline.core import outcome as outcomes
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DELIVERY, DeliveryState
from paceline.engine import lane_writes
from paceline.engine.commands import control
from paceline.engine.commands.control import Resolved
from paceline.engine.doubts import record_absence
from paceline.engine.ports import LedgerRow
from paceline.engine.settling import Aftermath
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


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("absent", D.CANCELLED),
        ("rejected", D.CANCELLED),
        ("unknown", D.UNKNOWN),
        ("accepted", D.UNKNOWN),
    ],
)
def test_what_was_heard_since_ends_the_doubt(scene: Scene, said: str, state: DeliveryState) -> None:
    """By looking or by a late answer; but that it was accepted is no reason to cancel it."""
    _, run_id, delivery_id = lost(scene)
    with scene.store.write() as tx:
        (first, *_) = tx.ledger.of_delivery(delivery_id)
        tx.ledger.append(heard(first, said))
        assert tx.deliveries.move(delivery_id, "cancel", at=T0 + 9) is state
    assert scene.counts(run_id) == {str(state): 1}


def test_what_was_heard_of_another_part_says_nothing_of_this_one(scene: Scene) -> None:
    _, _, delivery_id = lost(scene)
    with scene.store.write() as tx:
        (first, *_) = tx.ledger.of_delivery(delivery_id)
        tx.ledger.append(replace(heard(first, "absent"), part=1))
        assert tx.deliveries.move(delivery_id, "cancel", at=T0 + 9) is D.UNKNOWN


def test_only_an_accounts_own_doubts_are_left_open_with_it(scene: Scene) -> None:
    lane, run_id, delivery_id = lost(scene)
    other = scene.account()
    with scene.store.write() as tx:
        assert tx.deliveries.move_all(run_id, "cancel", at=T0 + 9, account_id=other) == 0
        assert tx.deliveries.get(delivery_id).state is D.READY
        own = lane.account_id
        tx.deliveries.move_all(run_id, "cancel", at=T0 + 9, account_id=own, pooled=True)
        after = tx.deliveries.get(delivery_id)
    assert (after.state, after.due_at) == (D.UNKNOWN, None)


def test_a_pool_is_not_given_back_what_may_have_arrived(scene: Scene) -> None:
    """Nobody else could find out, and a person would be told that it was never tried."""
    lane, run_id, delivery_id = lost(scene)
    fresh = scene.delivery(run_id, lane.account_id)
    with scene.store.write() as tx:
        tx.pools.open(run_id, [lane.account_id])
        assert tx.pools.give_back(lane.account_id) == [run_id]
        assert tx.deliveries.get(delivery_id).account_id == lane.account_id
        assert tx.deliveries.get(fresh).account_id is None
        assert tx.audit.recount() == []


def test_a_late_acceptance_is_not_sent_again(scene: Scene) -> None:
    """Its lane had another owner by then, who was about to send it once more."""
    lane, run_id, delivery_id = lost(scene)
    answer = settlement(delivery_id, run_id, D.SENT, outcomes.accepted("p-1"))
    assert scene.settle(lane, answer).settled == (False,)
    with scene.store.write() as tx:
        assert lane_writes.is_news(answer, moved=False)
        lane_writes.tell_owner(tx, lane.account_id, [answer], T0 + 9)
    after = scene.get(delivery_id)
    assert (after.state, after.provider_id, after.due_at) == (D.SENT, "p-1", None)
    assert after.parts_done == 1 and scene.counts(run_id) == {"sent": 1}


def test_after_a_late_acceptance_of_one_part_the_next_one_goes(scene: Scene) -> None:
    lane, run_id, delivery_id = lost(scene)
    answer = settlement(delivery_id, run_id, D.SENDING, outcomes.accepted("p-1"))
    with scene.store.write() as tx:
        lane_writes.tell_owner(tx, lane.account_id, [answer], T0 + 9)
    after = scene.get(delivery_id)
    assert (after.state, after.parts_done, after.due_at) == (D.READY, 1, T0 + 9)


def test_a_late_acceptance_of_what_was_tried_for_certain_changes_nothing(scene: Scene) -> None:
    """It waits for a retry after an answer that was heard, or for nothing at all."""
    run_id, account_id = scene.run(), scene.account()
    lane, fresh = scene.lane(account_id), scene.delivery(run_id, account_id)
    answer = settlement(fresh, run_id, D.SENT, outcomes.accepted("p-1"))
    with scene.store.write() as tx:
        lane_writes.tell_owner(tx, lane.account_id, [answer], T0 + 9)
    assert scene.state(fresh) is D.READY


def test_a_late_refusal_does_not_overrule_a_person(scene: Scene) -> None:
    lane, run_id, delivery_id = lost(scene)
    assert scene.intend(lane, intent(delivery_id, run_id, attempt=2, at=T0 + 20)).intended
    tried = {"attempt": 2, "intent_at": T0 + 20, "parts_done": 0}
    loss = settlement(
        delivery_id, run_id, D.UNKNOWN, outcomes.unknown("no answer"), due_at=T0 + 30, **tried
    )
    scene.settle(lane, loss)
    refused = settlement(delivery_id, run_id, D.FAILED, REFUSED, **tried)
    with scene.store.write() as tx:
        account = tx.accounts.get(lane.account_id)
        late = [(refused, Aftermath(tried_before=delivery_id))]
        control.resolve_unknown(tx, delivery_id, "failed", T0 + 40)
        lane_writes.with_aftermath(tx, unit(lane, settlements=(refused,)), late, account, T0 + 50)
    assert scene.state(delivery_id) is D.FAILED


@pytest.mark.parametrize("verdict", ["resend", "sent", "failed"])
def test_a_person_answers_for_every_try_that_was_lost(scene: Scene, verdict: Resolved) -> None:
    """The last one was refused, and has given its slot back already."""
    lane, run_id, delivery_id = lost(scene)
    assert scene.intend(lane, intent(delivery_id, run_id, attempt=2, at=T0 + 20)).intended
    refused = settlement(
        delivery_id, run_id, D.FAILED, REFUSED, attempt=2, intent_at=T0 + 20, parts_done=0
    )
    with scene.store.write() as tx:
        tx.path.apply([unit(lane, settlements=(refused,))])
        assert tx.deliveries.lose(delivery_id, T0 + 22)
        control.resolve_unknown(tx, delivery_id, verdict, T0 + 40)
        rows = tx.ledger.of_delivery(delivery_id)
        slots = {n: sum(row.slots for row in rows if row.attempt == n) for n in (1, 2)}
        said = [(row.attempt, row.outcome) for row in rows if row.kind == "resolution"]
    told = {"resend": [(1, "absent")], "sent": [(1, "accepted")], "failed": []}
    assert said == told[verdict]
    assert slots == {1: 0 if verdict == "resend" else 1, 2: 0}


def test_absence_is_said_of_every_try(scene: Scene) -> None:
    """They all have the same name at the provider. Whatever was proved absent may be called off."""
    lane, run_id, delivery_id = lost(scene)
    assert scene.intend(lane, intent(delivery_id, run_id, attempt=2, at=T0 + 20)).intended
    loss = settlement(
        delivery_id,
        run_id,
        D.UNKNOWN,
        outcomes.unknown("no answer"),
        attempt=2,
        intent_at=T0 + 20,
        parts_done=0,
        due_at=T0 + 30,
    )
    scene.settle(lane, loss)
    with scene.store.write() as tx:
        record_absence(tx, tx.deliveries.get(delivery_id), T0 + 40)
        rows = tx.ledger.of_delivery(delivery_id)
        assert sum(row.slots for row in rows) == 0
        assert tx.deliveries.move(delivery_id, "cancel", at=T0 + 50) is D.CANCELLED


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
