"""Strategies for every value a policy is written in, and for whole policies.

Also the wall clock by which hours and days are judged: it asks the zone database minute by minute
and shares no line with the code under test.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from paceline.core.durations import Span
from paceline.core.grammar import Batch, Frequency, Ladder, Percent, Rate, Warmup
from paceline.core.holds import RAMPS_KEPT, RUNS_HELD, THROTTLED_KEPT, Holds
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.policy import Policy
from paceline.core.tables import ACTIONS, Adaptive, Breaker, Caps, Throttle

CHANGES = [
    ("America/Havana", date(2024, 3, 10)),  # midnight is skipped
    ("America/Havana", date(2024, 11, 3)),  # the first hour of the day comes twice
    ("Africa/Casablanca", date(2024, 3, 10)),  # Ramadan begins
    ("Africa/Casablanca", date(2024, 4, 14)),  # and ends
    ("Asia/Beirut", date(2024, 3, 31)),  # midnight is skipped
    ("Asia/Beirut", date(2024, 10, 27)),  # the last hour of the day before comes twice
    ("Australia/Lord_Howe", date(2024, 4, 7)),  # by half an hour
    ("Australia/Lord_Howe", date(2024, 10, 6)),
    ("Pacific/Apia", date(2011, 12, 30)),  # a date that never was
    ("Pacific/Kwajalein", date(1993, 8, 21)),  # another one
    ("America/Sao_Paulo", date(2017, 10, 15)),  # midnight is skipped
    ("America/Sao_Paulo", date(2018, 2, 18)),
    ("America/St_Johns", date(2006, 10, 29)),  # put back at 00:01, so that yesterday returns
    ("Europe/London", date(2024, 3, 31)),
    ("Europe/London", date(2024, 10, 27)),
    ("America/New_York", date(2026, 11, 1)),
    ("Asia/Kathmandu", date(1986, 1, 1)),  # by a quarter of an hour
    ("UTC", date(2024, 2, 29)),
]
"""Zones, and dates on which their clocks did something worth a test."""

ZONES = sorted({name for name, _ in CHANGES} | {"Asia/Tokyo", "Asia/Gaza", "Antarctica/Troll"})

lasting_us = st.one_of(
    st.integers(0, 10_000),
    st.integers(0, 3 * DAY),
    st.integers(0, 5_000).map(lambda n: n * SECOND),
    st.integers(0, 60).map(lambda n: n * HOUR),
    st.integers(0, 200).map(lambda n: n * DAY),
)
positive_us = lasting_us.map(lambda us: us + 1) | st.sampled_from([SECOND, MINUTE, HOUR, DAY])
spans = st.builds(lambda a, b: Span(min(a, b), max(a, b)), lasting_us, lasting_us)
percents = st.integers(0, 10_000).map(Percent)
counts = st.integers(1, 5_000)
decimal_rates = st.builds(
    lambda n, places, unit: Rate.parse(f"{n // 10**places}.{n % 10**places:0{places}}/{unit}"),
    st.integers(1, 10**6),
    st.integers(1, 3),
    st.sampled_from(["s", "min", "h", "day"]),
)
rates = (
    st.builds(Rate, counts, positive_us.map(lambda us: us + 5_000), st.integers(1, 50))
    | st.builds(Rate, counts, st.sampled_from([SECOND, MINUTE, HOUR, DAY]))
    | st.builds(Rate, counts, st.integers(1, 100).map(lambda n: n * SECOND))
    | decimal_rates
)
frequencies = st.builds(Frequency, counts, positive_us)
batches = st.builds(Batch, counts, positive_us)
ladders = st.builds(Ladder, st.lists(positive_us, max_size=10).map(tuple)) | st.builds(
    Ladder.doubled, st.integers(1, DAY), st.integers(1, 10)
)
warmups = st.builds(
    lambda start, grow, more: Warmup(start, Percent(grow), start + more),
    counts,
    st.integers(1, 20_000),
    st.integers(0, 10_000),
)
factors = st.integers(10_001, 1_000_000).map(lambda n: Decimal(n) / 10_000)
adaptives = st.builds(Adaptive, percents, factors, spans)
breakers = st.integers(1, 500).flatmap(
    lambda window: st.builds(Breaker, percents, st.integers(1, window), st.just(window))
)
throttles = st.builds(Throttle, to=rates, recover_us=positive_us) | st.builds(
    Throttle, slow_by=factors, recover_us=positive_us
)
caps = st.dictionaries(
    st.sampled_from(ACTIONS),
    st.integers(0, 100_000),
    max_size=3,
).map(Caps)
dates = st.dates(date(2024, 1, 1), date(2027, 1, 1))

_instants = st.integers(0, 2**53)
holds = st.builds(
    lambda until_at, why, *rest: Holds(until_at, why if until_at else "", *rest),
    _instants,
    st.text(),
    st.dictionaries(st.integers(1, 2**53), st.tuples(_instants, st.text()), max_size=RUNS_HELD),
    st.lists(st.tuples(_instants, throttles), max_size=RAMPS_KEPT).map(tuple),
    st.dictionaries(
        st.integers(1, 2**53), st.tuples(st.integers(1, 99), _instants), max_size=THROTTLED_KEPT
    ),
    st.integers(0, 10_000),
)


@st.composite
def days(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """Up to three intervals that do not overlap but may touch, on any minute."""
    marks = draw(st.lists(st.integers(0, 1440), unique=True, max_size=6).map(sorted))
    return tuple(zip(marks[::2], marks[1::2], strict=False))


@st.composite
def weeks(draw: st.DrawFn) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Weeks in which days often share their hours, as real ones do."""
    kinds = draw(st.lists(days(), min_size=1, max_size=3).filter(any))
    week = draw(st.lists(st.sampled_from(kinds), min_size=7, max_size=7).filter(any))
    return tuple(week)


