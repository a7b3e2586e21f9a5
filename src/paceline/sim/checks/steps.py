"""Never ahead of its step: what follows a message comes after it, in time, from the same hand."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports import Delivery
from paceline.sim.checks.evidence import Evidence, Violation, words
from paceline.sim.witness import Seen

PROMISE = "never ahead of its step"
NOT_DELIVERED = "was not delivered"


def ahead(evidence: Evidence) -> Iterator[Violation]:
    """A later step is called for when the provider has all of the one before, so long after as
    people said, and on the account that sent that one; and nobody goes without it for nothing."""
    places = {(d.run_id, d.position, d.step): d for d in evidence.deliveries}
    for call in evidence.calls:
        delivery = evidence.by_id.get(call.delivery_id)
        if delivery is not None and _follows(evidence, delivery):
            before = places[delivery.run_id, delivery.position, delivery.step - 1]
            yield from _too_early(evidence, call, delivery, before)
    for delivery in evidence.deliveries:
        if _follows(evidence, delivery) and delivery.state is DeliveryState.SKIPPED:
            before = places[delivery.run_id, delivery.position, delivery.step - 1]
            if before.state is DeliveryState.SENT and NOT_DELIVERED in delivery.reason:
                text = f"delivery {delivery.id} is skipped, but {before.id} before it was sent"
                yield Violation(PROMISE, text, evidence.ended_at, (str(delivery.id),))


def _follows(evidence: Evidence, delivery: Delivery) -> bool:
    """Whether it comes a time after another. What people bid is judged in ``bids.py``."""
    return delivery.step > 1 and not evidence.runs[delivery.run_id].follow_ups


def _too_early(
    evidence: Evidence, call: Seen, delivery: Delivery, before: Delivery
) -> Iterator[Violation]:
    held_at = _held_at(evidence, before)
    if held_at is None or held_at > call.at:
        text = f"{call.key} is step {delivery.step}, but {before.id} before it has not arrived"
        yield Violation(PROMISE, text, call.at, words(call))
        return
    after_us = evidence.waits[delivery.run_id, delivery.step]
    waited_us = _waited_us(evidence, call, before, held_at)
    # What has begun goes on, whatever its caller's clock says by then.
    if call.part == 0 and waited_us < after_us:
        text = f"{call.key} went {waited_us} us after delivery {before.id}, not {after_us} us"
        yield Violation(PROMISE, text, call.at, words(call))
    hands = {effect.account for effect in evidence.accepted[f"sim-{before.id}-0"]}
    if call.account not in hands:
        text = f"{call.key} went from {call.account}, the message before from {sorted(hands)}"
        yield Violation(PROMISE, text, call.at, words(call))


def _held_at(evidence: Evidence, delivery: Delivery) -> Instant | None:
    """Since when the provider has all of a message."""
    parts = range(evidence.parts[delivery.run_id, delivery.step])
    held = [evidence.accepted.get(f"sim-{delivery.id}-{part}") for part in parts]
    if not all(held):
        return None
    return max(min(effect.at for effect in effects) for effects in held if effects)


def _waited_us(evidence: Evidence, call: Seen, before: Delivery, held_at: Instant) -> int:
    """The time since the message before, by true time or by the clocks of those who wrote down that
    it was sent and who now call, whichever is longer; but it cannot be further from the truth than
    two clocks of this world ever were."""
    true_us = call.at - held_at
    if before.sent_at is None:
        return true_us
    by_clocks_us = call.clock_at - before.sent_at
    return min(max(true_us, by_clocks_us), true_us + evidence.spread_us)
