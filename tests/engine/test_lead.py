"""The lead: how much earlier an intent is begun, learned from how long commits take."""

import random

from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine.lead import LONGEST_GUARD_US, LONGEST_US, Lead


def test_it_follows_what_commits_take_and_is_bounded() -> None:
    lead = Lead()
    assert lead.us == 0
    for _ in range(100):
        lead.learn(16 * MILLISECOND)
    assert 15 * MILLISECOND < lead.us <= 16 * MILLISECOND
    assert 0 < lead.guard_us <= 2 * MILLISECOND
    for _ in range(100):
        lead.learn(10 * SECOND)
    assert lead.us <= LONGEST_US
    assert lead.guard_us == LONGEST_GUARD_US


def test_where_commits_take_no_time_nothing_is_anticipated() -> None:
    lead = Lead()
    lead.learn(0)
    assert (lead.us, lead.guard_us) == (0, 0)
    lead.learn(80 * MILLISECOND)
    for _ in range(400):
        lead.learn(0)
    assert lead.us == 0


def test_most_commits_are_done_in_the_time_that_is_allowed_for_them() -> None:
    lead, rng = Lead(), random.Random(7)
    takes = [round(rng.lognormvariate(9, 0.6)) for _ in range(5_000)]
    in_time = []
    for took_us in takes:
        in_time.append(took_us <= lead.us)
        lead.learn(took_us)
    assert 0.8 < sum(in_time[100:]) / len(in_time[100:]) < 0.97
