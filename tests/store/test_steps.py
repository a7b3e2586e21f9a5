"""Deliveries that follow others: linked, released and skipped, on both databases."""

import pytest

from paceline.core.instants import DAY, HOUR
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.ports import NewDelivery
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.steps import Advanced
from tests.store.scene import T0, Lane, Scene, intent, settlement

D = DeliveryState
AFTER = {2: HOUR, 3: DAY}


def _two_people(scene: Scene, *, pooled: bool = False) -> tuple[Lane, int, dict[str, int]]:
    """Two people, three steps each; the first step is ready."""
    account_id, run_id = scene.account(), scene.run()
    owner = None if pooled else account_id
    with scene.store.write() as tx:
        if pooled:
            tx.pools.open(run_id, [account_id])
        tx.deliveries.add(
            (
                NewDelivery(run_id, owner, place, f"{who}", T0, step=step)
                for place, who in enumerate(("anna", "bert"))
                for step in (1, 2, 3)
            ),
            T0,
        )
        tx.steps.link(run_id)
        tx.deliveries.release(run_id, T0, T0)
        rows = tx.deliveries.page(run_id=run_id)
    return scene.lane(account_id), run_id, {f"{row.target}-{row.step}": row.id for row in rows}


def _sent(scene: Scene, lane: Lane, run_id: int, number: int, pooled: bool = False) -> None:
    assert scene.intend(lane, intent(number, run_id, pooled=pooled)).intended
    scene.settle(lane, settlement(number, run_id))


def _advance(scene: Scene, run_id: int) -> Advanced:
    with scene.store.write() as tx:
        return tx.steps.advance(run_id, AFTER, T0 + DAY)


def _sound(scene: Scene) -> None:
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_a_step_is_released_so_long_after_the_one_before_was_sent(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    assert scene.counts(run_id) == {"ready": 2, "planned": 4}
    assert _advance(scene, run_id) == Advanced(0, 0)
    _sent(scene, lane, run_id, rows["anna-1"])
    assert _advance(scene, run_id) == Advanced(1, 0)
    assert _advance(scene, run_id) == Advanced(0, 0), "and only once"
    sent_at = scene.get(rows["anna-1"]).sent_at
    assert sent_at is not None
    second = scene.get(rows["anna-2"])
    assert (second.state, second.due_at, second.scheduled_at) == (
        D.READY,
        sent_at + HOUR,
        sent_at + HOUR,
    )
    assert scene.state(rows["anna-3"]) is D.PLANNED
    assert scene.state(rows["bert-2"]) is D.PLANNED
    _sound(scene)


@pytest.mark.parametrize("kind", [OutcomeKind.REJECTED, OutcomeKind.BOUNCED])
def test_what_follows_an_undelivered_message_is_skipped_to_the_end(
    scene: Scene, kind: OutcomeKind
) -> None:
    lane, run_id, rows = _two_people(scene)
    state = D.FAILED if kind is OutcomeKind.REJECTED else D.BOUNCED
    assert scene.intend(lane, intent(rows["anna-1"], run_id)).intended
    scene.settle(lane, settlement(rows["anna-1"], run_id, state, Outcome(kind), parts_done=0))
    skipped = 0
    while (advanced := _advance(scene, run_id)).skipped:
        skipped += advanced.skipped
    assert skipped == 2
    assert scene.get(rows["anna-2"]).reason == f"step 1 was not delivered: it is {state}"
    assert scene.get(rows["anna-3"]).reason == "step 2 was not delivered: it is skipped"
    assert scene.state(rows["bert-2"]) is D.PLANNED
    _sound(scene)


def test_a_step_expires_so_long_after_it_falls_due(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    _sent(scene, lane, run_id, rows["anna-1"])
    with scene.store.write() as tx:
        tx.steps.advance(run_id, AFTER, T0 + DAY, 2 * HOUR)
    second = scene.get(rows["anna-2"])
    assert second.due_at is not None
    assert second.expires_at == second.due_at + 2 * HOUR


def test_a_doubt_is_waited_for(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    assert scene.intend(lane, intent(rows["anna-1"], run_id)).intended
    lost = Outcome(OutcomeKind.UNKNOWN)
    scene.settle(lane, settlement(rows["anna-1"], run_id, D.UNKNOWN, lost, parts_done=0))
    assert _advance(scene, run_id) == Advanced(0, 0)
    assert scene.state(rows["anna-2"]) is D.PLANNED


def test_the_account_that_wrote_first_writes_again(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene, pooled=True)
    _sent(scene, lane, run_id, rows["bert-1"], pooled=True)
    assert _advance(scene, run_id) == Advanced(1, 0)
    assert scene.get(rows["bert-2"]).account_id == lane.account_id
    with scene.store.read() as tx:
        by_account = tx.runs.accounts(run_id)
    assert by_account[NOBODY][D.PLANNED] == 3
    assert by_account[lane.account_id][D.READY] == 1
    _sound(scene)


def test_runs_that_wait_for_a_step_are_found_while_they_do(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    scene.delivery(scene.run(), lane.account_id)
    with scene.store.read() as tx:
        assert tx.steps.waiting() == [], "nothing is settled yet"
    _sent(scene, lane, run_id, rows["anna-1"])
    with scene.store.read() as tx:
        assert tx.steps.waiting() == [run_id]
    _advance(scene, run_id)
    with scene.store.read() as tx:
        assert tx.steps.waiting() == []
    _sent(scene, lane, run_id, rows["anna-2"])
    with scene.store.write() as tx:
        tx.deliveries.move_all(run_id, "cancel", at=T0)
        assert tx.steps.waiting() == []


def test_what_was_skipped_for_a_message_that_is_tried_again_waits_anew(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    assert scene.intend(lane, intent(rows["anna-1"], run_id)).intended
    refused = Outcome(OutcomeKind.REJECTED)
    scene.settle(lane, settlement(rows["anna-1"], run_id, D.FAILED, refused, parts_done=0))
    while _advance(scene, run_id).skipped:
        pass
    with scene.store.write() as tx:
        assert tx.deliveries.retry_failed(run_id, T0 + DAY, None) == 1
        assert tx.steps.revive(run_id, 3, T0 + DAY) == 2
    assert scene.counts(run_id) == {"ready": 2, "planned": 4}
    assert scene.get(rows["anna-2"]).reason == ""
    _sound(scene)


def test_nobody_follows_up_for_an_account_that_was_removed(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene, pooled=True)
    _sent(scene, lane, run_id, rows["anna-1"], pooled=True)
    with scene.store.write() as tx:
        tx.accounts.update(lane.account_id, removed_at=T0)
    assert _advance(scene, run_id).released == 0
    second = scene.get(rows["anna-2"])
    assert second.state is D.CANCELLED
    assert second.reason.endswith("removed")
    _sound(scene)


def test_the_opted_out_are_not_tried_again(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    refused = Outcome(OutcomeKind.REJECTED)
    for who in ("anna-1", "bert-1"):
        assert scene.intend(lane, intent(rows[who], run_id)).intended
        scene.settle(lane, settlement(rows[who], run_id, D.FAILED, refused, parts_done=0))
    with scene.store.write() as tx:
        tx.suppressions.add("anna", "asked", "operator", T0)
        assert tx.deliveries.retry_failed(run_id, T0 + DAY, None) == 1
    assert scene.state(rows["anna-1"]) is D.FAILED
    assert scene.state(rows["bert-1"]) is D.READY
    _sound(scene)
