"""The ledger: what limits are counted from."""

from collections.abc import Iterator
from dataclasses import replace

from paceline.core.outcome import Outcome, OutcomeKind, unknown
from paceline.core.states import DeliveryState
from paceline.engine.ports import LedgerRow
from tests.store.scene import T0, Lane, Scene, intent, settlement

D = DeliveryState


def _send(
    scene: Scene, lane: Lane, run_id: int, at: int, outcome: Outcome | None, **options: object
) -> int:
    delivery_id = scene.delivery(run_id, lane.account_id)
    assert scene.intend(lane, intent(delivery_id, run_id, at=T0 + at, **options)).intended
    if outcome is not None:
        state = D.SENT if outcome.kind is OutcomeKind.ACCEPTED else D.FAILED
        settled = settlement(
            delivery_id, run_id, state, outcome, intent_at=T0 + at, settled_at=T0 + 500, **options
        )
        assert scene.settle(lane, settled).settled == (True,)
    return delivery_id


def test_a_definite_refusal_gives_its_slot_back(scene: Scene) -> None:
    run_id = scene.run()
    lane = scene.lane(scene.account())
    for at, outcome in (
        (10, Outcome(OutcomeKind.ACCEPTED)),
        (20, Outcome(OutcomeKind.REJECTED)),
        (30, unknown("silence")),
        (40, None),
        (50, Outcome(OutcomeKind.WITHDRAWN)),
    ):
        _send(scene, lane, run_id, at, outcome)
    _send(scene, lane, run_id, 60, None, action="reply")
    with scene.store.read() as tx:
        assert tx.ledger.counts(lane.account_id, T0) == {"message": 3, "reply": 1}
        assert tx.ledger.counts(lane.account_id, T0 + 30) == {"message": 2, "reply": 1}
        assert tx.ledger.counts(lane.account_id, T0 + 61) == {}
        assert tx.ledger.counts(999_999, T0) == {}


def test_a_row_is_appended_once_and_never_changed(scene: Scene) -> None:
    row = LedgerRow(
        delivery_id=7,
        part=0,
        attempt=1,
        kind="outcome",
        account_id=3,
        run_id=4,
        action="email",
        at=T0 + 9,
        intent_at=T0,
        started_at=None,
        slots=-1,
        policy_id=1,
        generation=2,
        outcome="rejected",
        code="550",
        reason="no such user",
        provider_id="abc",
        latency_us=12,
    )
    with scene.store.write() as tx:
        assert tx.ledger.append(row)
        assert not tx.ledger.append(replace(row, outcome="accepted"))
        assert tx.ledger.of_delivery(7) == [row]


def test_walking_streams_in_the_order_of_intents(scene: Scene) -> None:
    run_id = scene.run()
    lane = scene.lane(scene.account())
    late = _send(scene, lane, run_id, 30, Outcome(OutcomeKind.ACCEPTED))
    early = _send(scene, lane, run_id, 10, None)
    with scene.store.read() as tx:
        walked = tx.ledger.walk(lane.account_id)
        assert isinstance(walked, Iterator)
        assert [(row.delivery_id, row.kind) for row in walked] == [
            (early, "intent"),
            (late, "intent"),
            (late, "outcome"),
        ]
        assert len(list(tx.ledger.walk(lane.account_id, T0 + 11))) == 2
        assert list(tx.ledger.walk(999_999)) == []
