"""When reminders fire: once or by a rule, through every change of the clocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MINUTE, iso, parse_instant
from paceline.core.schedule import Rule
from paceline.core.zones import wall_at

T0 = parse_instant("2026-10-24T12:00:00Z")
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Kuala_Lumpur", "Australia/Lord_Howe")


def fires(cron: str, zone: str, after: str, count: int) -> list[str]:
    return [iso(at) for at in Rule.by_cron(cron, zone).next_few(parse_instant(after), count)]


def test_a_day_alone_is_that_day_at_nine() -> None:
    assert iso(Rule.once("2026-11-20", "Asia/Kuala_Lumpur").at or 0) == "2026-11-20T01:00:00Z"


def test_an_hour_may_be_said() -> None:
    assert iso(Rule.once("2026-11-20 14:30", "Europe/Paris").at or 0) == "2026-11-20T13:30:00Z"
    assert iso(Rule.once("2026-11-20T14:30:00Z", "Europe/Paris").at or 0) == "2026-11-20T14:30:00Z"


def test_once_is_once() -> None:
    rule = Rule.once("2026-11-20", "UTC")
    at = rule.after(T0)
    assert at is not None
    assert rule.after(at) is None
    assert not rule.recurs


def test_weekdays_in_the_operators_zone() -> None:
    assert fires("0 9 * * MON-FRI", "Asia/Kuala_Lumpur", "2026-10-24T12:00:00Z", 2) == [
        "2026-10-26T01:00:00Z",
        "2026-10-27T01:00:00Z",
    ]


def test_a_time_that_is_skipped_fires_when_the_clocks_go_on_and_only_once() -> None:
    assert fires("0,30 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z", 2) == [
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:00:00Z",
    ]


def test_a_time_that_comes_twice_fires_the_first_time_only() -> None:
    assert fires("30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z", 2) == [
        "2026-10-25T00:30:00Z",
        "2026-10-26T01:30:00Z",
    ]


def test_between_the_two_of_a_time_that_comes_twice_nothing_fires_again() -> None:
    rule = Rule.by_cron("30 2 * * *", "Europe/Paris")
    first = parse_instant("2026-10-25T00:30:00Z")
    assert rule.after(first) == parse_instant("2026-10-26T01:30:00Z")
    assert rule.after(first + HOUR) == parse_instant("2026-10-26T01:30:00Z")


@pytest.mark.parametrize(
    "text", ["0 9 30 2 *", "61 * * * *", "* * *", "* * * * * *", "", "tomorrow", "0 9 * * 9"]
)
def test_what_is_no_rule_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError) as refused:
        Rule.by_cron(text, "UTC")
    assert "MON-FRI" in str(refused.value)


def test_an_unknown_zone_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="Europe/Parys"):
        Rule.by_cron("0 9 * * *", "Europe/Parys")


@pytest.mark.parametrize(
    "rule", [Rule.by_cron("*/15 8-17 * * mon-fri", "UTC"), Rule.once("2026-11-20", "Europe/Paris")]
)
def test_what_is_printed_can_be_read(rule: Rule) -> None:
    assert Rule.parse(str(rule), rule.zone) == rule


@given(
    zone=st.sampled_from(ZONES),
    cron=st.sampled_from(
        ["*/7 * * * *", "15 2 * * *", "0 0 * * *", "30 1,2,3 * * SUN", "5 4 1 * *"]
    ),
    after=st.integers(T0 - 300 * DAY, T0 + 300 * DAY),
)
def test_firings_only_ever_go_on_and_each_is_the_next_after_the_one_before(
    zone: str, cron: str, after: int
) -> None:
    rule = Rule.by_cron(cron, zone)
    found = rule.next_few(after, 12)
    assert found == sorted(set(found))
    assert found[0] > after
    for one, other in pairwise(found):
        assert rule.after(one) == other
        assert rule.after(other - 1) == other


@given(zone=st.sampled_from(ZONES), after=st.integers(T0 - 300 * DAY, T0 + 300 * DAY))
def test_every_day_has_one_firing_of_a_daily_rule(zone: str, after: int) -> None:
    rule = Rule.by_cron("30 2 * * *", zone)
    days = [wall_at(at, zone).date() for at in rule.next_few(after, 20)]
    assert len(set(days)) == len(days)
    assert (days[-1] - days[0]).days == len(days) - 1


@given(
    most=st.integers(1, 50),
    long_us=st.integers(0, 40 * DAY),
    cron=st.sampled_from(["*/20 * * * *", "0 9 * * *"]),
)
def test_the_last_of_those_that_were_missed(most: int, long_us: int, cron: str) -> None:
    rule = Rule.by_cron(cron, "Europe/Paris")
    every = []
    for at in rule.firings(T0):
        if at > T0 + long_us:
            break
        every.append(at)
    assert rule.between(T0, T0 + long_us, most) == (every[-most:], len(every) > most)


def test_a_year_of_minutes_is_not_gone_through_from_its_beginning() -> None:
    rule = Rule.by_cron("* * * * *", "UTC")
    found, more = rule.between(T0, T0 + 3_000 * DAY, 3)
    assert found == [T0 + 3_000 * DAY - minutes * MINUTE for minutes in (2, 1, 0)]
    assert more
