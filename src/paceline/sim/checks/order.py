"""Never too close, never by two: the gaps between calls, how many are made at a time, the order of
parts, and who made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from paceline.core.instants import SECOND
from paceline.core.policy import Policy
from paceline.sim.checks.evidence import Evidence, Violation, lasting_us, words
from paceline.sim.witness import Seen

LEASE_US = 15 * SECOND
"""As the documentation has it."""


def too_close(evidence: Evidence) -> Iterator[Violation]:
    """The gap that was drawn and stored is kept, batches have their pause, parts their order, and
    an account makes no more calls at a time than it may."""
    for calls in evidence.by_account.values():
        yield from _at_once(evidence, calls)
        yield from _closer_than_drawn(evidence, calls)
        yield from _parts_too_close(evidence, calls)
        yield from _without_a_pause(evidence, calls)
        yield from _out_of_order(evidence, calls)


def _at_once(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    """Where one may be under way at a time, the next is made when it was answered or given up."""
    for call in calls:
        policy = evidence.policy_of(call)
        if policy is not None and call.beside >= policy.concurrency:
            text = (
                f"{call.key} went while {call.beside} calls were under way on {call.account}, of "
                f"which {policy.concurrency} may be"
            )
            yield Violation("never too close", text, call.at, words(call))


def _paced(evidence: Evidence, calls: Sequence[Seen]) -> list[Seen]:
    """Whatever keeps a distance: replies do not, and further parts have a gap of their own
    (``_parts_too_close``)."""
    return [call for call in calls if call.facts is not None and not call.facts.reply]


def _closer_than_drawn(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    for before, call in pairwise(_paced(evidence, calls)):
        policy = evidence.policy_of(call)
        if policy is None or _goes_on(policy, before, call):
            continue
        low_us = policy.spacing.low_us if policy.spacing is not None else 0
        needed_us = max(low_us, policy.min_gap_us, before.gap_us)
        if policy.adaptive is not None:
            needed_us = min(needed_us, policy.adaptive.between.high_us)
        if lasting_us(before, call) < needed_us:
            text = (
                f"{call.key} went {lasting_us(before, call)} us after {before.key} on "
                f"{call.account}; {needed_us} us were drawn and stored"
            )
            yield Violation("never too close", text, call.at, words(call))


def _goes_on(policy: Policy, before: Seen, call: Seen) -> bool:
    """Whether a call sends a further part of a message that is on its way: right after the part
    before it, or between the messages that may be under way beside it."""
    if call.part == 0:
        return False
    return policy.concurrency > 1 or before.delivery_id == call.delivery_id


def _parts_too_close(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    """The parts of one message keep their own distance, whatever is sent between them."""
    latest: dict[tuple[int, int], Seen] = {}
    for call in calls:
        policy, before = evidence.policy_of(call), latest.get((call.delivery_id, call.part - 1))
        latest[call.delivery_id, call.part] = call
        if policy is None or before is None or lasting_us(before, call) >= policy.part_gap.low_us:
            continue
        text = (
            f"{call.key} went {lasting_us(before, call)} us after the part before it on "
            f"{call.account}; between parts there are {policy.part_gap.low_us} us"
        )
        yield Violation("never too close", text, call.at, words(call))


def _without_a_pause(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    """Among so many gaps as a batch has sends, one at least is the pause."""
    starts = [call for call in _paced(evidence, calls) if call.part == 0]
    for number, call in enumerate(starts):
        policy = evidence.policy_of(call)
        if policy is None or policy.batch is None or number < policy.batch.size:
            continue
        batch = starts[number - policy.batch.size : number + 1]
        longest_us = max(lasting_us(one, other) for one, other in pairwise(batch))
        if longest_us < policy.batch.pause_us:
            text = f"more than {policy.batch.size} sends on {call.account} without a pause"
            yield Violation("never too close", text, call.at, words(call))


def _out_of_order(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    """A part is called for when the provider has the one before it."""
    for call in calls:
        if call.part == 0:
            continue
        earlier = evidence.accepted.get(f"sim-{call.delivery_id}-{call.part - 1}", [])
        if not any(effect.at <= call.at for effect in earlier):
            text = (
                f"part {call.part} of delivery {call.delivery_id} went before part {call.part - 1}"
            )
            yield Violation("never too close", text, call.at, words(call))


def by_two(evidence: Evidence) -> Iterator[Violation]:
    """Whoever calls owns the lane in that very moment, and the message is that lane's: nobody has
    taken over the one, nor the other. So it is with whoever uploads a file. And a lane is taken
    from nobody of whom the database has heard, by its own clock, within the time of a lease.
    """
    for taking in evidence.takings:
        if taking.silent_us < LEASE_US:
            name = evidence.accounts[taking.account_id]
            text = f"{name} was taken from whom the database had heard {taking.silent_us} us ago"
            yield Violation("never by two", text, taking.at, (name,))
    for load in evidence.loaded:
        if load.owner != load.process:
            owner = "nobody" if load.owner is None else load.owner
            text = f"{load.process} uploaded for {load.account}, whose lane is {owner}'s"
            yield Violation("never by two", text, load.at, (load.account,))
    for call in evidence.calls:
        facts = call.facts
        if facts is None or facts.generation is None:
            continue
        owner = evidence.accounts[facts.account_id]
        if owner != call.account:
            text = f"{call.process} called {call.account} for {call.key}, which is {owner}'s"
            yield Violation("never by two", text, call.at, words(call))
        if facts.generation != facts.lane_generation:
            text = (
                f"{call.process} called {call.account} for {call.key} under generation "
                f"{facts.generation}, but the lane is at {facts.lane_generation}"
            )
            yield Violation("never by two", text, call.at, words(call))
