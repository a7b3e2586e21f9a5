"""Settlements: an outcome is always written down, and moves only the attempt it belongs to."""

import pytest

from paceline.core.instants import SECOND
from paceline.core.outcome import Outcome, OutcomeKind, transient, unknown
from paceline.core.states import DELIVERY, DeliveryState
from tests.store.scene import T0, Scene, intent, settlement, unit

D = DeliveryState
ENDS = sorted({to for (at, _), to in DELIVERY.table.items() if at is D.SENDING} - {D.READY})


@pytest.fixture
def scene(path_scene: Scene) -> Scene:
    return path_scene


def test_sent_is_sent(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()

    result = scene.settle(lane, settlement(delivery_id, run_id, latency_us=42))

    assert (result.held, result.settled, result.intended) == (True, (True,), False)
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.sent_at, delivery.parts_done) == (D.SENT, T0 + SECOND, 1)
    assert (delivery.provider_id, delivery.due_at) == ("provider-1", None)
    with scene.store.read() as tx:
        row = tx.ledger.of_delivery(delivery_id)[1]
    assert (row.kind, row.outcome, row.slots, row.latency_us) == ("outcome", "accepted", 0, 42)
    assert (row.at, row.intent_at, row.started_at) == (T0 + SECOND, T0, T0 + 1)
    assert row.provider_id == "provider-1"


@pytest.mark.parametrize("state", ENDS)
def test_every_end_is_counted(scene: Scene, state: DeliveryState) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.settle(lane, settlement(delivery_id, run_id, state, reason="because"))
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.reason) == (state, "because")
    assert scene.counts(run_id) == {state.value: 1}


def test_a_retry_waits_in_the_queue_again(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    retry = settlement(
        delivery_id, run_id, D.READY, transient("no route"), due_at=T0 + 9, retries=1, parts_done=0
    )
    assert scene.settle(lane, retry).settled == (True,)
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.due_at, delivery.retries) == (D.READY, T0 + 9, 1)
    assert (delivery.attempts, delivery.sent_at) == (1, None)
    assert scene.intend(lane, intent(delivery_id, run_id, attempt=2)).intended
    assert scene.ledger(delivery_id) == [
        (0, 1, "intent", None),
        (0, 1, "outcome", "transient"),
        (0, 2, "intent", None),
    ]


