"""Durations, spans and instants: what is read prints back, and nonsense is refused."""

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.durations import LONGEST_US, Span, parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.instants import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    WEEK,
    from_datetime,
    iso,
    local_text,
    parse_instant,
    to_datetime,
)
from tests.core.values import ZONES, lasting_us, spans


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0s", 0),
        ("7us", 7),
        ("200ms", 200 * MILLISECOND),
        ("1.5s", 1500 * MILLISECOND),
        ("0.000001s", 1),
        ("30s", 30 * SECOND),
        ("5m", 5 * MINUTE),
        ("5min", 5 * MINUTE),
        ("1h30m", 90 * MINUTE),
        (" 1h 30m ", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("2d", 2 * DAY),
        ("1w1d1h1m1s1ms1us", WEEK + DAY + HOUR + MINUTE + SECOND + MILLISECOND + 1),
    ],
)
def test_reads_durations(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0s"),
        (1, "1us"),
        (1_500, "1.5ms"),
        (200 * MILLISECOND, "200ms"),
        (1_500 * MILLISECOND, "1.5s"),
        (90 * SECOND, "1m30s"),
        (60 * MINUTE, "1h"),
        (36 * HOUR, "1d12h"),
        (7 * DAY, "1w"),
        (8 * DAY, "8d"),
        (30 * DAY, "30d"),
        (MINUTE + 1, "1m0.000001s"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_prints_durations(us: int, text: str) -> None:
    assert print_duration(us) == text


@given(lasting_us)
def test_a_printed_duration_reads_back(us: int) -> None:
    assert parse_duration(print_duration(us)) == us


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a duration"),
        ("30", "not a duration"),
        ("s", "not a duration"),
        ("3 parsecs", "not a duration"),
        ("1h30", "not a duration"),
        ("1.s", "not a duration"),
        ("٣s", "not a duration"),
        ("-5s", "negative"),
        ("0.0000001s", "finer than a microsecond"),
        ("0.5us", "finer than a microsecond"),
        ("30m1h", "the largest first"),
        ("1m1min", "each unit once"),
        ("4000d", "longer than"),
    ],
)
def test_refuses_durations(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_duration(text)


def test_the_longest_duration_is_allowed() -> None:
    assert parse_duration(print_duration(LONGEST_US)) == LONGEST_US


@given(spans)
def test_a_printed_span_reads_back(span: Span) -> None:
    assert Span.parse(str(span)) == span


def test_spans_are_written_with_two_dots_or_as_one_duration() -> None:
    assert Span.parse("5m..20m") == Span(5 * MINUTE, 20 * MINUTE)
    assert Span.parse("3s") == Span(3 * SECOND, 3 * SECOND)
    assert str(Span.parse("200ms..500ms")) == "200ms..500ms"
    assert str(Span.parse("3s..3s")) == "3s"


@pytest.mark.parametrize("text", ["20m..5m", "-5s..5s", "5s..", "..5s", "1s..2s..3s", "1s.2s", ""])
def test_refuses_spans(text: str) -> None:
    with pytest.raises(InputError):
        Span.parse(text)


def test_refuses_a_negative_span_made_in_code() -> None:
    with pytest.raises(InputError, match="negative"):
        Span(-1, 5)


@given(spans, st.integers())
def test_draws_lie_within_the_span(span: Span, seed: int) -> None:
    rng = random.Random(seed)
    assert all(span.holds(span.draw(rng)) for _ in range(5))


def test_draws_reach_both_ends() -> None:
    rng = random.Random(1)
    assert {Span(3, 5).draw(rng) for _ in range(100)} == {3, 4, 5}


def test_clamping_moves_to_the_nearer_bound() -> None:
    assert [Span(2, 10).clamp(us) for us in (1, 2, 7, 10, 11)] == [2, 2, 7, 10, 10]


@given(st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1), timezones=st.just(UTC)))
def test_instants_are_exact(moment: datetime) -> None:
    at = from_datetime(moment)
    assert to_datetime(at) == moment
    assert at == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(st.integers(0, from_datetime(datetime(2999, 1, 1, tzinfo=UTC))))
def test_a_printed_instant_reads_back(at: int) -> None:
    assert parse_instant(iso(at)) == at


def test_a_fraction_is_printed_only_where_there_is_one() -> None:
    at = from_datetime(datetime(2026, 11, 15, 9, tzinfo=UTC))
    assert iso(at) == "2026-11-15T09:00:00Z"
    assert iso(at + 250 * MILLISECOND) == "2026-11-15T09:00:00.250000Z"


def test_instants_are_read_with_and_without_an_offset() -> None:
    nine = from_datetime(datetime(2026, 11, 16, 9, tzinfo=UTC))
    assert parse_instant("2026-11-16T09:00Z") == nine
    assert parse_instant(" 2026-11-16T04:00-05:00 ") == nine
    assert parse_instant("2026-11-16 09:00") == nine
    assert parse_instant("2026-11-16T04:00", "America/New_York") == nine
    assert parse_instant("2026-11-16T04:00Z", "America/New_York") == nine - 5 * HOUR
    assert parse_instant("2026-11-16") == nine - 9 * HOUR


def test_a_time_in_a_gap_is_the_first_instant_after_it() -> None:
    after_gap = from_datetime(datetime(2026, 3, 8, 7, tzinfo=UTC))
    assert parse_instant("2026-03-08T02:00", "America/New_York") == after_gap
    assert parse_instant("2026-03-08T02:59:59", "America/New_York") == after_gap
    assert parse_instant("2026-03-08T03:00", "America/New_York") == after_gap
    assert parse_instant("2026-03-08T01:59", "America/New_York") == after_gap - MINUTE


def test_a_time_in_an_overlap_is_its_first_occurrence() -> None:
    first = from_datetime(datetime(2026, 11, 1, 5, 30, tzinfo=UTC))
    assert parse_instant("2026-11-01T01:30", "America/New_York") == first


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2026-13-01", "2026-02-30", "09:00", "1969-12-31T23:59Z", "3000-01-01", "12"],
)
def test_refuses_instants(text: str) -> None:
    with pytest.raises(InputError):
        parse_instant(text)


def test_refuses_a_zone_nobody_knows_and_a_datetime_without_one() -> None:
    with pytest.raises(InputError, match="America/New_York"):
        parse_instant("2026-11-16T09:00", "America/NewYork")
    with pytest.raises(InputError, match="no time zone"):
        from_datetime(datetime(2026, 11, 16, 9))


def test_other_offsets_are_taken_into_account() -> None:
    eastern = timezone(timedelta(hours=-5))
    assert iso(from_datetime(datetime(2026, 11, 16, 4, tzinfo=eastern))) == "2026-11-16T09:00:00Z"


def test_operators_read_local_time() -> None:
    at = parse_instant("2026-11-16T14:00:59Z")
    assert local_text(at, "America/New_York") == "2026-11-16 09:00 America/New_York"


@given(st.integers(2 * DAY, 2 * 10**15), st.sampled_from(ZONES))
def test_local_text_reads_back_to_the_minute(at: int, zone: str) -> None:
    text, _, name = local_text(at, zone).rpartition(" ")
    assert name == zone
    # In an overlap the first of the two is meant, so the text may read back an hour earlier.
    assert 0 <= at - parse_instant(text, zone) <= HOUR + MINUTE
