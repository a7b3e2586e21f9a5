"""Whatever happens, in whatever order, the counters say what the deliveries say."""

import random

import pytest

from paceline.core.outcome import OutcomeKind, accepted, transient, unknown
from paceline.core.states import DELIVERY, DeliveryState
from paceline.engine.ports import Intent, LaneUnit, NewDelivery, Settlement, Tx
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit

D = DeliveryState
WAITING = (D.PLANNED, D.READY, D.SENDING)
EVENTS = sorted({event for _, event in DELIVERY.table} - {"intend"})
OUTCOMES = [
    (D.SENT, accepted("x")),
    (D.READY, transient("again")),
    (D.UNKNOWN, unknown("silence")),
    (D.FAILED, transient("no")),
    (D.SENDING, accepted("part")),
]


def _settlement(rng: random.Random, delivery_id: int, run_id: int, attempt: int) -> Settlement:
    state, outcome = rng.choice(OUTCOMES)
    due_at = T0 if state is D.READY else None
    done = int(outcome.kind is OutcomeKind.ACCEPTED)
    return settlement(
        delivery_id, run_id, state, outcome, attempt=attempt, due_at=due_at, parts_done=done
    )


def _unit(rng: random.Random, tx: Tx, lanes: list[Lane], run_id: int) -> LaneUnit:
    """A lane's unit, as often wrong as right: stale attempts, strangers' deliveries, repeats."""
    lane = rng.choice(lanes)
    page = tx.deliveries.page(run_id=run_id)
    tried = [d for d in page if d.attempts]
    settled = tuple(
        _settlement(rng, d.id, run_id, rng.choice([d.attempts, d.attempts, 1]))
        for d in rng.sample(tried, min(len(tried), rng.randint(0, 3)))
    )
    wish: Intent | None = None
    mine = [d for d in page if d.account_id == lane.account_id]
    if mine and rng.random() < 0.8:
        chosen = rng.choice(mine)
        starts = chosen.state is not D.SENDING
        wish = intent(
            chosen.id,
            run_id,
            attempt=chosen.attempts + starts,
            part=0 if starts else chosen.parts_done,
            starts=starts,
        )
    return unit(lane, wish, settled, usage="{}")


def _step(rng: random.Random, tx: Tx, lanes: list[Lane], run_id: int) -> None:
    choice = rng.random()
    page = tx.deliveries.page(run_id=run_id)
    if choice < 0.6:
        tx.path.apply([_unit(rng, tx, lanes, run_id) for _ in range(rng.randint(1, 4))])
    elif choice < 0.75:
        tx.deliveries.move(rng.choice(page).id, rng.choice(EVENTS), at=T0)
        doubts = [row for row in page if row.state is D.UNKNOWN]
        for row in rng.sample(doubts, min(len(doubts), 2)):
            tx.deliveries.move(row.id, "retry", at=T0)
            tx.deliveries.move(row.id, rng.choice(["cancel", "skip", "fail", "lose"]), at=T0)
    elif choice < 0.85:
        account_id = rng.choice([None, rng.choice(lanes).account_id])
        event = rng.choice(["cancel", "skip", "fail", "retry"])
        tx.deliveries.move_all(run_id, event, at=T0, account_id=account_id)
    else:
        for n in range(rng.randint(1, 5)):
            due_at = rng.choice([None, T0])
            account_id = rng.choice(lanes).account_id
            tx.deliveries.add([NewDelivery(run_id, account_id, n, f"{n}", T0, due_at)], T0)
        tx.deliveries.release(run_id, T0, T0)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_walk_keeps_every_count(scene: Scene, seed: int) -> None:
    rng = random.Random(seed)
    run_id = scene.run()
    lanes = [scene.lane(scene.account()) for _ in range(3)]
    for lane in lanes:
        for _ in range(4):
            scene.delivery(run_id, lane.account_id)
    for _ in range(25):
        with scene.store.write() as tx:
            _step(rng, tx, lanes, run_id)
            assert tx.audit.recount() == [], f"seed {seed}"
            counts = tx.runs.counts(run_id)
            assert sum(counts.values()) == tx.runs.get(run_id).total
            assert min(counts.values()) >= 0
            assert tx.runs.goes_on(run_id) == any(counts[state] for state in WAITING)
    with scene.store.read() as tx:
        assert tx.audit.misplaced() == []
        by_account = tx.runs.accounts(run_id)
        assert set(by_account) == {lane.account_id for lane in lanes}
