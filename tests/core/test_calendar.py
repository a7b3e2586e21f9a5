"""Days, weeks and offsets, judged minute by minute against the wall clock itself."""

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import calendar, zones
from paceline.core.calendar import (
    day_of,
    day_start,
    day_start_of,
    next_day_start,
    next_week_start,
    offset_pieces,
    week_start,
    zone,
)
from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MINUTE, iso, parse_instant
from tests.core.values import CHANGES, ZONES, change_dates, instant_of, minutes_around, wall

ANY_ZONE = sorted(zones.zone_names())


def check_days(name: str, minutes: range) -> None:
    """The day of an instant is the latest wall date that was ever reached up to then."""
    reached = wall(minutes[0], name).date()
    started_at = None
    for at in minutes:
        if wall(at, name).date() > reached:
            reached, started_at = wall(at, name).date(), at
            assert next_day_start(at - 1, name) == at
            assert day_start(reached, name) == at
        assert day_of(at, name) == reached
        if started_at is not None:
            assert day_start_of(at, name) == started_at
            assert next_day_start(at, name) > at


@pytest.mark.parametrize(("name", "day"), CHANGES)
def test_days_where_clocks_change(name: str, day: date) -> None:
    check_days(name, minutes_around(day))


@settings(max_examples=40)
@given(st.sampled_from(ANY_ZONE), st.integers(1975, 2040), st.data())
def test_days_of_any_zone(name: str, year: int, data: st.DataObject) -> None:
    known = [*change_dates(name, year), date(year, 7, 1)]
    check_days(name, minutes_around(data.draw(st.sampled_from(known)), before=1, after=2))


@pytest.mark.parametrize(
    ("name", "day", "expected"),
    [
        ("UTC", date(2026, 11, 15), "2026-11-15T00:00:00Z"),
        ("America/New_York", date(2026, 11, 15), "2026-11-15T05:00:00Z"),
        ("America/Sao_Paulo", date(2017, 10, 15), "2017-10-15T03:00:00Z"),
        ("America/Havana", date(2024, 11, 3), "2024-11-03T04:00:00Z"),
        ("Asia/Beirut", date(2024, 10, 27), "2024-10-26T22:00:00Z"),
        ("Pacific/Apia", date(2011, 12, 29), "2011-12-29T10:00:00Z"),
        ("Pacific/Apia", date(2011, 12, 30), "2011-12-30T10:00:00Z"),
        ("Pacific/Apia", date(2011, 12, 31), "2011-12-30T10:00:00Z"),
    ],
)
def test_days_start_at_their_first_instant(name: str, day: date, expected: str) -> None:
    assert iso(day_start(day, name)) == expected


def test_a_date_that_never_was_is_nobodys_day() -> None:
    change_at = day_start(date(2011, 12, 30), "Pacific/Apia")
    assert day_of(change_at - 1, "Pacific/Apia") == date(2011, 12, 29)
    assert day_of(change_at, "Pacific/Apia") == date(2011, 12, 31)
    assert next_day_start(change_at - 1, "Pacific/Apia") == change_at


def test_an_hour_of_yesterday_that_returns_belongs_to_today() -> None:
    midnight_at = parse_instant("2006-10-29T02:30Z")
    returned_at = midnight_at + 15 * MINUTE
    assert wall(returned_at, "America/St_Johns").date() == date(2006, 10, 28)
    calendar._latest.clear()
    assert day_of(returned_at, "America/St_Johns") == date(2006, 10, 29)
    assert day_start_of(returned_at, "America/St_Johns") == midnight_at


@given(st.integers(0, 70 * 366 * DAY), st.sampled_from(ANY_ZONE))
def test_days_and_weeks_cut_time_without_gap_or_overlap(at: int, name: str) -> None:
    assert day_start_of(at, name) <= at < next_day_start(at, name)
    assert week_start(at, name) <= at < next_week_start(at, name)
    assert week_start(at, name) <= day_start_of(at, name)
    assert next_day_start(at, name) <= next_week_start(at, name)
    assert day_start_of(next_day_start(at, name), name) == next_day_start(at, name)
    assert week_start(next_week_start(at, name) - 1, name) == week_start(at, name)


