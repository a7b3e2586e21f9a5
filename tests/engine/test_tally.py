"""Counts that pass from one process to another arrive whole, and once."""

import json
import random

from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.core.states import DeliveryState
from paceline.engine.tally import Tally


def _observe(tally: Tally, rng: random.Random) -> None:
    name = rng.choice(("ann", "bob"))
    tally.intended(name, 1, 0)
    outcome = rng.choice((accepted(), Outcome(OutcomeKind.BOUNCED)))
    state = rng.choice((DeliveryState.SENT, DeliveryState.BOUNCED))
    tally.settled(name, outcome, state, rng.choice((None, rng.randrange(100_000_000))))
    tally.lane_crashed(name)
    tally.committed(rng.randrange(1, 600), rng.randrange(10_000_000))


def _counts(tally: Tally) -> list[object]:
    histograms = (tally.latency, tally.commits, tally.groups)
    plain = [tally.intents, tally.attempts, tally.moves, tally.crashes]
    return [*plain, *((each.counts, round(each.total, 6)) for each in histograms)]


def test_what_workers_have_counted_adds_up_to_what_one_process_would_have() -> None:
    one, service, workers = Tally(), Tally(), (Tally(), Tally())
    for seed in range(200):
        _observe(one, random.Random(seed))
        worker = workers[seed % 2]
        _observe(worker, random.Random(seed))
        if seed % 7 == 0:
            service.add(json.loads(json.dumps(worker.take())))
    for worker in workers:
        service.add(json.loads(json.dumps(worker.take())))
    assert _counts(service) == _counts(one)
    before = _counts(service)
    for worker in workers:
        service.add(worker.take())
    assert _counts(service) == before, "nothing is told twice"


def test_how_many_lanes_there_are_is_not_added_up() -> None:
    worker, service = Tally(), Tally()
    worker.lanes_running(3)
    service.add(worker.take())
    assert (worker.lanes, service.lanes) == (3, 0)
