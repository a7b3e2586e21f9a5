"""From a provider's answer to what is written: the settlement, the usage, and the aftermath.

Pure. The lane carries the values out; an aftermath is rare and goes into the same transaction as
the settlement it follows from, so that no crash can separate a ban from its suspension.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from paceline.core import usage as usages
from paceline.core.health import bounces_too_many, breaker_trips, window_size
from paceline.core.instants import Instant
from paceline.core.model import Ask, Content
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import ASK_AFTER_US, Consequence, consequence
from paceline.core.states import DELIVERY, DeliveryState
from paceline.core.usage import Usage
from paceline.engine.ports import Capabilities, Delivery, Settlement


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
    """When the call may be made; the intent may be written a moment earlier."""
    intent_at: Instant = 0
    term: int = 0
    """Of the process's lease, when the intent was made."""
    started_at: Instant | None = None
    left: bool = False
    """Whether its call did not end when it was called off, and lives on."""
    handle: str | None = None
    """The provider's handle of the media that the part was sent with."""
    fresh: bool = False
    """Whether that handle was made for this very attempt."""
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
        return outcome.handle_gone and self.handle is not None and not self.fresh

    @property
    def last_part(self) -> bool:
        return self.part == len(self.content.parts) - 1


Landed = tuple[Flight, Outcome, Instant]
"""A flight that has an answer, and when it came."""


def moved_with_the_clock(
    flights: Iterable[Flight], landed: Iterable[Landed], by_us: int
) -> list[Landed]:
    """Somebody set the clock: next parts are as far ahead, and answers as old, as before."""
    for flight in flights:
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

    @property
    def empty(self) -> bool:
        return self.account_event is None and self.pause_run is None and self.suppress is None


NO_AFTERMATH = Aftermath()


class Settled(NamedTuple):
    settlement: Settlement
    usage: Usage
    aftermath: Aftermath


def settle(
    flight: Flight,
    outcome: Outcome,
    *,
    usage: Usage,
    policy: Policy,
    capabilities: Capabilities,
    now: Instant,
) -> Settled:
    """Everything that follows from one answer to one part."""
    delivery = flight.delivery
    # Calls that were under way together meet the same throttle: that is one setback, not three.
    known = now < usage.hold_until_at
    setbacks = max(0, usage.setbacks - 1) if known else usage.setbacks
    old_handle = flight.met_old_handle(outcome)
    if old_handle:
        result = Consequence("retry", now, f"{outcome.reason}; the file is uploaded again")
    else:
        result = consequence(
            outcome, retries=delivery.retries, setbacks=setbacks, policy=policy, now=now
        )
    after = usages.settle(
        usage,
        flight.ask,
        outcome,
        flight.intent_at,
        delivery.run_id,
        limit=window_size(policy),
    )
    if old_handle:
        # That our handle was old says nothing about the messages: no error is counted.
        after = after._replace(health=usage.health)
    if result.hold_until_at is not None:
        reason = outcome.reason or str(outcome.kind)
        text = f"{outcome.kind} by the provider: {reason}"
        slowed_at = now if result.slows else None
        # A ban is no setback either: what it asks for is no sign of being too fast.
        again = known or result.account_event is not None
        after = usages.hold(after, result.hold_until_at, text, slowed_at, again=again)
    aftermath = _aftermath(flight, outcome, result, after, policy)
    if aftermath.pause_run is not None:
        # A person resumes the run with a clean sheet, or the first failure would pause it again.
        after = usages.forget_run(after, aftermath.pause_run)
    settlement = _settlement(flight, outcome, result, policy, capabilities, now)
    return Settled(settlement, after, aftermath)


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
    if outcome.kind is OutcomeKind.ACCEPTED and policy.breaker is None:
        return NO_AFTERMATH
    delivery = flight.delivery
    aftermath = Aftermath(
        account_event=result.account_event,
        reason=result.reason,
        until_at=result.account_until_at,
        suppress=delivery.target if result.suppresses else None,
    )
    if outcome.kind is OutcomeKind.BOUNCED and aftermath.account_event is None:
        sends, bounces = usage.day_sends, usage.day_bounces
        if bounces_too_many(policy, sends, bounces):
            text = f"bounce rate {bounces}/{sends} today is above {policy.bounce_pause}"
            aftermath = aftermath._replace(account_event="pause", reason=text)
    window = usage.window_of(delivery.run_id)
    if delivery.run_id and breaker_trips(policy, window) and policy.breaker is not None:
        text = f"error rate {window.failed}/{window.size} is above {policy.breaker.above}"
        reason = aftermath.reason if aftermath.account_event else text
        aftermath = aftermath._replace(pause_run=delivery.run_id, reason=reason)
    return aftermath
