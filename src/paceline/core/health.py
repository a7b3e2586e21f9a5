"""How an account is doing: error rates, and what follows from them for its pace.

Pure arithmetic over small windows. Who is told and what is paused is the engine's affair.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.core.outcome import COUNTS_AS_FAILED, COUNTS_AS_SENT, Outcome
from paceline.core.policy import Policy
from paceline.core.tables import Throttle

WINDOW_SIZE = 100
BOUNCE_SAMPLES = 20


class Window(NamedTuple):
    """The last settled attempts of one run on one account: a bit each, set when it failed."""

    bits: int = 0
    size: int = 0

    def push(self, failed: bool, limit: int = WINDOW_SIZE) -> Window:
        bits, size = self
        if size < limit:
            return Window((bits << 1) | failed, size + 1)
        return Window(((bits << 1) | failed) & ((1 << limit) - 1), limit)

    @property
    def failed(self) -> int:
        return self.bits.bit_count()

    def last(self, count: int) -> Window:
        """Only the newest ``count`` attempts."""
        if self.size <= count:
            return self
        return Window(self.bits & ((1 << count) - 1), count)

    def after(self, outcome: Outcome, limit: int = WINDOW_SIZE) -> Window:
        """The window after an attempt; outcomes that are about the account leave it as it was."""
        if outcome.kind in COUNTS_AS_SENT:
            return self.push(False, limit)
        if outcome.kind in COUNTS_AS_FAILED:
            return self.push(True, limit)
        return self


def window_size(policy: Policy) -> int:
    """How many attempts must be remembered: what the adaptive delay and the breaker look at."""
    return max(WINDOW_SIZE, policy.breaker.window if policy.breaker is not None else 0)


def is_slowed(policy: Policy, window: Window) -> bool:
    """Whether the error rate is above the adaptive threshold."""
    adaptive = policy.adaptive
    if adaptive is None:
        return False
    recent = window.last(WINDOW_SIZE)
    return adaptive.above.exceeded_by(recent.failed, recent.size)


def adapted_gap_us(policy: Policy, gap_us: int, window: Window) -> int:
    """The gap to keep: the drawn one, or exactly ``slow_by`` times it while errors are high.

    It does not compound: the factor is always applied to the drawn gap, and the result is
    clamped to the policy's bounds.
    """
    adaptive = policy.adaptive
    if adaptive is None:
        return gap_us
    if is_slowed(policy, window):
        gap_us = _times(gap_us, adaptive.slow_by)
    return adaptive.between.clamp(gap_us)


def breaker_trips(policy: Policy, window: Window) -> bool:
    """Whether the run must be paused: too many failures among enough samples."""
    breaker = policy.breaker
    if breaker is None:
        return False
    recent = window.last(breaker.window)
    return recent.size >= breaker.samples and breaker.above.exceeded_by(recent.failed, recent.size)


def enough_to_judge(policy: Policy, before: int, sends: int) -> bool:
    """Whether, with what was sent since ``before``, the day's bounces can be judged that could not
    be judged until then. From there on more that arrives only makes their share smaller."""
    return policy.bounce_pause is not None and before < BOUNCE_SAMPLES <= sends


def bounces_too_many(policy: Policy, sends: int, bounces: int) -> bool:
    """Whether the day's bounces pause the account."""
    return (
        policy.bounce_pause is not None
        and sends >= BOUNCE_SAMPLES
        and policy.bounce_pause.exceeded_by(bounces, sends)
    )


def throttled_interval_us(
    policy: Policy, interval_us: int, throttled_at: Instant | None, now: Instant
) -> int:
    """The bucket's interval after a throttle: slower at first, back to normal after ``recover``.

    The way back is linear in the interval, so the pace never jumps; it is a pure function of the
    instant at which the last throttle's wait is over, so a restart in between changes nothing.
    """
    if throttled_at is None:
        return interval_us
    return slowed_interval_us(policy.throttle, interval_us, throttled_at, now)


def slowed_interval_us(throttle: Throttle, interval_us: int, from_at: Instant, now: Instant) -> int:
    """The same for any slow way back; before it begins it is as slow as it gets."""
    left_us = from_at + throttle.recover_us - now
    if left_us <= 0:
        return interval_us
    if throttle.to is not None:
        slowest_us = max(throttle.to.interval_us, interval_us)
    else:
        slowest_us = _times(interval_us, throttle.slow_by)
    extra_us = slowest_us - interval_us
    # Rounded up: the rate must never be above what the recovery allows at this instant.
    return interval_us - (-extra_us * min(left_us, throttle.recover_us) // throttle.recover_us)


def _times(us: int, factor: Decimal) -> int:
    """Exactly so many times as long, and never a fraction of a microsecond less."""
    numerator, denominator = factor.as_integer_ratio()
    return -(-us * numerator // denominator)