@given(st.integers(0, 70 * 366 * DAY), st.sampled_from(ZONES))
def test_weeks_start_on_monday(at: int, name: str) -> None:
    monday = day_of(at, name) - timedelta(days=day_of(at, name).weekday())
    assert week_start(at, name) == day_start(monday, name)
    assert next_week_start(at, name) == day_start(monday + timedelta(days=7), name)


def test_a_week_with_a_clock_change_is_an_hour_longer() -> None:
    at = parse_instant("2026-11-01T12:00", "America/New_York")
    length_us = next_week_start(at, "America/New_York") - week_start(at, "America/New_York")
    assert length_us == 7 * DAY + HOUR
    assert iso(week_start(at, "America/New_York")) == "2026-10-26T04:00:00Z"


def test_what_is_remembered_is_what_is_found() -> None:
    questions = [(instant_of(day, hour), name) for name, day in CHANGES for hour in (0, 3, 23)]
    remembered = [day_start_of(at, name) for at, name in questions]
    for at, name in reversed(questions):
        calendar._latest.clear()
        calendar._place_around.cache_clear()
        calendar.day_start.cache_clear()
        assert day_start_of(at, name) == remembered.pop()


@pytest.mark.parametrize(("name", "day"), CHANGES)
def test_offset_pieces_where_clocks_change(name: str, day: date) -> None:
    check_pieces(name, minutes_around(day))


@settings(max_examples=25)
@given(st.sampled_from(ANY_ZONE), st.integers(1975, 2040), st.integers(0, DAY), st.data())
def test_offset_pieces_of_any_zone(name: str, year: int, shift: int, data: st.DataObject) -> None:
    known = [*change_dates(name, year), date(year, 7, 1)]
    around = minutes_around(data.draw(st.sampled_from(known)))
    check_pieces(name, range(around.start + shift, around.stop + shift, MINUTE))


def check_pieces(name: str, minutes: range) -> None:
    pieces = offset_pieces(name, minutes.start, minutes.stop)
    assert pieces[0][0] == minutes.start
    assert pieces[-1][1] == minutes.stop
    for left, right in pairwise(pieces):
        assert left[1] == right[0]
        assert left[2] != right[2]
    for start_at, end_at, offset_us in pieces:
        inside = [at for at in minutes if start_at <= at < end_at]
        for at in [start_at, *inside, end_at - 1]:
            whole = at // 1_000_000 * 1_000_000
            assert instant_of(wall(at, name).date()) + clock_us(at, name) == whole + offset_us


def clock_us(at: int, name: str) -> int:
    shown = wall(at, name)
    return (shown.hour * 3600 + shown.minute * 60 + shown.second) * 1_000_000


def test_an_empty_stretch_has_no_pieces() -> None:
    assert offset_pieces("Europe/London", DAY, DAY) == []


def test_a_year_of_london_has_three_pieces() -> None:
    start_at, end_at = instant_of(date(2024, 1, 1)), instant_of(date(2025, 1, 1))
    pieces = offset_pieces("Europe/London", start_at, end_at)
    assert [(iso(start), us // HOUR) for start, _, us in pieces] == [
        ("2024-01-01T00:00:00Z", 0),
        ("2024-03-31T01:00:00Z", 1),
        ("2024-10-27T01:00:00Z", 0),
    ]


def test_zones_are_found_by_name() -> None:
    assert zone("Europe/Paris").key == "Europe/Paris"
    assert zone("Europe/Paris") is zone("Europe/Paris")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Pariss", "'Europe/Paris'"),
        ("america/new_york", "'America/New_York'"),
        ("New_York", "'America/New_York'"),
        ("", "unknown time zone ''"),
        ("localtime", "unknown"),
        ("Europe", "unknown"),
        ("../etc/passwd", "unknown"),
        ("/etc/localtime", "unknown"),
        ("right/UTC", "unknown"),
    ],
)
def test_unknown_zones_are_refused(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=meant):
        zone(name)
