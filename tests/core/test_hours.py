"""Business hours, judged minute by minute against the wall clock itself."""

import pickle
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import zones
from paceline.core.errors import InputError
from paceline.core.hours import HORIZON_DAYS, Hours
from paceline.core.instants import DAY, HOUR, MINUTE, iso, parse_instant
from tests.core.values import (
    CHANGES,
    change_dates,
    hours,
    instant_of,
    minutes_around,
    wall,
    weeks,
)

OFFICE = Hours.parse("Mon-Fri 09:00-18:00 America/New_York")
NEW_YORK = "America/New_York"
ANY_ZONE = sorted(zones.zone_names())


def naively_open(hours: Hours, at: int) -> bool:
    shown = wall(at, hours.zone)
    minute = shown.hour * 60 + shown.minute
    inside = any(start <= minute < end for start, end in hours.week[shown.weekday()])
    return inside and shown.date() not in hours.blackout


def check_hours(hours: Hours, minutes: range) -> None:
    """All three answers, for every minute, as far as the stretch of time can tell."""
    opens = [naively_open(hours, at) for at in minutes]
    next_open_at = next_closed_at = None
    for at, is_open in zip(reversed(minutes), reversed(opens), strict=True):
        next_open_at = at if is_open else next_open_at
        next_closed_at = next_closed_at if is_open else at
        assert hours.is_open(at) == is_open
        assert hours.is_open(at + MINUTE - 1) == is_open
        if next_open_at is not None:
            assert hours.next_open(at) == next_open_at
        if next_closed_at is not None:
            assert hours.closes_at(at) == next_closed_at


@settings(max_examples=40)
@given(st.sampled_from(CHANGES), weeks(), st.booleans())
def test_hours_where_clocks_change(
    change: tuple[str, date], week: tuple[tuple[tuple[int, int], ...], ...], black: bool
) -> None:
    name, day = change
    blackout = frozenset({day}) if black else frozenset()
    check_hours(Hours(week, name, blackout), minutes_around(day, before=1, after=2))


@settings(max_examples=30)
@given(st.sampled_from(ANY_ZONE), st.integers(1975, 2040), weeks(), st.data())
def test_hours_of_any_zone(
    name: str, year: int, week: tuple[tuple[tuple[int, int], ...], ...], data: st.DataObject
) -> None:
    known = [*change_dates(name, year), date(year, 7, 1)]
    day = data.draw(st.sampled_from(known))
    check_hours(Hours(week, name), minutes_around(day, before=1, after=2))


@pytest.mark.parametrize(("name", "day"), CHANGES)
def test_midnight_hours_where_clocks_change(name: str, day: date) -> None:
    check_hours(Hours.parse(f"00:00-01:30 23:00-24:00 {name}"), minutes_around(day))


@given(hours)
def test_printed_hours_read_back(hours: Hours) -> None:
    assert Hours.parse(str(hours)) == hours
    assert hash(Hours.parse(str(hours))) == hash(hours)


