"""Evidence made by hand: a quiet world in which all is well, to be changed one fact at a time."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from paceline.core.instants import DAY, MINUTE, SECOND, Instant, parse_instant
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import CallFacts, Delivery, Run
from paceline.engine.ports.audit import IntentNote
from paceline.providers.sandbox.effects import Effect, PartDigest
from paceline.sim.checks import CHECKS, Evidence
from paceline.sim.witness import Seen

T = TypeVar("T")

NOON: Instant = parse_instant("2026-03-02T12:00:00Z")
"""A Monday."""


def replace(record: T, **changes: Any) -> T:
    """A copy with changes, whether the record is a tuple or not."""
    if isinstance(record, tuple):
        changed: T = record._replace(**changes)  # type: ignore[attr-defined]
        return changed
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


FACTS = CallFacts(
    state="sending",
    attempts=1,
    account_id=1,
    run_id=1,
    reply=False,
    lane_generation=1,
    checkpoint=None,
    intent_at=NOON,
    generation=1,
    policy_id=1,
    action="message",
    settled=False,
)

RUN = Run(
    id=1,
    campaign_id=1,
    campaign="word",
    kind="campaign",
    state=RunState.SUCCESS,
    total=1,
    window=None,
    opens_at=None,
    closes_at=None,
    priority=0,
    content=[],
    reason="",
    started_at=NOON,
    finished_at=None,
    summary="",
)

DELIVERY = Delivery(
    id=1,
    run_id=1,
    account_id=1,
    position=0,
    target="anna",
    fields={},
    content=None,
    action="message",
    reply=False,
    state=DeliveryState.SENT,
    scheduled_at=NOON,
    due_at=None,
    expires_at=None,
    recipient_hours=None,
    parts_done=1,
    attempts=1,
    retries=0,
    reason="",
    provider_id=None,
    sent_at=NOON,
)


INTENT = IntentNote(
    at=NOON,
    delivery_id=1,
    part=0,
    attempt=1,
    account_id=1,
    suppressed=False,
    account="active",
    run="running",
    stopped=None,
)
"""One that was written while nothing stood in its way."""


def call(number: int = 1, after_us: int = 0, *, part: int = 0, **changes: Any) -> Seen:
    """A call for a delivery, so long after noon; changes of the facts go by their names."""
    at = NOON + after_us
    facts = {name: changes.pop(name) for name in list(changes) if hasattr(FACTS, name)}
    seen = Seen(
        at=at,
        clock_at=at,
        process="process-0",
        account="lane-0",
        key=f"sim-{number}-{part}",
        target="anna",
        delivery_id=number,
        part=part,
        facts=replace(FACTS, intent_at=at, **facts) if "intent_at" not in facts else None,
        gap_us=0,
    )
    if "intent_at" in facts:
        seen = replace(seen, facts=replace(FACTS, **facts))
    return replace(seen, **changes)


def effect(seen: Seen, **changes: Any) -> Effect:
    """What the provider took because of a call."""
    taken = Effect(
        kind="send",
        called_at=seen.at,
        at=seen.at,
        account=seen.account,
        address=seen.account,
        key=seen.key,
        target=seen.target,
        action="message",
        part=PartDigest("text", 5, "digest"),
        attempt=1,
        answer="accepted",
        code="",
        accepted=True,
    )
    return replace(taken, **changes)


def evidence(*calls: Seen, policy: dict[str, Any] | None = None, **changes: Any) -> Evidence:
    """A world in which these calls were made and all of them were taken."""
    numbers = sorted({seen.delivery_id for seen in calls})
    kept = Evidence(
        calls=calls,
        effects=[effect(seen) for seen in calls],
        deliveries=[replace(DELIVERY, id=number) for number in numbers],
        accounts={1: "lane-0"},
        runs={1: RUN},
        parts={(1, 1): 1 + max((seen.part for seen in calls), default=0)},
        policies={1: Policy.from_mapping(policy or {})},
        planned=len(numbers),
        suppressed_at={},
        silences=[],
        ended_at=NOON + DAY,
        came_to_rest=True,
    )
    return replace(kept, **changes)


def broken(given: Evidence) -> set[str]:
    """The promises that anybody finds broken."""
    return {found.invariant for check in CHECKS.values() for found in check(given)}


__all__ = [
    "DELIVERY",
    "INTENT",
    "MINUTE",
    "NOON",
    "RUN",
    "SECOND",
    "broken",
    "call",
    "effect",
    "evidence",
    "replace",
]
