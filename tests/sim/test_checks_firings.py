"""When a reminder was to fire, and whether it did: the checker by itself."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, iso, parse_instant
from paceline.core.states import RunState
from paceline.sim.checks import Evidence, firings
from paceline.sim.diary import Entry
from tests.sim.evidence import NOON, replace
from tests.sim.reminded import OFF, READY, STANDUP, entry, terms, told

# ---------------------------------------------------------------------- when


def fires(cron: str, zone: str, day: str, **raw: Any) -> list[str]:
    """The times of one night, as UTC has them."""
    reminding = replace(STANDUP, raw={**STANDUP.raw, "cron": cron, "zone": zone, **raw})
    start_at = parse_instant(f"{day}T00:00", zone)
    return [iso(at)[11:16] for at in firings.times(reminding, start_at - 1, start_at + 6 * HOUR)]


def test_a_skipped_hour_fires_when_the_clocks_have_gone_on_and_a_doubled_one_once() -> None:
    berlin = "Europe/Berlin"
    assert fires("30 2 * * *", berlin, "2026-03-29") == ["01:00"]
    assert fires("*/30 2-3 * * *", berlin, "2026-03-29") == ["01:00", "01:30"]
    assert fires("30 2 * * *", berlin, "2026-10-25") == ["00:30"]
    assert fires("0 1-3 * * *", berlin, "2026-10-25") == ["23:00", "00:00", "02:00"]
    assert fires("0 0 * * *", "Asia/Beirut", "2026-03-29") == ["22:00"]
    assert fires("15 2 * * SUN", "Australia/Lord_Howe", "2026-10-04") == ["15:30"]
    assert fires("30 1 * * 1-5", berlin, "2026-10-25") == [], "a Sunday"
    assert fires("10-40/15 1 * * *", "UTC", "2026-10-25") == ["01:10", "01:25", "01:40"]


@pytest.mark.parametrize(
    ("window", "day", "closes"),
    [
        ("1-3", "2026-10-25", "02:00"),
        ("1-2:30", "2026-03-29", "01:00"),
        ("1-2:30", "2026-10-25", "01:30"),
        ("0-24", "2026-03-29", "22:00"),
    ],
)
def test_when_a_window_closes_that_night(window: str, day: str, closes: str) -> None:
    reminding = replace(STANDUP, raw={**STANDUP.raw, "zone": "Europe/Berlin", "window": window})
    at = parse_instant(f"{day}T01:15", "Europe/Berlin")
    assert iso(firings.closes_at(reminding, at))[11:16] == closes


# ---------------------------------------------------------------------- never misfired


def misfired(given: Evidence) -> list[str]:
    return [found.detail for found in firings.misfired(given)]


def test_a_firing_on_time() -> None:
    assert misfired(told(entry())) == []


def test_a_time_of_which_nothing_is_known() -> None:
    assert misfired(told()) == [
        "standup: nothing is known of 2026-03-02T12:00:00Z: neither fired nor missed"
    ]
    assert misfired(told(terms=[terms(), terms(-MINUTE, 5, enabled=False)])) == []
    assert misfired(told(terms=[terms(SECOND), OFF])) == [], "made when that time was over"


def test_a_time_that_is_fired_for_twice() -> None:
    (found,) = misfired(told(entry(), entry(2, id=2)))
    assert found == "standup: 2026-03-02T12:00:00Z was fired or missed 2 times"


def test_a_firing_at_no_time_of_its_own_or_ahead_of_it() -> None:
    assert any("none of its times" in found for found in misfired(told(entry(fired_for=NOON + 1))))
    assert any("before that time" in found for found in misfired(told(entry(after_us=-1))))


def test_a_firing_that_comes_late() -> None:
    closed = [terms(window="6-13"), terms(3 * HOUR, 9, enabled=False, window="6-13")]
    late = told(entry(after_us=HOUR), terms=closed, calm_at=NOON + DAY)
    assert misfired(late) == [
        "standup: fired for 2026-03-02T12:00:00Z though its window had long closed"
    ]
    in_time = told(entry(after_us=HOUR - 1), terms=closed, calm_at=NOON + DAY)
    assert misfired(in_time) == []
    assert misfired(replace(late, spread_us=1)) == [], "by one of the clocks it was open yet"
    # In fair weather somebody is always there.
    idle = told(entry(after_us=firings.LATE_US + 1), calm_at=NOON - HOUR)
    assert any("only at" in found for found in misfired(idle))
    assert misfired(told(entry(after_us=firings.LATE_US), calm_at=NOON - HOUR)) == []


def missed(after_us: int = 3 * HOUR, reason: str = "nobody was there", **changes: Any) -> Entry:
    summary = f"Missed 2026-03-02 12:00 UTC: {reason}."
    state = RunState.MISSED
    known = {"state": state, "reason": reason, "summary": summary, "total": 0, "deliveries": ()}
    return entry(changes.pop("page", 8), after_us, **{**known, **changes})


CLOSED = [terms(window="6-13"), terms(9 * HOUR, 9, enabled=False, window="6-13")]


def test_a_firing_that_was_missed_says_why() -> None:
    assert misfired(told(missed(), terms=CLOSED)) == []
    (silent, _) = misfired(told(missed(summary=""), terms=CLOSED))
    assert "nobody can tell what" in silent
    (wrong, _) = misfired(told(missed(summary="Missed something: or other."), terms=CLOSED))
    assert "nobody can tell what" in wrong
    (another,) = misfired(
        told(missed(summary="Missed 2026-03-02 11:00 UTC: nobody was there."), terms=CLOSED)
    )
    assert "told as missed: ['2026-03-02 11:00 UTC']" in another


def test_a_firing_that_need_not_have_been_missed() -> None:
    (found,) = misfired(told(missed(firings.LATE_US), terms=CLOSED))
    assert "somebody was there in time" in found
    (found,) = misfired(told(missed(HOUR - 1), terms=CLOSED))
    assert "its window was open" in found
    for excuse in ({"paused": True}, {"page": 9}):
        assert misfired(told(missed(HOUR - 1, **excuse), terms=CLOSED)) == []


def test_several_that_were_missed_in_one_go() -> None:
    hourly = [terms(-5 * HOUR, cron="0 * * * *"), terms(MINUTE, 9, enabled=False)]
    many = "Missed 4 times, 2026-03-02 08:00 UTC to 2026-03-02 11:00 UTC: nobody was there."
    gone = missed(MINUTE, fired_for=NOON - HOUR, summary=many)
    assert misfired(told(gone, entry(8, MINUTE, id=2), terms=hourly)) == []
    fewer = missed(MINUTE, fired_for=NOON - HOUR, summary=many.replace("4 times", "3 times"))
    assert any(
        "told as missed" in found
        for found in misfired(told(fewer, entry(8, MINUTE, id=2), terms=hourly))
    )


def test_all_of_a_run_is_there_at_once() -> None:
    (found,) = misfired(told(entry(deliveries=READY[:1])))
    assert found == "standup: run 1 has 1 deliveries, for 2 targets"
    assert misfired(told(entry(deliveries=(READY[0], READY[0]))))
    assert misfired(told(entry(deliveries=(), state=RunState.FAILED, reason="no account"))) == []


def test_a_firing_by_hand() -> None:
    by_hand = entry(2, id=2, fired_for=None)
    assert misfired(told(entry(), by_hand, by_hand={"standup": {"a": (2, NOON)}})) == []
    (unasked,) = misfired(told(entry(), by_hand))
    assert unasked == "standup: fired by hand: runs []; there are [2]"


def test_an_edit_that_leaves_its_times_alone_changes_nothing_about_them() -> None:
    """By a clock that is far behind; by the same clock other times begin anew."""
    behind = terms(-2 * DAY, 3, window="1-13", true_at=NOON - MINUTE)
    assert misfired(told(entry(5), terms=[terms(), behind, OFF])) == []
    off = [terms(), replace(behind, enabled=False)]
    assert any("none of its times" in found for found in misfired(told(entry(5), terms=off)))
    other = terms(-2 * DAY, 3, cron="0 11 * * *", true_at=NOON - MINUTE)
    assert len(misfired(told(terms=[terms(), other, OFF]))) == 2