@pytest.mark.parametrize(
    "text",
    [
        "Mon-Fri 09:00-18:00 America/New_York",
        "Mon-Fri 09:00-12:00 13:00-18:00 Europe/Paris",
        "Mon-Thu 09:00-18:00, Fri 09:00-16:00 Europe/Paris",
        "09:00-18:00 UTC",
        "Mon Wed Fri 09:00-18:00 Asia/Kuala_Lumpur",
        "Mon Sat-Sun 00:00-24:00 UTC",
        "Mon-Tue Thu 09:00-10:00, Wed 10:00-11:00 Etc/GMT+5",
    ],
)
def test_hours_print_as_written(text: str) -> None:
    assert str(Hours.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Sat-Mon 10:00-12:00 UTC", "Mon Sat-Sun 10:00-12:00 UTC"),
        ("mon-FRI 9:00-18:00 UTC", "Mon-Fri 09:00-18:00 UTC"),
        ("Monday–Friday 09:00 – 18:00 UTC", "Mon-Fri 09:00-18:00 UTC"),
        ("Mon-Sun 09:00-18:00 UTC", "09:00-18:00 UTC"),
        ("Fri 13:00-18:00 09:00-12:00 UTC", "Fri 09:00-12:00 13:00-18:00 UTC"),
        ("Fri 09:00-12:00 12:00-18:00 UTC", "Fri 09:00-18:00 UTC"),
        ("Fri 09:00-12:00, Fri 13:00-14:00 UTC", "Fri 09:00-12:00 13:00-14:00 UTC"),
    ],
)
def test_there_is_one_way_to_print(text: str, canonical: str) -> None:
    assert str(Hours.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "lack times"),
        ("Mon-Fri UTC", "lack times"),
        ("Mon-Fri 09:00-18:00,", "lack times"),
        ("Mon-Fri 09:00-18:00", "no time zone"),
        ("Mon-Fri 09:00-18:00 Europe/Pariss", "did you mean 'Europe/Paris'"),
        ("Mom-Fri 09:00-18:00 UTC", "unknown day 'Mom', did you mean 'Mon'"),
        ("Mon-Fry 09:00-18:00 UTC", "unknown day 'Fry', did you mean 'Fri'"),
        ("Mon-Fri 22:00-06:00 UTC", "22:00-06:00 crosses midnight"),
        ("Mon-Fri 09:00-09:00 UTC", "09:00-09:00 is empty"),
        ("Mon-Fri 09:00-12:00 11:00-18:00 UTC", "09:00-12:00 and 11:00-18:00 overlap"),
        ("Mon-Fri 09:00-12:00 11:59-18:00 UTC", "09:00-12:00 and 11:59-18:00 overlap"),
        ("Mon-Fri 09:00-12:00, Fri 11:00-13:00 UTC", "overlap"),
        ("Mon-Fri 09:00-24:01 UTC", "not within a day"),
        ("Mon-Fri 24:00-24:00 UTC", "not within a day"),
        ("Mon-Fri 09:60-18:00 UTC", "not within a day"),
        ("Mon-Fri 9-18 UTC", "not an interval"),
        ("Mon-Fri Wed 09:00-18:00 UTC", "a day twice"),
        ("Mon 09:00-12:00 Tue 09:00-12:00 UTC", "'Tue' is out of place"),
        ("Mon 09:00-12:00 UTC, Tue 09:00-12:00 UTC", "'UTC' is out of place"),
    ],
)
def test_refuses_hours(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Hours.parse(text)


def test_a_default_zone_stands_in_for_one_that_is_not_written() -> None:
    assert Hours.parse("09:00-18:00", default_zone="Asia/Tokyo").zone == "Asia/Tokyo"
    assert Hours.parse("09:00-18:00 UTC", default_zone="Asia/Tokyo").zone == "UTC"


def test_a_made_up_week_is_checked_too() -> None:
    with pytest.raises(InputError, match="seven days"):
        Hours((((0, 60),),), "UTC")
    with pytest.raises(InputError, match="never open"):
        Hours(((),) * 7, "UTC")
    with pytest.raises(InputError, match="not within a day"):
        Hours((((-60, 60),),) * 7, "UTC")


def test_a_window_is_the_same_every_day() -> None:
    window = Hours.window(6, 18, "Asia/Kuala_Lumpur")
    assert str(window) == "06:00-18:00 Asia/Kuala_Lumpur"
    assert str(Hours.window(0, 24, "UTC")) == "00:00-24:00 UTC"
    assert Hours.window(0, 24, "UTC") == Hours.always("UTC")


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (22, 6, "22-6 crosses midnight"),
        (6, 6, "6-6 is empty"),
        (-1, 6, "between 0 and 24"),
        (6, 25, "between 0 and 24"),
    ],
)
def test_refuses_windows(start: int, end: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Hours.window(start, end, "UTC")


def test_office_hours_over_a_weekend() -> None:
    friday = parse_instant("2026-11-13T17:59:59", NEW_YORK)
    evening = parse_instant("2026-11-13T18:00", NEW_YORK)
    assert OFFICE.next_open(friday) == friday
    assert OFFICE.closes_at(friday) == evening
    assert not OFFICE.is_open(evening)
    assert OFFICE.closes_at(evening) == evening
    opens_at = OFFICE.next_open(evening)
    assert opens_at is not None
    assert iso(opens_at) == "2026-11-16T14:00:00Z"


def test_blackout_dates_are_closed() -> None:
    christmas = Hours.parse(str(OFFICE), [date(2026, 12, 25)])
    eve = parse_instant("2026-12-24T18:00", NEW_YORK)
    assert christmas.next_open(eve) == parse_instant("2026-12-28T09:00", NEW_YORK)
    assert OFFICE.next_open(eve) == parse_instant("2026-12-25T09:00", NEW_YORK)
    assert christmas != OFFICE
    assert str(christmas) == str(OFFICE)


def test_stretches_that_touch_at_midnight_are_one() -> None:
    nights = Hours.parse("Mon 22:00-24:00, Tue 00:00-06:00 Europe/Paris")
    at = parse_instant("2026-11-16T23:00", "Europe/Paris")
    assert nights.closes_at(at) == parse_instant("2026-11-17T06:00", "Europe/Paris")


def test_hours_that_never_close_say_so_within_the_horizon() -> None:
    at = instant_of(date(2026, 11, 15), hour=5)
    assert Hours.always("Europe/Paris").closes_at(at) == at + HORIZON_DAYS * DAY
    one_day_off = Hours.always("UTC", [date(2030, 1, 1)])
    assert at + (HORIZON_DAYS - 1) * DAY <= one_day_off.closes_at(at) <= at + HORIZON_DAYS * DAY
    assert one_day_off.closes_at(instant_of(date(2029, 12, 30))) == instant_of(date(2030, 1, 1))


def test_nothing_opens_within_the_horizon() -> None:
    first = date(2026, 1, 1)
    black = [first + timedelta(days=n) for n in range(HORIZON_DAYS)]
    closed = Hours.always("UTC", black)
    assert closed.next_open(instant_of(first)) is None
    assert closed.next_open(instant_of(first) + DAY) == instant_of(first) + HORIZON_DAYS * DAY


def test_too_many_blackout_dates_are_refused() -> None:
    black = [date(2026, 1, 1) + timedelta(days=n) for n in range(2_001)]
    with pytest.raises(InputError, match="blackout"):
        Hours.always("UTC", black)


def test_memory_is_bounded_and_forgetting_changes_nothing() -> None:
    at = instant_of(date(2026, 11, 16), hour=15)
    for days in range(2_500):
        OFFICE.is_open(at + days * DAY)
    assert len(OFFICE._known) <= 1_000
    assert OFFICE.is_open(at)
    assert not OFFICE.is_open(at + 9 * HOUR)


def test_equal_hours_share_what_they_remember() -> None:
    assert Hours.parse(str(OFFICE))._known is OFFICE._known


def test_hours_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(OFFICE)) == OFFICE