def test_an_outcome_of_an_earlier_attempt_is_written_but_moves_nothing(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    retry = settlement(delivery_id, run_id, D.READY, transient("?"), due_at=T0, parts_done=0)
    scene.sql("UPDATE deliveries SET attempts = 2 WHERE id = :id", id=delivery_id)

    assert scene.settle(lane, retry).settled == (False,)

    assert scene.state(delivery_id) is D.SENDING
    assert (0, 1, "outcome", "transient") in scene.ledger(delivery_id)
    assert scene.counts(run_id) == {"sending": 1}


def test_a_repeated_settlement_changes_nothing_more(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    same = settlement(delivery_id, run_id)
    assert scene.settle(lane, same).settled == (True,)
    assert scene.settle(lane, same).settled == (False,)
    results = scene.apply(unit(lane, settlements=(same, same)), unit(lane, settlements=(same,)))
    assert [result.settled for result in results] == [(False, False), (False,)]
    assert scene.counts(run_id) == {"sent": 1}
    assert len(scene.ledger(delivery_id)) == 2


def test_an_outcome_is_true_whoever_reports_it(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.expire(lane.lease.process_id)
    scene.lane(lane.account_id)
    result = scene.settle(lane, settlement(delivery_id, run_id))
    assert (result.held, result.settled) == (False, (True,))
    assert scene.state(delivery_id) is D.SENT


def test_an_unknown_outcome_is_overtaken_by_a_known_one(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    lost = settlement(
        delivery_id, run_id, D.UNKNOWN, unknown("timeout"), due_at=T0 + 7, parts_done=0
    )
    assert scene.settle(lane, lost).settled == (True,)
    assert scene.get(delivery_id).due_at == T0 + 7
    assert scene.counts(run_id) == {"unknown": 1}
    assert scene.settle(lane, settlement(delivery_id, run_id)).settled == (True,)
    assert scene.get(delivery_id).due_at is None
    assert scene.counts(run_id) == {"sent": 1}
    scene.settle(lane, settlement(delivery_id, run_id))
    assert scene.ledger(delivery_id) == [
        (0, 1, "intent", None),
        (0, 1, "outcome", "unknown"),
        (0, 1, "resolution", "accepted"),
    ]
    with scene.store.read() as tx:
        assert tx.audit.accepted_twice() == []


def test_a_loss_that_is_told_late_does_not_raise_the_doubt_anew(scene: Scene) -> None:
    """It is no news. Meanwhile somebody may have left the doubt to a person, for good reason:
    of an account that was removed nobody would ever look into it again."""
    lane, run_id, delivery_id = scene.on_its_way()
    lost = settlement(delivery_id, run_id, D.UNKNOWN, unknown("?"), due_at=T0 + 9, parts_done=0)
    assert scene.settle(lane, lost).settled == (True,)
    with scene.store.write() as tx:
        tx.deliveries.postpone(delivery_id, None, "held for a person")

    assert scene.settle(lane, lost).settled == (False,)

    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.due_at) == (D.UNKNOWN, None)
    assert delivery.reason == "held for a person"
    assert scene.counts(run_id) == {"unknown": 1}


def test_a_loss_does_not_take_back_a_part_that_was_accepted_meanwhile(scene: Scene) -> None:
    """A new owner reads what is stranded, then the former owner's answer comes in, and only then
    the new owner writes its loss: the first part would have been sent a second time."""
    lane, run_id, delivery_id = scene.on_its_way()
    accepted = settlement(delivery_id, run_id, D.SENDING)
    assert scene.settle(lane, accepted).settled == (True,)
    lost = settlement(delivery_id, run_id, D.UNKNOWN, unknown("?"), due_at=T0 + 9, parts_done=0)
    assert scene.settle(lane, lost).settled == (False,)
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.parts_done) == (D.SENDING, 1)


def test_a_late_refusal_gives_its_slot_back(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    lost = settlement(delivery_id, run_id, D.UNKNOWN, unknown("timeout"), parts_done=0)
    late = settlement(delivery_id, run_id, D.FAILED, Outcome(OutcomeKind.REJECTED), parts_done=0)
    other, further = (scene.delivery(run_id, lane.account_id) for _ in range(2))
    for fresh in (other, further):
        scene.intend(lane, intent(fresh, run_id))
    scene.settle(lane, lost)
    with scene.store.read() as tx:
        assert tx.ledger.counts(lane.account_id, T0) == {"message": 3}
    # Among others in one group, and where a known outcome comes first nothing is resolved.
    results = scene.apply(
        unit(lane, settlements=(settlement(other, run_id), late)),
        unit(lane, settlements=(settlement(further, run_id, D.FAILED),)),
        unit(lane, settlements=(settlement(further, run_id, D.UNKNOWN, unknown("late")),)),
    )
    assert [result.settled for result in results] == [(True, True), (True,), (False,)]
    with scene.store.read() as tx:
        assert tx.ledger.counts(lane.account_id, T0) == {"message": 2}
        resolved = tx.ledger.of_delivery(delivery_id)[-1]
    assert (resolved.kind, resolved.outcome, resolved.slots) == ("resolution", "rejected", -1)
    assert (resolved.at, resolved.intent_at) == (T0 + SECOND, T0)
    for known in (other, further):
        assert [kind for _, _, kind, _ in scene.ledger(known)] == ["intent", "outcome"]


def test_a_doubt_and_its_answer_in_one_group_are_both_written(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    lost = settlement(delivery_id, run_id, D.UNKNOWN, unknown("timeout"), parts_done=0)
    scene.apply(unit(lane, settlements=(lost, settlement(delivery_id, run_id))))
    assert scene.state(delivery_id) is D.SENT
    kinds = [(kind, outcome) for _, _, kind, outcome in scene.ledger(delivery_id)]
    assert kinds[1:] == [("outcome", "unknown"), ("resolution", "accepted")]


def test_progress_moves_only_the_parts(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    before = scene.get(delivery_id)
    progress = settlement(delivery_id, run_id, D.SENDING, reason="ignored", parts_done=2)
    assert scene.settle(lane, progress).settled == (True,)
    after = scene.get(delivery_id)
    assert (after.parts_done, after.state) == (2, D.SENDING)
    assert (after.reason, after.provider_id) == (before.reason, before.provider_id)
    # A late repetition never takes a part back.
    scene.settle(lane, settlement(delivery_id, run_id, D.SENDING, parts_done=1))
    assert scene.get(delivery_id).parts_done == 2


def test_progress_of_what_was_declared_unknown_keeps_it_unknown(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    with scene.store.write() as tx:
        tx.deliveries.move(delivery_id, "lose", at=T0, due_at=T0 + 3)
    assert scene.settle(lane, settlement(delivery_id, run_id, D.SENDING)).settled == (True,)
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.parts_done, delivery.due_at) == (D.UNKNOWN, 1, T0 + 3)
    assert scene.counts(run_id) == {"unknown": 1}
    further = intent(delivery_id, run_id, part=1, starts=False)
    assert not scene.intend(lane, further).intended


def test_only_what_the_table_allows_is_settled(scene: Scene) -> None:
    for source in D:
        for state in (D.SENT, D.READY, D.UNKNOWN, D.SKIPPED, D.SENDING):
            _settle_from(scene, source, state)


def _settle_from(scene: Scene, source: DeliveryState, state: DeliveryState) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.sql(
        "UPDATE deliveries SET state = :state, sent_at = :sent_at, due_at = :due_at WHERE id = :id",
        id=delivery_id,
        state=source.value,
        sent_at=T0 if source is D.SENT else None,
        due_at=T0 if source is D.READY else None,
    )
    scene.sql("UPDATE counters SET n = 0 WHERE run_id = :run", run=run_id)
    scene.sql(
        "UPDATE counters SET n = 1 WHERE run_id = :run AND state = :state",
        run=run_id,
        state=source.value,
    )
    due_at = T0 if state is D.READY else None
    reachable = {to for (at, _), to in DELIVERY.table.items() if at is source}
    allowed = source in (D.SENDING, D.UNKNOWN) and state in reachable | {D.SENDING}

    result = scene.settle(lane, settlement(delivery_id, run_id, state, due_at=due_at))

    assert result.settled == (allowed,)
    moved = allowed and state is not D.SENDING
    assert scene.state(delivery_id) is (state if moved else source)
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_two_settlements_of_one_delivery_in_a_group_come_one_after_the_other(
    scene: Scene,
) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    (result,) = scene.apply(
        unit(
            lane,
            settlements=(
                settlement(delivery_id, run_id, D.SENDING, parts_done=1),
                settlement(delivery_id, run_id, D.SENT, part=1, parts_done=2),
            ),
        )
    )
    assert result.settled == (True, True)
    delivery = scene.get(delivery_id)
    assert (delivery.state, delivery.parts_done) == (D.SENT, 2)


def test_what_a_provider_says_can_always_be_written_down(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    hostile = 'a\0b "c" \\ {d,e} \n\t\x1b \\n NULL \ud800 é 😀'
    said = Outcome(OutcomeKind.REJECTED, reason=hostile, code='5"\n', provider_id="x\\\n\0y")
    assert scene.settle(
        lane, settlement(delivery_id, run_id, D.FAILED, said, reason=hostile)
    ).settled == (True,)
    delivery = scene.get(delivery_id)
    assert delivery.reason == 'ab "c" \\ {d,e} \n\t\x1b \\n NULL ? é 😀'
    assert delivery.provider_id == "x\\\ny"
    with scene.store.read() as tx:
        row = tx.ledger.of_delivery(delivery_id)[1]
    assert (row.reason, row.code) == (delivery.reason, '5"\n')


def test_what_many_providers_say_is_told_apart(scene: Scene) -> None:
    texts = ("", '"', "\\", 'a"b', "\n", "{x,y}", "NULL")
    ways = [scene.on_its_way() for _ in texts]
    results = scene.apply(
        *(
            unit(
                lane,
                settlements=(
                    settlement(
                        delivery_id,
                        run_id,
                        D.FAILED,
                        Outcome(OutcomeKind.REJECTED, text, provider_id=text or None),
                        reason=text,
                    ),
                ),
            )
            for text, (lane, run_id, delivery_id) in zip(texts, ways, strict=True)
        )
    )
    assert [result.settled for result in results] == [(True,)] * len(texts)
    found = [scene.get(delivery_id) for _, _, delivery_id in ways]
    assert tuple(delivery.reason for delivery in found) == texts
    assert tuple(delivery.provider_id or "" for delivery in found) == texts


def test_a_group_tells_what_it_settled_from_what_it_did_not(scene: Scene) -> None:
    run_id = scene.run()
    lanes = [scene.lane(scene.account()) for _ in range(3)]
    ids = [scene.delivery(run_id, lane.account_id) for lane in lanes]
    scene.apply(*(unit(lane, intent(d, run_id)) for lane, d in zip(lanes, ids, strict=True)))
    lost = settlement(ids[1], run_id, D.UNKNOWN, unknown("timeout"), parts_done=0)
    scene.settle(lanes[1], lost)
    scene.settle(lanes[2], settlement(ids[2], run_id))

    results = scene.apply(
        *(
            unit(lane, settlements=(settlement(d, run_id),))
            for lane, d in zip(lanes, ids, strict=True)
        )
    )

    assert [result.settled for result in results] == [(True,), (True,), (False,)]
    assert scene.counts(run_id) == {"sent": 3}
    assert [len(scene.ledger(d)) for d in ids] == [2, 3, 2]


def test_an_endless_reason_is_cut(scene: Scene) -> None:
    lane, run_id, delivery_id = scene.on_its_way()
    scene.settle(lane, settlement(delivery_id, run_id, D.FAILED, reason="é" * 100_000))
    assert len(scene.get(delivery_id).reason) == 2_000
