"""What follows from an outcome, for the delivery and for its account.

For the delivery by kind of outcome, as the design settles it: throttled waits for Retry-After or a
minute, unavailable waits twenty seconds, transient climbs the policy's ladder, permanent never
comes back. For whoever else waits by the table of signals. The answer is a value; the lane carries
it out in the settling transaction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paceline.core.calendar import next_day_start
from paceline.core.durations import LONGEST_US, print_duration
from paceline.core.grammar import Ladder
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.signals import DEFAULT_SIGNALS, Rule, Scope, doubled_us
from paceline.core.tables import Throttle

USUAL_LADDER_US = (MINUTE, 5 * MINUTE, 15 * MINUTE)
THROTTLE_WAIT_US = 60 * SECOND
OUTAGE_WAIT_US = 20 * SECOND
LONGEST_ASKED_US = 30 * DAY
"""What a provider may ask us to wait. Longer is a slip of its clock or of our reading of it."""
LEAST_RESENDS = 3
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
    scope: Scope = Scope.ACCOUNT
    """Whom the hold binds."""
    slows: bool = False
    """Whether the policy's own slow way back follows the hold."""
    ramp: Throttle | None = None
    """Another slow way back that follows it."""
    account_event: str | None = None
    account_until_at: Instant | None = None
    suppresses: bool = False
    pauses_run: bool = False
    """Whether the campaign waits until somebody resumes it."""

    @property
    def fate(self) -> dict[str, Any]:
        """What it makes of the delivery alone."""
        names = ("event", "due_at", "reason", "climbs")
        return {name: getattr(self, name) for name in names}


ACCEPTED = Consequence("accept")

_WAIT_WITH_ACCOUNT = frozenset(
    {
        OutcomeKind.THROTTLED,
        OutcomeKind.UNAVAILABLE,
        OutcomeKind.EXHAUSTED,
        OutcomeKind.UNAUTHORISED,
    }
)
"""Answers after which the delivery itself is tried again when its account may send again."""

_MAY_ASK = _WAIT_WITH_ACCOUNT - {OutcomeKind.UNAUTHORISED} | {OutcomeKind.BANNED}
"""Answers that may say how long to wait, which then counts for more than the table."""


def consequence(
    outcome: Outcome,
    *,
    retries: int,
    setbacks: int,
    policy: Policy,
    now: Instant,
    rule: Rule | None = None,
    most: int | None = None,
) -> Consequence:
    """What happens after ``outcome`` to a delivery that has used ``retries`` rungs already, and may
    use ``most``, where that is said of the message itself.

    ``rule`` is what the table of signals says about this answer (``signals.py``); without one, what
    it says by default.
    """
    if outcome.kind is OutcomeKind.ACCEPTED:
        return ACCEPTED
    if rule is None:
        rule = DEFAULT_SIGNALS.rule_for("", "", outcome)
    climb = _Ladder(policy, retries, most)
    own = _of_delivery(outcome, climb, setbacks, policy, now)
    if rule is None or rule.lasts.nothing:
        return _alone(own, outcome, climb, now)
    asked_us = _asked_us(outcome) if outcome.kind in _MAY_ASK else None
    if rule.lasts.resumed and (asked_us is None or outcome.kind is not OutcomeKind.BANNED):
        if rule.scope is Scope.CAMPAIGN:
            return own._replace(pauses_run=True)
        return own._replace(account_event="suspend")
    until_at = rule.lasts.until_at(now, setbacks, policy.day_zone)
    if asked_us is not None:
        until_at = now + asked_us
    assert until_at is not None, "a rule that holds nothing back was seen to before"
    held = own._replace(
        hold_until_at=until_at,
        scope=rule.scope,
        slows=rule.ramp.policy,
        ramp=rule.ramp.throttle,
    )
    if rule.scope is not Scope.ACCOUNT:
        # Those whom the hold does not bind go on; so does this one, when it may be tried again.
        return held._replace(**_alone(own, outcome, climb, now).fate)
    if outcome.kind is OutcomeKind.BANNED:
        # Held back as well as cooled down: a person may lift the state, but not the provider's ban.
        return held._replace(account_event="cool_down", account_until_at=until_at)
    return held._replace(due_at=until_at) if outcome.kind in _WAIT_WITH_ACCOUNT else held


