"""What follows from an outcome, for the delivery and for its account.

By kind of outcome, as the design settles it: throttled waits for Retry-After or a minute and goes
slower, unavailable waits twenty seconds, transient climbs the policy's ladder, permanent never
comes back. The answer is a value; the lane carries it out in the settling transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.calendar import next_day_start
from paceline.core.durations import print_duration
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy

THROTTLE_WAIT_US = 60 * SECOND
OUTAGE_WAIT_US = 20 * SECOND
LONGEST_WAIT_US = 15 * MINUTE
LONGEST_ASKED_US = 30 * DAY
"""What a provider may ask us to wait. Longer is a slip of its clock or of our reading of it."""
ASK_AFTER_US = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR)
"""When to ask a provider what became of a lost message: its reads may lag behind its writes."""


class Consequence(NamedTuple):
    """What one outcome makes of its delivery and its account."""

    event: str
    """The delivery machine's event: accept, retry, fail, bounce, lose."""
    due_at: Instant | None = None
    reason: str = ""
    climbs: bool = False
    """Whether a rung of the retry ladder was used up."""
    hold_until_at: Instant | None = None
    slows: bool = False
    account_event: str | None = None
    account_until_at: Instant | None = None
    suppresses: bool = False


_ACCEPTED = Consequence("accept")


def consequence(
    outcome: Outcome, *, retries: int, setbacks: int, policy: Policy, now: Instant
) -> Consequence:
    """What happens after ``outcome`` to a delivery that has used ``retries`` rungs already."""
    kind = outcome.kind
    if kind is OutcomeKind.ACCEPTED:
        return _ACCEPTED
    reason = outcome.reason or str(kind)
    match kind:
        case OutcomeKind.REJECTED:
            return Consequence("fail", reason=reason)
        case OutcomeKind.BOUNCED:
            return Consequence("bounce", reason=reason, suppresses=True)
        case OutcomeKind.TRANSIENT:
            return _climb(reason, retries, policy, now)
        case OutcomeKind.THROTTLED:
            wait_us = _wait_us(outcome, THROTTLE_WAIT_US, setbacks)
            return Consequence(
                "retry", now + wait_us, reason, hold_until_at=now + wait_us, slows=True
            )
        case OutcomeKind.UNAVAILABLE:
            wait_us = _wait_us(outcome, OUTAGE_WAIT_US, setbacks)
            return Consequence("retry", now + wait_us, reason, hold_until_at=now + wait_us)
        case OutcomeKind.EXHAUSTED:
            asked_us = _asked_us(outcome)
            tomorrow_at = next_day_start(now, policy.day_zone)
            until_at = tomorrow_at if asked_us is None else now + asked_us
            return Consequence("retry", until_at, reason, hold_until_at=until_at)
        case OutcomeKind.UNAUTHORISED:
            return Consequence("retry", now, reason, account_event="suspend")
        case OutcomeKind.BANNED:
            return _banned(outcome, reason, now)
        case OutcomeKind.WITHDRAWN:
            return Consequence("retry", now, reason)
        case OutcomeKind.UNKNOWN:
            return Consequence("lose", reason=reason)


def next_ask_at(lost_at: Instant, now: Instant) -> Instant | None:
    """When to ask again about a message lost at ``lost_at``; None when asking has been enough."""
    return next((lost_at + wait for wait in ASK_AFTER_US if lost_at + wait > now), None)


def retry_delay_us(policy: Policy, retry: int) -> int | None:
    """The wait before retry number ``retry`` (1 is the first); ``None`` when there is none."""
    return policy.retry.delay_us(retry) if retry <= policy.retry.retries else None


def _climb(reason: str, retries: int, policy: Policy, now: Instant) -> Consequence:
    delay_us = retry_delay_us(policy, retries + 1)
    if delay_us is None:
        return Consequence("fail", reason=f"{reason} (after {retries} retries)")
    text = f"{reason}; retry {retries + 1} of {policy.retry.retries} in {print_duration(delay_us)}"
    return Consequence("retry", now + delay_us, text, climbs=True)


def _banned(outcome: Outcome, reason: str, now: Instant) -> Consequence:
    """A ban with an end cools the account down; one without suspends it until a person looks."""
    asked_us = _asked_us(outcome)
    if asked_us is None:
        return Consequence("retry", now, reason, account_event="suspend")
    until_at = now + asked_us
    # Held back as well as cooled down: a person may lift the state, but not the provider's ban.
    return Consequence(
        "retry",
        now,
        reason,
        hold_until_at=until_at,
        account_event="cool_down",
        account_until_at=until_at,
    )


def _wait_us(outcome: Outcome, base_us: int, setbacks: int) -> int:
    """What the provider asked for; else the base, doubled for every setback in a row."""
    asked_us = _asked_us(outcome)
    return min(base_us << min(setbacks, 10), LONGEST_WAIT_US) if asked_us is None else asked_us


def _asked_us(outcome: Outcome) -> int | None:
    """What the provider asked for, made sane.

    "Retry at once" after a refusal would be an endless loop at full speed, since such retries use
    up no rung; and an instant beyond all calendars would stop the lane for good.
    """
    if outcome.retry_after_us is None:
        return None
    return min(max(outcome.retry_after_us, SECOND), LONGEST_ASKED_US)