hours = st.builds(Hours, weeks(), st.sampled_from(ZONES))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy that holds together, with any of its settings left as they are."""
    strategies: dict[str, st.SearchStrategy[Any]] = {
        "rate": rates,
        "concurrency": st.integers(1, 64),
        "part_gap": spans,
        "hours": hours,
        "blackout": st.lists(dates, max_size=4).map(tuple),
        "zone": st.sampled_from(ZONES),
        "spacing": spans,
        "min_gap_us": lasting_us,
        "batch": batches,
        "daily": caps,
        "weekly": caps,
        "breaker": breakers,
        "bounce_pause": st.none() | percents,
        "warmup": warmups,
        "retry": ladders,
        "throttle": throttles,
        "on_unknown": st.sampled_from(["hold", "resend"]),
        "timeout_us": st.integers(1, HOUR),
        "per_recipient": frequencies,
    }
    chosen = draw(st.sets(st.sampled_from(sorted(strategies))))
    values = {name: draw(strategies[name]) for name in sorted(chosen)}
    spacing = values.get("spacing")
    if spacing is not None and draw(st.booleans()):
        high_us = max(spacing.high_us, values.get("min_gap_us", 0)) + draw(lasting_us)
        between = Span(spacing.low_us // 2, high_us)
        values["adaptive"] = Adaptive(draw(percents), draw(factors), between)
    return Policy(**values)


def instant_of(day: date, hour: int = 0) -> int:
    """Midnight UTC of a date, plus hours."""
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY + hour * HOUR


def minutes_around(day: date, before: int = 2, after: int = 2) -> range:
    """Every minute from some days before a date to some days after it."""
    return range(instant_of(day) - before * DAY, instant_of(day) + after * DAY, MINUTE)


def wall(at: int, name: str) -> datetime:
    """The wall clock at an instant, without its zone."""
    return datetime.fromtimestamp(at // SECOND, ZoneInfo(name)).replace(tzinfo=None)


def change_dates(name: str, year: int) -> Iterator[date]:
    """The dates of a year on which the offset changes, found by looking at every noon."""
    noon = datetime(year, 1, 1, 12, tzinfo=UTC)
    for _ in range(365):
        later = noon + timedelta(days=1)
        zone = ZoneInfo(name)
        if noon.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            yield later.date()
        noon = later
