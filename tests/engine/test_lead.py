"""The lead: how much earlier an intent is begun, learned from how long commits take."""

from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine.lead import LONGEST_GUARD_US, LONGEST_US, Lead


def test_it_follows_what_commits_take_and_is_bounded() -> None:
    lead = Lead()
    assert (lead.us, lead.guard_us) == (0, 0)
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
    for _ in range(200):
        lead.learn(0)
    assert lead.us == 0
