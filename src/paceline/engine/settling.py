"""From a provider's answer to what is written: the settlement, the usage, and the aftermath.

Pure. The lane carries the values out; an aftermath is rare and goes into the same transaction as
the settlement it follows from, so that no crash can separate a ban from its suspension.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from paceline.core import usage as usages
from paceline.core.discretion import discreet
from paceline.core.durations import print_duration
from paceline.core.health import (
    WINDOW_SIZE,
    adapted_gap_us,
    breaker_trips,
    enough_to_judge,
    is_slowed,
    window_size,
)
from paceline.core.holds import NO_HOLDS
from paceline.core.instants import Instant
from paceline.core.model import Ask, Content
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import ACCEPTED, ASK_AFTER_US, Consequence, consequence
from paceline.core.signals import DEFAULT_SIGNALS, Scope, Signals
from paceline.core.states import DELIVERY, DeliveryState
from paceline.core.stubborn import noted, read_alone, stepping_aside
from paceline.core.usage import Usage
from paceline.engine.ports import Capabilities, Delivery, Intent, Settlement
from paceline.engine.ports.path import Sparing


@dataclass(slots=True)
class Flight:
    """A delivery on its way: which part is being sent, and when its intent was made."""

    delivery: Delivery
    content: Content
    ask: Ask
    attempt: int
    part: int
    policy_id: int
    not_before_at: Instant = 0
    """When the call may be made, where the intent is written a moment earlier."""
    not_before_us: int = 0
    """The same by the clock that nobody sets, from when it is sent on its way."""
    intent_at: Instant = 0
    term: int = 0
    """Of the process's lease, when the intent was made."""
    started_at: Instant | None = None
    left: bool = False
    """Whether its call did not end when it was called off, and lives on."""
    handles: tuple[str, ...] = ()
    """The provider's handles of the files that the part was sent with."""
    fresh: bool = False
    """Whether all of them were made for this very attempt."""
    address: str | None = None
    """The target as the provider takes it, where it had to be looked up."""
    unreachable: Outcome | None = None
    """What looking it up came to, where that was no address."""
    next_part_at: Instant | None = None
    """When the next part may go; ``None`` while one is with the provider."""

    @property
    def unsent_parts(self) -> int:
        """Parts that have no intent yet."""
        ahead = len(self.content.parts) - self.part
        return ahead if self.next_part_at is not None else ahead - 1

    def met_old_handle(self, outcome: Outcome) -> bool:
        """Whether all that was refused is a handle from earlier, which another upload replaces.

        Nobody's message was refused, so it is tried again at once and costs no rung. That cannot go
        on for ever: one that was made just now and is gone as well is refused for good.
        """
        return outcome.handle_gone and bool(self.handles) and not self.fresh

    def intent(self, policy: Policy, now: Instant, *, starts: bool) -> Intent:
        """What is written down before its part is sent."""
        delivery = self.delivery
        return Intent(
            delivery.id,
            delivery.run_id,
            self.part,
            self.attempt,
            self.ask.counted_as,
            now,
            self.policy_id,
            starts,
            starts and delivery.account_id is None,
            self._sparing(policy, now) if starts else None,
        )

    def _sparing(self, policy: Policy, now: Instant) -> Sparing | None:
        """How often its recipient may be written to, where that is limited; an answer may always be
        given."""
        often, delivery = policy.per_recipient, self.delivery
        if often is None or self.ask.reply:
            return None
        since_at = now - often.per_us + 1
        return Sparing(delivery.target, delivery.contact_id, often.count, since_at)

    @property
    def last_part(self) -> bool:
        return self.part == len(self.content.parts) - 1


Landed = tuple[Flight, Outcome, Instant]
"""A flight that has an answer, and when it came."""


def moved_with_the_clock(
    flights: Iterable[Flight], landed: Iterable[Landed], by_us: int
) -> list[Landed]:
    """Somebody set the clock: next parts are as far ahead, and calls and answers as old, as
    before."""
    for flight in flights:
        if flight.started_at is not None:
            flight.started_at += by_us
        if flight.next_part_at is not None:
            flight.next_part_at += by_us
    return [(flight, outcome, at + by_us) for flight, outcome, at in landed]


class Aftermath(NamedTuple):
    """What an outcome does beyond its delivery."""

    account_event: str | None = None
    reason: str = ""
    until_at: Instant | None = None
    pause_run: int | None = None
    suppress: str | None = None
    suppress_reason: str = ""
    """What was said of that address: the account or the campaign may be stopped for another reason.
    """
    setbacks: int = 0
    """How often in a row the provider has asked for less, where that is worth an alert."""
    failed: int = 0
    """How many of its messages failed, where the run is paused for that, and not by a signal."""
    run_reason: str = ""
    """Why the run is paused: its account may be stopped by the same answer for another reason."""
    tried_before: int | None = None
    """A delivery that has failed, and of which an earlier try may have arrived."""
    counts_bounces: bool = False
    """Whether too many of the day may have come back by now: one more has, or there are enough to
    judge those that did."""

    @property
    def by_breaker(self) -> bool:
        return self.failed > 0

    @property
    def stops(self) -> bool:
        """Whether the account or the campaign may be stopped."""
        stops_one = self.account_event is not None or self.pause_run is not None
        return stops_one or self.counts_bounces

    @property
    def empty(self) -> bool:
        return (
            not self.stops
            and self.suppress is None
            and not self.setbacks
            and self.tried_before is None
        )


