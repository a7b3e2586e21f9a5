"""Never over, never impatient, never wasteful: whatever can be counted, counted one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.policy import Policy, Warmup
from paceline.providers.sandbox.effects import Effect
from paceline.sim.checks.evidence import Evidence, Violation, lasting_us, words
from paceline.sim.checks.time import day_of, monday_of
from paceline.sim.witness import Seen

CHOSEN_US = SECOND
"""From the choice of a message to its intent."""
GOOD_FOR_US = 5 * MINUTE
"""A handle that expires sooner may be replaced."""


def over(evidence: Evidence) -> Iterator[Violation]:
    for calls in evidence.by_account.values():
        for policy, stretch in _under_one_policy(evidence, calls):
            yield from _too_fast(policy, stretch)
        yield from _over_a_cap(evidence, calls)
        yield from _too_often(evidence, calls)


def _under_one_policy(
    evidence: Evidence, calls: Sequence[Seen]
) -> Iterator[tuple[Policy, list[Seen]]]:
    """Stretches of calls between which the limits did not change."""
    stretch: list[Seen] = []
    policy: Policy | None = None
    for call in calls:
        under = evidence.policy_of(call)
        if under is None:
            continue
        if policy is not None and under != policy:
            yield policy, stretch
            stretch = []
        policy = under
        stretch.append(call)
    if policy is not None:
        yield policy, stretch


def _too_fast(policy: Policy, calls: Sequence[Seen]) -> Iterator[Violation]:
    """A plain bucket: it holds the burst, fills at the rate, and must never be asked when empty."""
    if policy.rate is None or not calls:
        return
    each_us = policy.rate.interval_us
    full_us = policy.rate.burst * each_us
    level_us = full_us - each_us
    for before, call in pairwise(calls):
        level_us = min(full_us, level_us + lasting_us(before, call)) - each_us
        if level_us < 0:
            text = (
                f"{call.key} went {lasting_us(before, call)} us after {before.key}: "
                f"over {policy.rate} on {call.account}"
            )
            yield Violation("never over", text, call.at, words(call))
            level_us = 0


def _over_a_cap(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    """A slot belongs to the day of the call that the provider took, by the caller's clock; one
    that was refused comes back."""
    used: Counter[tuple[object, ...]] = Counter()
    for call in calls:
        policy = evidence.policy_of(call)
        if policy is None or call.facts is None or not evidence.was_taken(call):
            continue
        action, zone = call.facts.action or "", policy.day_zone
        for caps, period in ((policy.daily, day_of), (policy.weekly, monday_of)):
            cap = caps.get(action)
            if period is day_of and policy.warmup is not None and not call.facts.reply:
                ramp = _ramp(policy.warmup, evidence.started_at, call, zone)
                cap = ramp if cap is None else min(cap, ramp)
            if cap is None:
                continue
            place = (period.__name__, period(call.clock_at, zone), action)
            used[place] += 1
            if used[place] > cap:
                text = f"{used[place]} of {cap} {action} on {call.account}: {place[0]} {place[1]}"
                yield Violation("never over", text, call.at, words(call))


def _ramp(warmup: Warmup, since_at: Instant, call: Seen, zone: str) -> int:
    """What a young account may send that day: so much more each day, rounded down."""
    days = max(0, (day_of(call.clock_at, zone) - day_of(since_at, zone)).days)
    grown = warmup.start * Fraction(10_000 + warmup.grow.basis_points, 10_000) ** days
    return min(warmup.limit, int(grown))


def _too_often(evidence: Evidence, calls: Sequence[Seen]) -> Iterator[Violation]:
    """Nobody is written to more often than the account may; answers were asked for."""
    taken: dict[str, list[Seen]] = defaultdict(list)
    for call in calls:
        policy = evidence.policy_of(call)
        if policy is None or call.facts is None or call.facts.reply or call.part > 0:
            continue
        frequency, earlier = policy.per_recipient, taken[call.target]
        if frequency is not None:
            recent = [
                one
                for one in earlier
                if one.key != call.key and _since_us(one, call) < frequency.per_us
            ]
            if len(recent) >= frequency.count:
                text = f"{call.key} is one too many for {call.target}: {frequency}"
                yield Violation("never over", text, call.at, words(call))
        if evidence.was_taken(call):
            earlier.append(call)


def _since_us(before: Seen, after: Seen) -> int:
    """How long ago somebody was written to, as far as whoever writes now can know: of a call whose
    caller has died nothing but its intent is written down."""
    intent_at = before.facts.intent_at if before.facts is not None else None
    since_at = before.clock_at if intent_at is None else min(before.clock_at, intent_at)
    return max(after.at - before.at, after.clock_at - since_at)


def impatient(evidence: Evidence) -> Iterator[Violation]:
    """Whoever was asked to wait calls nobody meanwhile.

    Judged for the lane that heard it. What it was about to call for just then may go, where it may
    have several calls under way; where it has one at a time, that is heard out first. Where people
    have changed the table of signals, it says who waits, and never heedless judges by that.
    """
    if evidence.pages:
        return
    for heard in evidence.heard:
        for call in evidence.by_account.get(heard.account, ()):
            facts = call.facts
            if call.at <= heard.at or facts is None or facts.generation != heard.generation:
                continue
            if heard.alone and call.key != heard.key:
                continue
            if facts.intent_at is None:
                continue
            if _side_by_side(evidence, call) and facts.intent_at <= heard.clock_at + CHOSEN_US:
                continue
            waited_us = max(call.at - heard.at, call.clock_at - heard.clock_at)
            if waited_us < heard.retry_after_us:
                text = (
                    f"{call.key} went {waited_us} us after {heard.key} on {call.account}, which "
                    f"was told to wait {heard.retry_after_us} us"
                )
                yield Violation("never impatient", text, call.at, words(call))


def _side_by_side(evidence: Evidence, call: Seen) -> bool:
    policy = evidence.policy_of(call)
    return policy is None or policy.concurrency > 1


def wasteful(evidence: Evidence) -> Iterator[Violation]:
    """A file is uploaded only when no good handle of it is written down, nor has ever been used: a
    handle is written down before anything is sent with it. Whoever dies between the two costs one
    more upload, and so does one that is written down when the next owner of the lane has looked
    already; nobody else does."""
    yield from _uploaded_again(evidence)
    for load in evidence.loaded:
        known = load.known
        if known is None:
            continue
        if known.expires_at is not None:
            margin_us = min(5 * MINUTE, (known.expires_at - known.uploaded_at) // 4)
            if known.expires_at - margin_us <= max(load.at, load.clock_at):
                continue
        text = f"{load.process} uploaded for {load.account} again, which has {known.handle}"
        yield Violation("never wasteful", text, load.at, (load.account,))


def _uploaded_again(evidence: Evidence) -> Iterator[Violation]:
    """Judged by the provider's log alone."""
    used: dict[str, Instant] = {}
    for effect in evidence.effects:
        if effect.kind == "send" and effect.part.handle is not None:
            used.setdefault(effect.part.handle, effect.called_at)
    loads: dict[tuple[str, str], list[Effect]] = defaultdict(list)
    for effect in evidence.effects:
        if effect.kind == "upload" and effect.accepted:
            loads[effect.account, effect.key].append(effect)
    for before, load in (pair for same in loads.values() for pair in pairwise(same)):
        # By the clock of whoever uploads it, which may be ahead of the provider's.
        latest_at = load.called_at + GOOD_FOR_US + evidence.spread_us
        good = before.expires_at is None or before.expires_at > latest_at
        used_at = used.get(before.provider_id or "")
        if good and used_at is not None and used_at < load.called_at:
            text = f"{load.account} uploaded again what it had sent as {before.provider_id}"
            yield Violation("never wasteful", text, load.at, (load.account,))
