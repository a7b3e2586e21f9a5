"""The gates: each one pure check with its own earliest instant and its own words.

``earliest(at, …)`` answers the first instant, not before ``at``, at which the gate is open, or
``NEVER`` when no passing of time will open it. A gate is monotone: asked at a later instant it
never answers an earlier one. That is what lets the pacer find their common opening by iteration.

``reason(at, …)`` says in words why the gate is shut at ``at``; it is only called when it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Protocol

from paceline.core.calendar import (
    day_of,
    day_start_of,
    next_day_start,
    next_week_start,
    week_start,
)
from paceline.core.durations import print_duration
from paceline.core.frequency_gate import FrequencyGate
from paceline.core.health import is_slowed
from paceline.core.holds import NO_HOLDS
from paceline.core.hours import Hours
from paceline.core.instants import Instant, local_text
from paceline.core.model import Ask, Standing
from paceline.core.policy import Batch, Policy, Rate
from paceline.core.signal_gate import SignalGate
from paceline.core.states import AccountState
from paceline.core.usage import Usage, gap_to_keep_us

NEVER: Instant = 1 << 62
"""No passing of time opens this gate."""

SENDING_STATES = (AccountState.ACTIVE, AccountState.LIMIT_REACHED)

MOST_DAYS = 400
"""How many days ahead a warm-up is followed until it has room."""


class Gate(Protocol):
    """One pure check of the policy or of the delivery."""

    @property
    def name(self) -> str: ...

    @property
    def final(self) -> bool:
        """Whether ``NEVER`` from this gate refuses the delivery rather than making it wait."""
        ...

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant: ...

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str: ...


@dataclass(frozen=True, slots=True)
class StatusGate:
    """The account's own state: paused, suspended, or cooling down until an instant."""

    standing: Standing
    name: str = "status"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        # ``limit_reached`` is what operators see; the cap gate is what enforces it, so that a
        # raised limit opens the account without anybody having to touch its state.
        if self.standing.state in SENDING_STATES:
            return at
        if self.standing.state is AccountState.COOLING_DOWN and self.standing.until_at is not None:
            return max(at, self.standing.until_at)
        return NEVER

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        told = f": {self.standing.reason}" if self.standing.reason else ""
        return f"account is {self.standing.state.replace('_', ' ')}{told}"


@dataclass(frozen=True, slots=True)
class HoldGate:
    """A pause the provider asked for, or that follows from its being away."""

    name: str = "hold"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        return max(at, usage.hold_until_at)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return usage.hold_reason or "held back by the provider"


@dataclass(frozen=True, slots=True)
class RateGate:
    """The token bucket (GCRA): every part takes a token, nothing gives one back."""

    rate: Rate
    recover_us: int = 0
    name: str = "rate"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        opens_at = usage.tat_at - (self.rate.burst - 1) * self.rate.interval_us
        return opens_at if opens_at > at else at

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        throttled_at = usage.throttled_at
        slowed = throttled_at is not None and at < throttled_at + self.recover_us
        if not slowed and usage.holds is not NO_HOLDS:
            slowed = bool(usage.holds.left_at(at).ramps)
        return f"rate limit {self.rate}{' (slowed after a throttle)' if slowed else ''}"


@dataclass(frozen=True, slots=True)
class SpacingGate:
    """The gap since the last paced send, stretched while errors are high or after a throttle."""

    policy: Policy
    name: str = "spacing"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        if ask.reply or usage.last_at is None:
            return at
        return max(at, usage.last_at + gap_to_keep_us(self.policy, usage, ask))

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        gap = print_duration(gap_to_keep_us(self.policy, usage, ask))
        text = f"spacing {gap} since the last message"
        adaptive = self.policy.adaptive
        if adaptive is not None and is_slowed(self.policy, usage.window_of(ask.run_id)):
            return f"{text} (slowed: error rate above {adaptive.above})"
        return text


@dataclass(frozen=True, slots=True)
class BatchGate:
    """The pause after a full batch; it comes on top of the spacing, as document D counts it."""

    batch: Batch
    policy: Policy
    name: str = "batch"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        if ask.reply or usage.last_at is None or usage.batch_position < self.batch.size:
            return at
        gap_us = gap_to_keep_us(self.policy, usage, ask)
        return max(at, usage.last_at + gap_us + self.batch.pause_us)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return f"batch of {self.batch.size} done, pausing {print_duration(self.batch.pause_us)}"


@dataclass(frozen=True, slots=True)
class HoursGate:
    """The account's business hours; replies may go at any time."""

    hours: Hours
    name: str = "hours"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        return at if ask.reply else _next_open(self.hours, at)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return f"outside business hours ({self.hours})"