NO_AFTERMATH = Aftermath()
ENOUGH_TO_JUDGE = Aftermath(counts_bounces=True)
"""Of a plain yes: nothing follows, unless something has come back that day."""

SETBACKS_TOLD = 3
"""Throttles or outages in a row after which operators are told."""


class Settled(NamedTuple):
    settlement: Settlement
    usage: Usage
    aftermath: Aftermath
    slowed: str = ""
    """In words that errors slow the campaign from now on, where they did not before."""


def settle(
    flight: Flight,
    outcome: Outcome,
    *,
    usage: Usage,
    policy: Policy,
    capabilities: Capabilities,
    now: Instant,
    provider: str = "",
    signals: Signals = DEFAULT_SIGNALS,
) -> Settled:
    """Everything that follows from one answer to one part."""
    delivery = flight.delivery
    if is_plain_yes(outcome, usage, policy):
        after = used(flight, outcome, usage, policy)
        settlement = _settlement(flight, outcome, ACCEPTED, policy, capabilities, now)
        return Settled(settlement, after, NO_AFTERMATH)
    if outcome.reason:
        # It is about to go further than this message: to accounts, campaigns, alerts.
        said = discreet(outcome.reason, delivery.target, delivery.fields)
        outcome = outcome._replace(reason=said)
    old_handle = flight.met_old_handle(outcome)
    known, answer = False, outcome
    if old_handle:
        result = Consequence("retry", now, f"{outcome.reason}; the file is uploaded again")
    elif outcome.kind is OutcomeKind.ACCEPTED:
        result = ACCEPTED
    else:
        outcome = read_alone(outcome, usage.holds, delivery.id, now)
        # One that is its message's own holds nobody back, whatever the table says of such answers.
        rule = signals.rule_for(provider, flight.ask.action, outcome) if outcome is answer else None
        scope = rule.scope if rule is not None else Scope.ACCOUNT
        # Calls that were under way together meet the same throttle: one setback, not three.
        known = now < _held_until_at(usage, scope, delivery.run_id)
        result = consequence(
            outcome,
            retries=delivery.retries,
            setbacks=max(0, usage.setbacks - 1) if known else usage.setbacks,
            policy=policy,
            now=now,
            rule=rule,
            most=flight.content.retries,
        )
        result = stepping_aside(result, outcome, usage.holds.times_throttled(delivery.id), now)
    after = used(flight, outcome, usage, policy)
    if after.holds is not NO_HOLDS or answer.kind is OutcomeKind.THROTTLED:
        after = after._replace(holds=noted(after.holds, delivery.id, answer, result, now))
    if old_handle:
        # That our handle was old says nothing about the messages: no error is counted.
        after = after._replace(health=usage.health)
    if result.hold_until_at is not None:
        # A ban is no setback either: what it asks for is no sign of being too fast.
        again = known or result.account_event is not None
        after = _held(after, result, outcome, delivery.run_id, again=again)
    slowed = ""
    if outcome.kind is not OutcomeKind.ACCEPTED and policy.adaptive is not None:
        slowed = _newly_slowed(policy, usage, after, delivery.run_id)
    aftermath = _aftermath(flight, outcome, result, after, policy)
    if result.event == "fail" and flight.attempt > 1:
        aftermath = aftermath._replace(tried_before=delivery.id)
    if after.setbacks > max(usage.setbacks, SETBACKS_TOLD - 1):
        aftermath = aftermath._replace(
            setbacks=after.setbacks, reason=aftermath.reason or result.reason
        )
    if aftermath.pause_run is not None:
        # A person resumes the run with a clean sheet, or the first failure would pause it again.
        after = usages.forget_run(after, aftermath.pause_run)
    settlement = _settlement(flight, outcome, result, policy, capabilities, now)
    return Settled(settlement, after, aftermath, slowed)


def is_plain_yes(outcome: Outcome, usage: Usage, policy: Policy) -> bool:
    """Whether nothing follows from an answer beyond its own delivery, as from nearly every one:
    nobody is held back, and nobody counts how many have failed or come back."""
    accepted = outcome.kind is OutcomeKind.ACCEPTED and not outcome.reason
    plain = accepted and usage.holds is NO_HOLDS and policy.breaker is None
    return plain and not enough_to_judge(policy, usage.day_sends, usage.day_sends + 1)


def _counts_bounces(outcome: Outcome, after: Usage, policy: Policy) -> bool:
    """Whether the day's bounces have to be looked at: the answer has made them more, or was the
    first after which there are enough letters to judge them by."""
    if outcome.kind is OutcomeKind.BOUNCED:
        return policy.bounce_pause is not None
    accepted = outcome.kind is OutcomeKind.ACCEPTED
    return accepted and enough_to_judge(policy, after.day_sends - 1, after.day_sends)