def _of_delivery(
    outcome: Outcome, climb: _Ladder, setbacks: int, policy: Policy, now: Instant
) -> Consequence:
    """What an outcome makes of its own delivery, by its kind."""
    reason = outcome.reason or str(outcome.kind)
    match outcome.kind:
        case OutcomeKind.REJECTED:
            return Consequence("fail", reason=reason)
        case OutcomeKind.BOUNCED:
            return Consequence("bounce", reason=reason, suppresses=True)
        case OutcomeKind.TRANSIENT:
            return climb.next(reason, now, _asked_us(outcome))
        case OutcomeKind.THROTTLED:
            return Consequence("retry", now + _wait_us(outcome, THROTTLE_WAIT_US, setbacks), reason)
        case OutcomeKind.UNAVAILABLE:
            return Consequence("retry", now + _wait_us(outcome, OUTAGE_WAIT_US, setbacks), reason)
        case OutcomeKind.EXHAUSTED:
            asked_us = _asked_us(outcome)
            tomorrow_at = next_day_start(now, policy.day_zone)
            return Consequence("retry", tomorrow_at if asked_us is None else now + asked_us, reason)
        case OutcomeKind.UNKNOWN:
            return Consequence("lose", reason=reason)
        case _:  # unauthorised, banned, withdrawn: nothing is wrong with the message
            return Consequence("retry", now, reason)


def _alone(own: Consequence, outcome: Outcome, climb: _Ladder, now: Instant) -> Consequence:
    """The fate of a delivery whose account is not held back.

    One that could be tried again at once would be, for ever and at full speed; so it climbs the
    ladder like anything else that went wrong.
    """
    if outcome.kind in (OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED):
        return climb.next(own.reason, now)
    return own


def next_ask_at(lost_at: Instant, now: Instant) -> Instant | None:
    """When to ask again about a message lost at ``lost_at``; None when asking has been enough."""
    return next((lost_at + wait for wait in ASK_AFTER_US if lost_at + wait > now), None)


def most_retries(policy: Policy, most: int | None) -> int:
    """How often a message is tried again: as its policy's ladder says, unless it says so itself.
    Where the ladder has no rungs there is nothing to wait for, and nothing is tried again."""
    rungs = policy.retry.retries
    return rungs if most is None or not rungs else most


def most_resends(policy: Policy, most: int | None) -> int:
    """How often a message that was lost on the way is sent again: three times at least, whatever
    the ladder says, for nothing was wrong with it; unless the message says otherwise."""
    return max(policy.retry.retries, LEAST_RESENDS) if most is None else most


def retry_delay_us(policy: Policy, retry: int, most: int | None = None) -> int | None:
    """The wait before retry number ``retry`` (1 is the first); ``None`` when there is none."""
    if retry > most_retries(policy, most):
        return None
    ladder = policy.retry
    return ladder.delay_us(retry) if retry <= ladder.retries else _beyond_us(ladder, retry)


def _beyond_us(ladder: Ladder, retry: int) -> int:
    """The wait of a message that wants more retries than there are rungs. A ladder that doubles
    goes on doing so, and the usual one goes on with an hour. Of any other nobody knows how it would
    go on, so its last rung is waited on again."""
    last_us = ladder.delays_us[-1]
    if ladder.doubling:
        return min(last_us << (retry - ladder.retries), LONGEST_US)
    return HOUR if ladder.delays_us == USUAL_LADDER_US else last_us


def after_retries(retries: int) -> str:
    """How often it was tried again, as people are told of it."""
    return f"after {retries} {'retry' if retries == 1 else 'retries'}"


class _Ladder(NamedTuple):
    """Where on its ladder a delivery is."""

    policy: Policy
    retries: int
    most: int | None

    def next(self, reason: str, now: Instant, asked_us: int | None = None) -> Consequence:
        """One rung up; no earlier than the provider asks for, where it does."""
        policy, retry, most = self.policy, self.retries + 1, self.most
        delay_us = retry_delay_us(policy, retry, most)
        if delay_us is None:
            return Consequence("fail", reason=f"{reason} ({after_retries(self.retries)})")
        delay_us = max(delay_us, asked_us or 0)
        of = most_retries(policy, most)
        text = f"{reason}; retry {retry} of {of} in {print_duration(delay_us)}"
        return Consequence("retry", now + delay_us, text, climbs=True)


def _wait_us(outcome: Outcome, base_us: int, setbacks: int) -> int:
    """What the provider asked for; else the base, doubled for every setback in a row."""
    asked_us = _asked_us(outcome)
    return doubled_us(base_us, setbacks) if asked_us is None else asked_us


def _asked_us(outcome: Outcome) -> int | None:
    """What the provider asked for, made sane.

    "Retry at once" after a refusal would be an endless loop at full speed, since such retries use
    up no rung; and an instant beyond all calendars would stop the lane for good.
    """
    if outcome.retry_after_us is None:
        return None
    return min(max(outcome.retry_after_us, SECOND), LONGEST_ASKED_US)