@dataclass(frozen=True, slots=True)
class DailyGate:
    """The cap on a day's sends of one action type, narrowed by the warm-up ramp.

    A delivery needs room for all its parts before it starts, because once started it finishes.
    """

    policy: Policy
    warm_since: date
    name: str = "daily"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        action = ask.counted_as
        cap = self.policy.daily.get(action)
        if self.policy.warmup is not None and not ask.reply:
            return self._earliest_on_the_ramp(at, usage, ask)
        # Room on the day that was counted last is room on every later day too, which spares
        # the calendar where nothing is scarce.
        if cap is None or usage.day.get(action, 0) + ask.parts <= cap:
            return at
        if ask.parts > cap:
            return NEVER
        return max(at, next_day_start(usage.day_at, self.policy.day_zone))

    def _earliest_on_the_ramp(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        """A warm-up only ever allows more from day to day, so the first day with room it is."""
        zone = self.policy.day_zone
        for _ in range(MOST_DAYS):
            cap = self._cap(at, ask)
            used = usage.used_on(day_start_of(at, zone), ask.counted_as)
            if cap is None or used + ask.parts <= cap:
                return at
            if cap == self._ceiling(ask) < ask.parts:
                return NEVER
            at = next_day_start(at, zone)
        return NEVER

    def _cap(self, at: Instant, ask: Ask) -> int | None:
        day_index = 0
        if self.policy.warmup is not None:
            day_index = (day_of(at, self.policy.day_zone) - self.warm_since).days
        return self.policy.cap_on(ask.counted_as, day_index)

    def _ceiling(self, ask: Ask) -> int:
        """The most any day will ever allow."""
        cap, warmup = self.policy.daily.get(ask.counted_as), self.policy.warmup
        ramp = warmup.limit if warmup is not None else ask.parts
        return ramp if cap is None else min(cap, ramp)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        cap = self._cap(at, ask)
        used = usage.used_on(day_start_of(at, self.policy.day_zone), ask.counted_as)
        warming = cap is not None and cap != self.policy.daily.get(ask.counted_as)
        return _cap_reason("daily", used, cap, ask) + (" of the warm-up" if warming else "")


@dataclass(frozen=True, slots=True)
class WeeklyGate:
    """The cap on a calendar week's sends (from Monday, in the account's zone)."""

    policy: Policy
    name: str = "weekly"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        action = ask.counted_as
        cap = self.policy.weekly.get(action)
        if cap is None or usage.week.get(action, 0) + ask.parts <= cap:
            return at
        if ask.parts > cap:
            return NEVER
        return max(at, next_week_start(usage.week_at, self.policy.day_zone))

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        week_at = week_start(at, self.policy.day_zone)
        cap = self.policy.weekly.get(ask.counted_as)
        return _cap_reason("weekly", usage.used_in_week(week_at, ask.counted_as), cap, ask)


@dataclass(frozen=True, slots=True)
class NotBeforeGate:
    """The instant the plan, a retry or the operator set for this delivery."""

    name: str = "not-before"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        return max(at, ask.not_before_at)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return "scheduled for later"


@dataclass(frozen=True, slots=True)
class WindowGate:
    """The run's window: held until it opens, refused or resumed the next day when it closes."""

    name: str = "window"
    final: bool = True

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        if ask.reply:
            return at
        if ask.opens_at is not None:
            at = max(at, ask.opens_at)
        if ask.window is not None:
            at = _next_open(ask.window, at)
        return NEVER if ask.closes_at is not None and at >= ask.closes_at else at

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        if ask.closes_at is not None and at >= ask.closes_at:
            return "delivery window closed"
        return f"outside send window ({ask.window})" if ask.window else "outside send window"


@dataclass(frozen=True, slots=True)
class ExpiryGate:
    """A delivery that comes too late to be welcome is not sent at all."""

    name: str = "expiry"
    final: bool = True

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        return NEVER if ask.expires_at is not None and at >= ask.expires_at else at

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return f"expired at {local_text(ask.expires_at or at, 'UTC')}"


@dataclass(frozen=True, slots=True)
class SuppressionGate:
    """An address that must not be contacted."""

    name: str = "suppression"
    final: bool = True

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        return NEVER if ask.suppressed else at

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return "recipient is suppressed"


@dataclass(frozen=True, slots=True)
class RecipientHoursGate:
    """The hours in which the recipient wants to be written to, in their own zone."""

    name: str = "recipient-hours"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        if ask.reply or ask.recipient_hours is None:
            return at
        return _next_open(ask.recipient_hours, at)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        return f"outside the recipient's hours ({ask.recipient_hours})"


DELIVERY_GATES: tuple[Gate, ...] = (
    SuppressionGate(),
    ExpiryGate(),
    NotBeforeGate(),
    WindowGate(),
    RecipientHoursGate(),
)


# The same for every account, and there are ten thousand of them in a process.
_HOLD, _SIGNAL = HoldGate(), SignalGate()

STATE_GATES = frozenset({"status", _HOLD.name, _SIGNAL.name})
"""Those that follow from what an account is in, and not from its policy."""


def account_gates(policy: Policy, standing: Standing) -> tuple[Gate, ...]:
    """The gates that this policy really has; one that could never shut is left out."""
    gates: list[Gate] = [StatusGate(standing), _HOLD, _SIGNAL]
    if policy.hours is not None:
        gates.append(HoursGate(policy.hours))
    if policy.weekly:
        gates.append(WeeklyGate(policy))
    if policy.daily or policy.warmup is not None:
        gates.append(DailyGate(policy, day_of(standing.warm_since_at, policy.day_zone)))
    if policy.per_recipient is not None:
        gates.append(FrequencyGate(policy.per_recipient))
    if policy.spacing is not None or policy.min_gap_us:
        gates.append(SpacingGate(policy))
    if policy.batch is not None:
        gates.append(BatchGate(policy.batch, policy))
    if policy.rate is not None:
        gates.append(RateGate(policy.rate, policy.throttle.recover_us))
    return tuple(gates)


def _next_open(hours: Hours, at: Instant) -> Instant:
    opens_at = hours.next_open(at)
    return NEVER if opens_at is None else opens_at


def _cap_reason(period: str, used: int, cap: int | None, ask: Ask) -> str:
    if cap is not None and ask.parts > cap:
        sends = "send" if ask.parts == 1 else "sends"
        return f"{period} cap {cap} leaves no room for {ask.parts} {sends}"
    return f"{period} cap reached ({used}/{cap})"