def used(flight: Flight, outcome: Outcome, usage: Usage, policy: Policy) -> Usage:
    """Usage with an answer counted, whatever else follows from it."""
    run_id, limit = flight.delivery.run_id, window_size(policy)
    return usages.settle(usage, flight.ask, outcome, flight.intent_at, run_id, limit=limit)


def _held_until_at(usage: Usage, scope: Scope, run_id: int) -> Instant:
    """Until when such a hold is in force already."""
    if scope is Scope.ACCOUNT:
        return usage.hold_until_at
    if scope is Scope.CAMPAIGN:
        return usage.holds.run_until_at(run_id)
    return usage.holds.newcomers_until_at


def _held(
    usage: Usage, result: Consequence, outcome: Outcome, run_id: int, *, again: bool
) -> Usage:
    """Usage with whoever the consequence names held back, and a slow way back where it says so."""
    until_at = result.hold_until_at
    assert until_at is not None, "only a hold holds anybody back"
    reason = f"{outcome.kind} by the provider: {outcome.reason or outcome.kind}"
    # From the end of the hold on: a way back that is over before it may begin slows nobody.
    slow_from_at = until_at if result.slows else None
    if result.scope is Scope.ACCOUNT:
        usage = usages.hold(usage, until_at, reason, slow_from_at, again=again)
    else:
        why = reason[: usages.REASON_LENGTH]
        narrow = result.scope is Scope.NEW_CONTACTS
        holds = usage.holds
        holds = holds.newcomers(until_at, why) if narrow else holds.run(run_id, until_at, why)
        # No longer hold of the account, but the setback counts and the pace goes down all the same.
        usage = usages.hold(usage, 0, "", slow_from_at, again=again)._replace(holds=holds)
    if result.ramp is None:
        return usage
    return usage._replace(holds=usage.holds.ramping(until_at, result.ramp))


def _newly_slowed(policy: Policy, before: Usage, after: Usage, run_id: int) -> str:
    window, spacing = after.window_of(run_id), policy.spacing
    if policy.adaptive is None or spacing is None or not is_slowed(policy, window):
        return ""
    if is_slowed(policy, before.window_of(run_id)):
        return ""
    longer = print_duration(adapted_gap_us(policy, spacing.low_us, window))
    recent = window.last(WINDOW_SIZE)
    rate = f"error rate {recent.failed}/{recent.size} is above {policy.adaptive.above}"
    return f"{rate}: spacing {print_duration(spacing.low_us)} becomes {longer}"


def _settlement(
    flight: Flight,
    outcome: Outcome,
    result: Consequence,
    policy: Policy,
    capabilities: Capabilities,
    now: Instant,
) -> Settlement:
    delivery = flight.delivery
    state = DELIVERY.next(DeliveryState.SENDING, result.event)
    due_at = result.due_at
    if state is DeliveryState.SENT and not flight.last_part:
        state = DeliveryState.SENDING
    if state is DeliveryState.UNKNOWN:
        due_at = doubt_due_at(policy, capabilities, now + ASK_AFTER_US[0])
    accepted = outcome.kind is OutcomeKind.ACCEPTED
    started_at = flight.started_at
    return Settlement(
        delivery.id,
        delivery.run_id,
        flight.part,
        flight.attempt,
        flight.ask.counted_as,
        flight.intent_at,
        started_at,
        now,
        outcome,
        flight.policy_id,
        state,
        due_at,
        parts_done=flight.part + 1 if accepted else flight.part,
        retries=delivery.retries + result.climbs,
        reason=result.reason,
        latency_us=None if started_at is None else now - started_at,
    )


def doubt_due_at(policy: Policy, capabilities: Capabilities, ask_at: Instant) -> Instant | None:
    """When a doubt is looked into by itself; ``None`` when only a person can."""
    if capabilities.finds or policy.on_unknown == "resend":
        return ask_at
    return None


def _aftermath(
    flight: Flight, outcome: Outcome, result: Consequence, usage: Usage, policy: Policy
) -> Aftermath:
    counts_bounces = _counts_bounces(outcome, usage, policy)
    if outcome.kind is OutcomeKind.ACCEPTED and policy.breaker is None and not counts_bounces:
        return NO_AFTERMATH
    delivery = flight.delivery
    aftermath = Aftermath(
        account_event=result.account_event,
        reason=result.reason,
        until_at=result.account_until_at,
        suppress=delivery.target if result.suppresses else None,
        suppress_reason=result.reason if result.suppresses else "",
        counts_bounces=counts_bounces,
    )
    window = usage.window_of(delivery.run_id)
    if delivery.run_id and breaker_trips(policy, window) and policy.breaker is not None:
        recent = window.last(policy.breaker.window)
        text = f"error rate {recent.failed}/{recent.size} is above {policy.breaker.above}"
        reason = aftermath.reason if aftermath.account_event else text
        return aftermath._replace(
            pause_run=delivery.run_id, reason=reason, failed=recent.failed, run_reason=text
        )
    if delivery.run_id and result.pauses_run:
        return aftermath._replace(pause_run=delivery.run_id, run_reason=result.reason)
    return aftermath
