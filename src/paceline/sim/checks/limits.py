"""Never over: rates in every interval, and counts by day and week, counted one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from paceline.core.policy import Policy
from paceline.sim.checks.evidence import Evidence, Violation, lasting_us, words
from paceline.sim.checks.time import day_of, monday_of
from paceline.sim.witness import Seen


def over(evidence: Evidence) -> Iterator[Violation]:
    for calls in evidence.by_account.values():
        for policy, stretch in _under_one_policy(evidence, calls):
            yield from _too_fast(policy, stretch)
        yield from _over_a_cap(evidence, calls)


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
    used: Counter[tuple[object, ...]] = Counter()
    known: set[str] = set()
    for call in calls:
        policy = evidence.policy_of(call)
        if policy is None or call.facts is None or call.key in known:
            continue
        if call.key not in evidence.accepted:
            continue  # a slot that was refused comes back
        known.add(call.key)
        action, zone = call.facts.action or "", policy.day_zone
        for caps, period in ((policy.daily, day_of), (policy.weekly, monday_of)):
            cap = caps.get(action)
            if cap is None:
                continue
            place = (period.__name__, period(_counted_at(evidence, call), zone), action)
            used[place] += 1
            if used[place] > cap:
                text = f"{used[place]} of {cap} {action} on {call.account}: {place[0]} {place[1]}"
                yield Violation("never over", text, call.at, words(call))


def _counted_at(evidence: Evidence, call: Seen) -> int:
    """By the caller's clock, at the call that the provider took: the last one of that key."""
    effect = evidence.accepted[call.key][0]
    return effect.called_at + call.clock_at - call.at
