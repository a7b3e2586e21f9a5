"""Deliveries that follow others: linked, released and skipped, on both databases."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import TextClause, text

from paceline.core.instants import DAY, HOUR
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.commands import erasing
from paceline.engine.ports import NewDelivery
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.steps import Advanced
from paceline.store import steps
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
        assert tx.audit.misplaced() == []


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


def test_a_step_is_not_due_before_the_minute_that_was_planned_for_it(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    late_at, early_at = T0 + 5 * HOUR, T0 + HOUR // 2
    with scene.store.write() as tx:
        minutes = [(rows["anna-1"], late_at), (rows["anna-2"], late_at), (rows["bert-2"], early_at)]
        assert tx.timetable.expect(sorted(minutes)) == 2, "the first ones wait for nothing"
    assert scene.get(rows["anna-1"]).scheduled_at == T0
    for who in ("anna", "bert"):
        _sent(scene, lane, run_id, rows[f"{who}-1"])
    with scene.store.write() as tx:
        tx.steps.advance(run_id, AFTER, T0 + DAY, 2 * HOUR)
    sent_at = scene.get(rows["bert-1"]).sent_at
    assert sent_at is not None
    for who, due_at in (("anna", late_at), ("bert", sent_at + HOUR)):
        second = scene.get(rows[f"{who}-2"])
        assert (second.due_at, second.scheduled_at) == (due_at, due_at)
        assert second.expires_at == due_at + 2 * HOUR
    with scene.store.write() as tx:
        assert tx.timetable.expect([(rows["anna-2"], T0)]) == 0, "it is due by now"
    _sound(scene)


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
    assert _advance(scene, run_id) == Advanced(0, 0), "nobody is left to be told"
    with scene.store.read() as tx:
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


# ---------------------------------------------------------------------- what turns out later


def _released(scene: Scene, *, pooled: bool = False) -> tuple[Lane, int, dict[str, int]]:
    """Two people whose first message was sent, and whose second is ready."""
    lane, run_id, rows = _two_people(scene, pooled=pooled)
    for who in ("anna-1", "bert-1"):
        _sent(scene, lane, run_id, rows[who], pooled)
    assert _advance(scene, run_id) == Advanced(2, 0)
    return lane, run_id, rows


def _bounce(scene: Scene, number: int) -> None:
    with scene.store.write() as tx:
        assert tx.deliveries.move(number, "bounce", at=T0 + DAY, reason="unknown user")


@pytest.mark.parametrize("pooled", [False, True])
def test_what_has_bounced_since_is_not_followed(scene: Scene, pooled: bool) -> None:
    lane, run_id, rows = _released(scene, pooled=pooled)
    _bounce(scene, rows["anna-1"])
    assert not scene.intend(lane, intent(rows["anna-2"], run_id)).intended, "at once"
    assert scene.intend(lane, intent(rows["bert-2"], run_id)).intended
    assert scene.get(rows["anna-2"]).before is D.BOUNCED
    with scene.store.read() as tx:
        due = {row.id: row.before for row in tx.path.due(lane.account_id, run_id, T0 + DAY, 9)}
        assert due == {rows["anna-2"]: D.BOUNCED}, "whoever would send it is told"
        assert tx.steps.waiting() == [run_id]
    assert _advance(scene, run_id) == Advanced(0, 1)
    second = scene.get(rows["anna-2"])
    assert (second.state, second.due_at) == (D.SKIPPED, None)
    assert second.reason == "step 1 was not delivered: it is bounced"
    assert _advance(scene, run_id) == Advanced(0, 1), "nor is what follows that"
    assert scene.state(rows["anna-3"]) is D.SKIPPED
    assert scene.state(rows["bert-3"]) is D.PLANNED
    _sound(scene)


def test_a_message_that_bounces_between_the_parts_of_the_next_ends_it(scene: Scene) -> None:
    lane, run_id, rows = _released(scene)
    number = rows["anna-2"]
    assert scene.intend(lane, intent(number, run_id)).intended
    scene.settle(lane, settlement(number, run_id, D.SENDING, parts_done=1))
    _bounce(scene, rows["anna-1"])
    assert not scene.intend(lane, intent(number, run_id, part=1, starts=False)).intended


@pytest.mark.parametrize("who", ["anna-1", "anna-2"])
def test_whoever_opts_out_after_the_release_gets_no_follow_up(scene: Scene, who: str) -> None:
    lane, run_id, rows = _released(scene)
    with scene.store.write() as tx:
        tx.suppressions.add(scene.get(rows[who]).target, "asked", "operator", T0 + DAY)
    assert not scene.intend(lane, intent(rows["anna-2"], run_id)).intended
    assert scene.intend(lane, intent(rows["bert-2"], run_id)).intended


@pytest.mark.parametrize("released", [False, True])
def test_whoever_is_erased_gets_no_follow_up(scene: Scene, released: bool) -> None:
    lane, run_id, rows = _two_people(scene)
    for who in ("anna-1", "bert-1"):
        _sent(scene, lane, run_id, rows[who])
    if released:
        assert _advance(scene, run_id) == Advanced(2, 0)
    with scene.store.write() as tx:
        assert erasing.erase(tx, "anna", T0 + DAY).cancelled == 2
    _advance(scene, run_id)
    _advance(scene, run_id)
    states = [scene.state(rows[f"anna-{step}"]) for step in (1, 2, 3)]
    assert states == [D.SENT, D.CANCELLED, D.CANCELLED]
    assert not scene.intend(lane, intent(rows["anna-2"], run_id)).intended
    with scene.store.write() as tx:
        assert tx.deliveries.retry_failed(run_id, T0 + DAY, None) == 0
        assert tx.steps.revive(run_id, 3, T0 + DAY) == 0, "nothing brings them back"
    assert scene.state(rows["bert-2"]) is D.READY
    _sound(scene)


def test_a_step_that_nobody_would_tell_is_found_by_verify(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    _sent(scene, lane, run_id, rows["anna-1"])
    with scene.store.read() as tx:
        assert tx.audit.misplaced() == []
    scene.sql("UPDATE deliveries SET awaited = false WHERE id = :id", id=rows["anna-1"])
    with scene.store.read() as tx:
        assert tx.audit.misplaced() == [
            f"delivery {rows['anna-2']} is planned"
            " but the message before it does not know that it waits"
        ]


# ---------------------------------------------------------------------- what a look costs


def test_a_few_at_a_time_until_all_are_told(scene: Scene) -> None:
    lane, run_id, rows = _two_people(scene)
    for who in ("anna-1", "bert-1"):
        _sent(scene, lane, run_id, rows[who])
    for left in ([run_id], []):
        with scene.store.write() as tx:
            assert tx.steps.advance(run_id, AFTER, T0 + DAY, most=1) == Advanced(1, 0)
            assert tx.steps.waiting() == left
    assert scene.counts(run_id) == {"sent": 2, "ready": 2, "planned": 2}
    _sound(scene)


def test_those_who_wait_are_not_looked_at(scene: Scene) -> None:
    """Every statement of a look goes by keys, even by statistics from before the campaign began."""
    account_id, run_id = scene.account(), scene.run()
    with scene.store.write() as tx:
        people = range(2_000)
        tx.deliveries.add(
            (
                NewDelivery(run_id, account_id, place, f"{place}", T0, step=step)
                for place in people
                for step in (1, 2)
            ),
            T0,
        )
        tx.steps.link(run_id)
    scene.store.analyse()
    with scene.store.write() as tx:
        tx.deliveries.release(run_id, T0, T0)
    scene.sql("UPDATE deliveries SET state = 'sent', due_at = NULL, sent_at = 1 WHERE step = 1")
    with scene.store.write() as tx:
        for statement, indexes in _looks(tx.steps, run_id):
            plan = _plan(tx.steps, statement)
            assert all(index in plan for index in indexes), plan
            assert not re.search(r"seq scan on|scan (deliveries|p)\b(?! using)", plan, re.I), plan


def _looks(some: Any, run_id: int) -> Iterator[tuple[TextClause, tuple[str, ...]]]:
    """The statements of one look with their values, and the indexes that each should go by."""
    on_postgresql = some._context.postgresql
    values = {"run_id": run_id, "most": 1_000, "at": T0, "source": "ready"}
    waits = {"step": 2, "after_us": 1, "expire_us": None}
    ids = some._take(run_id, 2_000)
    awaited, following = "ix_deliveries_awaited", "ix_deliveries_following"
    yield _bound(steps._LOCKED[on_postgresql], values), (awaited,)
    for name, statement in steps._TOLD.items():
        by = () if name == "tell" else (following,)
        yield _bound(statement[on_postgresql], {**values, **waits, "ids": ids}), by


def _bound(statement: TextClause, values: dict[str, Any]) -> TextClause:
    named = {name: values[name] for name in statement._bindparams}
    return text(statement.text).bindparams(**named)


def _plan(some: Any, statement: TextClause) -> str:
    explain = "EXPLAIN (COSTS OFF)" if some._context.postgresql else "EXPLAIN QUERY PLAN"
    values = {name: bound.value for name, bound in statement._bindparams.items()}
    found = some._connection.execute(text(f"{explain} {statement.text}"), values)
    return "\n".join(str(row[-1]) for row in found)


def test_a_step_that_may_have_arrived_is_not_called_skipped(scene: Scene) -> None:
    """It was lost and is to be sent again, when the one before it comes back."""
    lane, run_id, rows = _two_people(scene)
    _sent(scene, lane, run_id, rows["anna-1"])
    _advance(scene, run_id)
    number = rows["anna-2"]
    assert scene.intend(lane, intent(number, run_id)).intended
    loss = Outcome(OutcomeKind.UNKNOWN, "no answer")
    scene.settle(
        lane, settlement(number, run_id, DeliveryState.UNKNOWN, loss, parts_done=0, due_at=T0)
    )
    with scene.store.write() as tx:
        tx.deliveries.move(number, "retry", at=T0 + 5)
        tx.deliveries.move(rows["anna-1"], "bounce", at=T0 + 9)
    _advance(scene, run_id)
    after = scene.get(number)
    assert (after.state, after.due_at) == (DeliveryState.UNKNOWN, None)
    assert after.reason.endswith("bounced; an earlier try may have arrived, held for a person")
    assert scene.state(rows["anna-3"]) is DeliveryState.PLANNED, "as long as nobody knows"
    _sound(scene)
