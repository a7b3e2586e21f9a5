"""The small values of a policy: they print back, count exactly, and refuse nonsense."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.durations import Span
from paceline.core.errors import InputError
from paceline.core.grammar import Batch, Frequency, Ladder, Percent, Rate, Warmup
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, WEEK
from paceline.core.nearest import did_you_mean
from paceline.core.tables import Adaptive, Breaker, Caps, Throttle, toml_value
from tests.core import values

ANY_VALUE = st.one_of(
    values.rates,
    values.frequencies,
    values.batches,
    values.ladders,
    values.percents,
    values.warmups,
    values.adaptives,
    values.breakers,
    values.throttles,
    values.caps,
)


@given(ANY_VALUE)
def test_a_printed_value_reads_back(value: Any) -> None:
    again = type(value).parse(str(value))
    assert again == value
    assert hash(again) == hash(value)
    assert str(again) == str(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Rate, "40/min"),
        (Rate, "40/min burst 3"),
        (Rate, "2.5/s"),
        (Rate, "5/s"),
        (Rate, "60/min"),
        (Rate, "1/20s"),
        (Rate, "50/10s"),
        (Rate, "7/3s"),
        (Rate, "100/h"),
        (Rate, "2000/day"),
        (Frequency, "1/day"),
        (Frequency, "3/week"),
        (Frequency, "1/10d"),
        (Batch, "75 then 30s"),
        (Ladder, "1m,5m,15m"),
        (Ladder, "3s doubling"),
        (Ladder, "3s doubling x5"),
        (Ladder, "none"),
        (Percent, "5%"),
        (Percent, "2.5%"),
        (Percent, "0.05%"),
        (Warmup, "20 +10%/day to 200"),
        (Adaptive, '{ above = "5%", slow_by = 1.5, between = "2s..10s" }'),
        (Breaker, '{ above = "20%" }'),
        (Breaker, '{ above = "20%", samples = 10, window = 50 }'),
        (Throttle, '{ to = "20/min", recover = "30m" }'),
        (Throttle, '{ slow_by = 1.5, recover = "30m" }'),
        (Caps, "{ email = 20 }"),
    ],
)
def test_values_print_as_written(kind: Any, text: str) -> None:
    assert str(kind.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("40 / min", "40/min"),
        ("40/m", "40/min"),
        ("5/sec", "5/s"),
        ("9/hour", "9/h"),
        ("40/min burst 1", "40/min"),
        ("2.50/s", "2.5/s"),
        ("3.0/s", "3/s"),
        ("5/2s", "2.5/s"),
        ("0.5/min", "1/2m"),
        ("0.7/20s", "7/3m20s"),
    ],
)
def test_other_spellings_of_a_rate(text: str, printed: str) -> None:
    assert str(Rate.parse(text)) == printed


def test_a_rate_is_kept_exactly() -> None:
    assert Rate.parse("2.5/s") == Rate(5, 2 * SECOND)
    assert Rate.parse("2.5/s").interval_us == 400_000
    assert Rate.parse("40/min").interval_us == 1_500_000
    assert Rate.parse("7/s").interval_us == 142_858
    assert Rate.parse("40/min").per_minute == 40.0
    assert Rate.parse("2.5/s").per_minute == 150.0


@given(values.rates)
def test_the_interval_never_exceeds_the_rate(rate: Rate) -> None:
    assert rate.interval_us * rate.count >= rate.per_us
    assert (rate.interval_us - 1) * rate.count < rate.per_us


@given(st.integers(1, 10**5), st.integers(1, 3), st.sampled_from(["s", "min", "h", "day"]))
def test_decimal_rates_mean_what_they_say(number: int, places: int, unit: str) -> None:
    text = f"{number // 10**places}.{number % 10**places:0{places}}"
    unit_us = {"s": SECOND, "min": MINUTE, "h": HOUR, "day": DAY}[unit]
    rate = Rate.parse(f"{text}/{unit}")
    assert Fraction(rate.count, rate.per_us) == Fraction(text) / unit_us


def test_an_explicit_ladder_has_a_rung_for_each_retry() -> None:
    ladder = Ladder.parse("1m, 5m, 15m")
    assert ladder.retries == 3
    assert [ladder.delay_us(n) for n in (1, 2, 3)] == [MINUTE, 5 * MINUTE, 15 * MINUTE]


def test_a_doubling_ladder_doubles() -> None:
    ladder = Ladder.parse("3s doubling")
    assert [ladder.delay_us(n) for n in (1, 2, 3)] == [3 * SECOND, 6 * SECOND, 12 * SECOND]
    assert ladder.retries == 3
    assert Ladder.parse("3s doubling x5").delay_us(5) == 48 * SECOND
    assert Ladder.parse("none").retries == 0


@pytest.mark.parametrize("n", [0, -1, 4])
def test_there_is_no_retry_beyond_the_ladder(n: int) -> None:
    with pytest.raises(ValueError, match="ladder of 3"):
        Ladder.parse("1m,5m,15m").delay_us(n)


def test_a_percentage_is_exceeded_only_above_it() -> None:
    five = Percent.parse("5%")
    assert not five.exceeded_by(0, 0)
    assert not five.exceeded_by(5, 100)
    assert five.exceeded_by(6, 100)
    assert five.exceeded_by(1, 19)
    assert not five.exceeded_by(1, 20)


@given(values.percents, st.integers(0, 1000), st.integers(1, 1000))
def test_percentages_compare_exactly(percent: Percent, part: int, whole: int) -> None:
    share = Fraction(str(percent).removesuffix("%")) / 100
    assert percent.exceeded_by(part, whole) == (Fraction(part, whole) > share)


def test_a_warm_up_grows_to_its_limit() -> None:
    warmup = Warmup.parse("20 +10%/day to 200")
    assert [warmup.cap_on(day) for day in (-1, 0, 1, 2, 3, 4)] == [20, 20, 22, 24, 26, 29]
    assert warmup.cap_on(24) == 196
    assert warmup.cap_on(25) == 200
    assert warmup.cap_on(10_000_000) == 200


@pytest.mark.parametrize(
    "spoken",
    [
        "start 20, +10 % a day to 200",
        "start 20 +10% a day, to 200",
        "20, +10%/day to 200",
        "20 + 10 % per day to 200",
    ],
)
def test_a_warm_up_may_be_written_as_people_say_it(spoken: str) -> None:
    assert str(Warmup.parse(spoken)) == "20 +10%/day to 200"


@given(values.warmups, st.integers(0, 400))
def test_a_warm_up_is_exact_and_never_falls(warmup: Warmup, day: int) -> None:
    growth = 1 + Fraction(warmup.grow.basis_points, 10_000)
    exact = warmup.start * growth**day
    assert warmup.cap_on(day) == min(warmup.limit, exact.numerator // exact.denominator)
    assert warmup.cap_on(day) <= warmup.cap_on(day + 1)


def test_defaults_of_the_tables() -> None:
    assert Breaker.parse('{ above = "20%" }') == Breaker(Percent(2000), samples=20, window=100)
    assert Adaptive.parse("{}") == Adaptive(
        Percent(500), Decimal("1.5"), Span(2 * SECOND, 10 * SECOND)
    )
    assert Throttle.parse("{}") == Throttle(None, Decimal("1.5"), 30 * MINUTE)
    assert Throttle.parse('{ to = "20/min" }').to == Rate(20, MINUTE)


def test_factors_are_decimals_and_not_their_binary_shadows() -> None:
    assert Adaptive.from_mapping({"slow_by": 1.1}).slow_by == Decimal("1.1")
    assert round(3 * SECOND * Adaptive.from_mapping({"slow_by": 1.1}).slow_by) == 3_300_000
    assert Adaptive.from_mapping({"slow_by": 2}).to_mapping()["slow_by"] == 2


def test_caps_are_a_mapping_that_never_changes() -> None:
    caps = Caps({"reply": 5, "email": 20})
    assert dict(caps) == {"email": 20, "reply": 5}
    assert caps == {"email": 20, "reply": 5}
    assert (caps.get("email"), caps.get("inmail"), len(caps)) == (20, None, 2)
    assert not Caps()
    with pytest.raises(TypeError):
        caps["email"] = 7  # type: ignore[index]


@pytest.mark.parametrize(
    ("parse", "text", "reason"),
    [
        (Rate.parse, "", "not a rate"),
        (Rate.parse, "40", "not a rate"),
        (Rate.parse, "-40/min", "not a rate"),
        (Rate.parse, "40/min burst", "not a rate"),
        (Rate.parse, "40/fortnight", "unknown period 'fortnight'"),
        (Rate.parse, "0/min", "above zero"),
        (Rate.parse, "0.0/min", "above zero"),
        (Rate.parse, "40/0s", "above zero"),
        (Rate.parse, "2000000/s", "per microsecond"),
        (Rate.parse, "0.000001/day", "period may not be above"),
        (Rate.parse, "40/min burst 0", "burst 0"),
        (Rate.parse, "40/min burst 99999", "burst 99999"),
        (Frequency.parse, "1", "not a frequency"),
        (Frequency.parse, "0/day", "above zero"),
        (Frequency.parse, "1.5/day", "not a frequency"),
        (Frequency.parse, "1/moon", "unknown period 'moon'"),
        (Batch.parse, "75", "not a batch"),
        (Batch.parse, "0 then 30s", "at least one"),
        (Batch.parse, "75 then 0s", "above zero"),
        (Batch.parse, "75 then soon", "not a duration"),
        (Ladder.parse, "", "not a duration"),
        (Ladder.parse, "1m,,5m", "not a duration"),
        (Ladder.parse, "1m,0s", "above zero"),
        (Ladder.parse, "0s doubling", "above zero"),
        (Ladder.parse, "3s doubling x0", "between 1 and 10"),
        (Ladder.parse, "3s doubling x11", "between 1 and 10"),
        (Ladder.parse, ",".join(["1s"] * 11), "11 retries are more than 10"),
        (Ladder.parse, "3660d doubling", "at most"),
        (Percent.parse, "5", "not a percentage"),
        (Percent.parse, "-5%", "not a percentage"),
        (Percent.parse, "0.005%", "not a percentage"),
        (Percent.parse, "1001%", "between 0% and 1000%"),
        (Warmup.parse, "20 to 200", "not a warm-up"),
        (Warmup.parse, "start 20, +10 % a week to 200", "not a warm-up"),
        (Warmup.parse, "0 +10%/day to 200", "at least one"),
        (Warmup.parse, "20 +0%/day to 200", "more than 0%"),
        (Warmup.parse, "20 +10%/day to 19", "limit 19 is below its start 20"),
        (Adaptive.parse, "5%", "not a table"),
        (Adaptive.parse, '{ abve = "5%" }', "unknown key 'abve', did you mean 'above'"),
        (Adaptive.parse, '{ above = "101%" }', "above: 101% is more than all"),
        (Adaptive.parse, "{ above = 5 }", "above: expected a text"),
        (Adaptive.parse, "{ slow_by = 1 }", "slow_by: 1 is not above 1"),
        (Adaptive.parse, "{ slow_by = inf }", "slow_by: inf is not above 1"),
        (Adaptive.parse, "{ slow_by = 1.00001 }", "more than 4 decimals"),
        (Adaptive.parse, '{ slow_by = "1.5" }', "slow_by: expected a number"),
        (Adaptive.parse, '{ between = "10s..2s" }', "between: .* wrong way round"),
        (Breaker.parse, '{ above = "20%", samples = 200 }', "samples: 200"),
        (Breaker.parse, '{ above = "20%", samples = 0 }', "samples: 0"),
        (Breaker.parse, "{ window = 1000000 }", "window: 1000000"),
        (Breaker.parse, "{ samples = true }", "samples: expected a whole number, not True"),
        (Throttle.parse, '{ to = "20/min", slow_by = 2 }', "either 'to' or 'slow_by'"),
        (Throttle.parse, '{ recover = "0s" }', "recover: must be above zero"),
        (Throttle.parse, '{ recovr = "30m" }', "did you mean 'recover'"),
        (Caps.parse, "{ email = -1 }", "email: cap -1"),
        (Caps.parse, "{ email = 1.5 }", "email: expected a whole number"),
        (Caps.parse, "{ E-Mail = 1 }", "'E-Mail' is no action type"),
        (Caps.parse, "20", "not a table"),
    ],
)
def test_refuses_values(parse: Callable[[str], object], text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse(text)


def test_values_made_in_code_are_checked_too() -> None:
    with pytest.raises(InputError, match="do not double"):
        Ladder((1, 2, 3), doubling=True)
    with pytest.raises(InputError, match="needs a base"):
        Ladder((), doubling=True)
    with pytest.raises(InputError, match="ten years"):
        Frequency(1, 1000 * WEEK)


def test_toml_values_are_escaped() -> None:
    assert toml_value({"a b": ['say "no"\n\x7f', True, 1.5]}) == (
        '{ "a b" = ["say \\"no\\"\\n\\u007F", true, 1.5] }'
    )
    assert toml_value({}) == "{}"


def test_the_nearest_names_are_suggested() -> None:
    assert did_you_mean("spacng", ["spacing", "rate"]) == ", did you mean 'spacing'?"
    assert did_you_mean("xyz", ["spacing", "rate"]) == ""
    assert did_you_mean("Bat", ["bath", "bat", "boat"], limit=3) == (
        ", did you mean 'bat', 'boat' or 'bath'?"
    )
