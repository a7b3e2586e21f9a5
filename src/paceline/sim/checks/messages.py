"""What became of each message: never twice, never lost, never to the suppressed, never stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from paceline.core.address import entries_for
from paceline.core.instants import SECOND
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.audit import IntentNote
from paceline.sim.checks.evidence import OVER, Evidence, Violation, words

UNDER_WAY_US = 15 * SECOND
"""From an intent to its call at most, as the documentation has it: whoever hears of his commit so
late that a lease is over by then, which lasts for 15 s, makes no call under it. How long an intent
may come after what forbids it is another matter: not at all."""

NOT_STARTING = ("paused", "suspended", "removed")
"""Accounts of which nothing may start."""

SHOWN = 20


def twice(evidence: Evidence) -> Iterator[Violation]:
    """No part of a delivery is accepted twice by the provider."""
    for key, held in sorted(evidence.accepted.items()):
        if len(held) > 1 and key not in evidence.may_come_twice:
            instants = ", ".join(str(effect.at) for effect in held)
            yield Violation(
                "never twice",
                f"{key} was accepted {len(held)} times, at {instants}",
                held[1].at,
                (key.rsplit("-", 2)[1], held[1].account),
            )


def unrecorded(evidence: Evidence) -> Iterator[Violation]:
    """Every call has its intent in the tables before it is made, and no outcome yet."""
    for call in evidence.calls:
        facts = call.facts
        what = None
        if facts is None:
            what = "there is no such delivery"
        elif facts.intent_at is None:
            what = "there is no intent"
        elif facts.settled:
            what = "its outcome is written down already"
        elif facts.state != DeliveryState.SENDING:
            what = f"the delivery is {facts.state}"
        if what is not None:
            text = f"{call.process} called {call.account} for {call.key}, but {what}"
            yield Violation("never unrecorded", text, call.at, words(call))


def lost(evidence: Evidence) -> Iterator[Violation]:
    """Every delivery exists in one state, and its state tells what the provider has."""
    present = Counter(delivery.id for delivery in evidence.deliveries)
    if len(present) != evidence.planned or sum(present.values()) != evidence.planned:
        text = f"{evidence.planned} deliveries were planned, there are {len(present)}"
        yield Violation("never lost", text, evidence.ended_at)
    for delivery in evidence.deliveries:
        parts = evidence.parts[delivery.run_id, delivery.step]
        held = [f"sim-{delivery.id}-{part}" in evidence.accepted for part in range(parts)]
        what = None
        if delivery.state is DeliveryState.SENT and not all(held):
            what = f"the provider never had part {held.index(False)}"
        elif delivery.state in OVER - {DeliveryState.SENT, DeliveryState.BOUNCED} and all(held):
            what = "the provider has all of it"
        elif delivery.state is DeliveryState.SENDING and evidence.came_to_rest:
            what = "nobody is sending it"
        if what is not None:
            text = f"delivery {delivery.id} is {delivery.state} ({delivery.reason}), but {what}"
            yield Violation("never lost", text, evidence.ended_at, (str(delivery.id),))


def to_the_suppressed(evidence: Evidence) -> Iterator[Violation]:
    """No intent comes after the suppression of its address, and no call so late that its intent
    must have."""
    for intent in evidence.intents:
        if intent.suppressed:
            target = evidence.by_id[intent.delivery_id].target
            text = f"{_named(intent)} was intended, but {target} was suppressed already"
            yield Violation("never to the suppressed", text, intent.at, _concerns(evidence, intent))
    for call in evidence.calls:
        noted = evidence.suppressed_at
        since_at = min(
            (noted[entry] for entry in entries_for(call.target) if entry in noted), default=None
        )
        if since_at is not None and call.at > since_at + UNDER_WAY_US:
            text = f"{call.key} went to {call.target} at {call.at}, suppressed since {since_at}"
            yield Violation("never to the suppressed", text, call.at, words(call))


def against_orders(evidence: Evidence) -> Iterator[Violation]:
    """What was paused starts nothing; what has started may finish. Where everything was stopped
    nothing more is intended at all."""
    for intent in evidence.intents:
        what = None
        if intent.stopped is not None:
            what = f"everything was stopped: {intent.stopped}"
        elif intent.part == 0 and intent.account in NOT_STARTING:
            what = f"its account was {intent.account}"
        elif intent.part == 0 and intent.run != RunState.RUNNING:
            what = f"its run was {intent.run}"
        if what is not None:
            text = f"{_named(intent)} was intended, but {what}"
            yield Violation("never against orders", text, intent.at, _concerns(evidence, intent))
    for silence in evidence.silences:
        until_at = silence.until_at if silence.until_at is not None else evidence.ended_at
        for call in evidence.calls:
            if not silence.since_at + UNDER_WAY_US < call.at < until_at or call.part > 0:
                continue
            facts = call.facts
            campaign = evidence.runs[facts.run_id].campaign if facts is not None else None
            concerned = silence.account in (None, call.account) and silence.campaign in (
                None,
                campaign,
            )
            if concerned:
                who = silence.account or silence.campaign or "everything"
                text = f"{call.key} started at {call.at}, but {who} was stopped then"
                yield Violation("never against orders", text, call.at, words(call))


def _named(intent: IntentNote) -> str:
    return f"attempt {intent.attempt} at part {intent.part} of delivery {intent.delivery_id}"


def _concerns(evidence: Evidence, intent: IntentNote) -> tuple[str, ...]:
    return (str(intent.delivery_id), evidence.accounts[intent.account_id])


def stuck(evidence: Evidence) -> Iterator[Violation]:
    """In fair weather, with every order lifted, everything comes to its end."""
    if evidence.came_to_rest:
        return
    left = [delivery for delivery in evidence.deliveries if delivery.state not in OVER]
    for delivery in left[:SHOWN]:
        text = (
            f"delivery {delivery.id} is still {delivery.state}, due {delivery.due_at} "
            f"({delivery.reason or 'no reason given'}); {len(left)} are left"
        )
        yield Violation("never stuck", text, evidence.ended_at, (str(delivery.id),))
