"""Error rates and what they lead to: adaptive delay, breaker, bounce pause; and throttles."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paceline.core.durations import Span
from paceline.core.grammar import Percent
from paceline.core.health import (
    WINDOW_SIZE,
    Window,
    adapted_gap_us,
    bounces_too_many,
    breaker_trips,
    is_slowed,
    throttled_interval_us,
    window_size,
)
from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.presets import preset
from paceline.core.tables import Adaptive, Breaker

CAMPAIGN = Policy.from_mapping(preset("campaign-whatsapp"))
K = OutcomeKind


def window_of(failed: int, total: int) -> Window:
    window = Window()
    for number in range(total):
        window = window.push(number < failed)
    return window


@given(st.lists(st.booleans(), max_size=350), st.integers(1, 120), st.integers(1, 120))
def test_a_window_remembers_the_last_attempts_and_forgets_the_rest(
    fates: list[bool], limit: int, count: int
) -> None:
    window = Window()
    for failed in fates:
        window = window.push(failed, limit)
    kept = fates[-limit:]
    assert (window.failed, window.size) == (sum(kept), len(kept))
    newest = window.last(count)
    assert (newest.failed, newest.size) == (sum(kept[-count:]), len(kept[-count:]))


@pytest.mark.parametrize("kind", OutcomeKind)
def test_what_is_about_the_account_leaves_the_window_alone(kind: OutcomeKind) -> None:
    before = window_of(3, 10)
    after = before.after(Outcome(kind))
    if kind is K.ACCEPTED:
        assert (after.failed, after.size) == (3, 11)
    elif kind in {K.REJECTED, K.BOUNCED, K.TRANSIENT}:
        assert (after.failed, after.size) == (4, 11)
    else:
        assert after is before


@given(
    st.integers(2 * SECOND, 10 * SECOND),
    st.integers(0, WINDOW_SIZE),
    st.integers(0, WINDOW_SIZE),
)
def test_adaptive_delay_is_exactly_base_times_1_5_above_5_percent_and_within_its_bounds(
    base_us: int, failed: int, sent: int
) -> None:
    assume(failed + sent <= WINDOW_SIZE)
    delay_us = adapted_gap_us(CAMPAIGN, base_us, window_of(failed, failed + sent))
    above = failed + sent > 0 and Fraction(failed, failed + sent) > Fraction(5, 100)
    exact = Fraction(base_us) * Fraction(3, 2) if above else Fraction(base_us)
    bounded = min(max(exact, 2 * SECOND), 10 * SECOND)
    assert 0 <= delay_us - bounded < 1  # whole microseconds, and never less
    assert 2 * SECOND <= delay_us <= 10 * SECOND


def test_the_threshold_itself_is_not_above_it() -> None:
    assert not is_slowed(CAMPAIGN, window_of(5, 100))
    assert is_slowed(CAMPAIGN, window_of(6, 100))
    assert adapted_gap_us(CAMPAIGN, 3 * SECOND, window_of(5, 100)) == 3 * SECOND
    assert adapted_gap_us(CAMPAIGN, 3 * SECOND, window_of(6, 100)) == 4_500_000
    assert adapted_gap_us(CAMPAIGN, 9 * SECOND, window_of(6, 100)) == 10 * SECOND
    assert not is_slowed(CAMPAIGN, Window())
    assert not is_slowed(Policy(), window_of(100, 100))
    assert adapted_gap_us(Policy(), 7, window_of(100, 100)) == 7


def test_the_delay_does_not_compound() -> None:
    """However long errors stay high, the factor is applied to the drawn gap, once."""
    window, delays = Window(), set()
    for _ in range(300):
        window = window.push(True)
        delays.add(adapted_gap_us(CAMPAIGN, 3 * SECOND, window))
    assert delays == {4_500_000}


def test_the_adaptive_delay_looks_at_the_last_hundred_whatever_the_breaker_remembers() -> None:
    policy = Policy(
        spacing=Span(3 * SECOND, 3 * SECOND), adaptive=Adaptive(), breaker=Breaker(window=500)
    )
    assert window_size(policy) == 500
    assert window_size(CAMPAIGN) == window_size(Policy()) == 100
    window = Window()
    for failed in [True] * 50 + [False] * 100:
        window = window.push(failed, window_size(policy))
    assert (window.failed, window.size) == (50, 150)
    assert not is_slowed(policy, window)
    assert breaker_trips(policy, window)


def test_the_breaker_needs_20_samples_and_more_than_20_percent() -> None:
    assert not breaker_trips(CAMPAIGN, window_of(19, 19))
    assert breaker_trips(CAMPAIGN, window_of(20, 20))
    assert not breaker_trips(CAMPAIGN, window_of(4, 20))
    assert breaker_trips(CAMPAIGN, window_of(5, 20))
    assert not breaker_trips(CAMPAIGN, window_of(20, 100))
    assert breaker_trips(CAMPAIGN, window_of(21, 100))
    assert not breaker_trips(Policy(), window_of(100, 100))


def test_the_breaker_has_a_window_of_its_own() -> None:
    """A short one sees only the newest attempts; a long one, as many as it was given."""
    short = Policy(breaker=Breaker(samples=10, window=10))
    window = window_of(40, 40)
    for _ in range(10):
        window = window.push(False)
    assert not breaker_trips(short, window)
    long = Policy(breaker=Breaker(samples=150, window=200))
    window = Window()
    for _ in range(150):
        assert not breaker_trips(long, window)
        window = window.after(Outcome(K.REJECTED), window_size(long))
    assert breaker_trips(long, window)


def test_bounces_pause_the_account_above_5_percent_of_20_sends() -> None:
    policy = Policy()
    assert not bounces_too_many(policy, 19, 19)
    assert not bounces_too_many(policy, 20, 1)
    assert bounces_too_many(policy, 20, 2)
    assert not bounces_too_many(policy, 100, 5)
    assert bounces_too_many(policy, 100, 6)
    assert not bounces_too_many(Policy(bounce_pause=None), 100, 100)
    assert bounces_too_many(Policy(bounce_pause=Percent(0)), 20, 1)


ESTABLISHED = Policy.from_mapping(preset("whatsapp-established"))


def test_after_a_throttle_the_pace_falls_to_the_floor_and_comes_back_in_half_an_hour() -> None:
    normal_us, floor_us = 1_500_000, 3 * SECOND
    assert ESTABLISHED.rate is not None and ESTABLISHED.rate.interval_us == normal_us

    def interval_us(minutes: int) -> int:
        return throttled_interval_us(ESTABLISHED, normal_us, 0, minutes * MINUTE)

    assert throttled_interval_us(ESTABLISHED, normal_us, None, 0) == normal_us
    assert [interval_us(m) for m in (0, 15, 30, 31)] == [floor_us, 2_250_000, normal_us, normal_us]
    assert interval_us(-5) == floor_us  # a clock that was set back makes nothing faster


@given(st.integers(1, 10**9), st.integers(1, 10**10), st.integers(0, 10**10), st.integers(101, 900))
def test_the_way_back_is_never_faster_than_a_straight_line(
    interval_us: int, recover_us: int, after_us: int, percent: int
) -> None:
    factor = Decimal(percent) / 100
    throttle = {"slow_by": float(factor), "recover": f"{recover_us}us"}
    policy = Policy.from_mapping({"throttle": throttle})
    found_us = throttled_interval_us(policy, interval_us, 5, 5 + after_us)
    left = max(Fraction(0), 1 - Fraction(after_us, recover_us))
    exact = interval_us * (1 + (Fraction(percent, 100) - 1) * left)
    assert 0 <= found_us - exact < 2
    later_us = throttled_interval_us(policy, interval_us, 5, 6 + after_us)
    assert interval_us <= later_us <= found_us


def test_a_floor_above_the_pace_does_not_speed_anything_up() -> None:
    policy = Policy.from_mapping({"rate": "1/min", "throttle": {"to": "20/min"}})
    assert throttled_interval_us(policy, MINUTE, 0, 0) == MINUTE
