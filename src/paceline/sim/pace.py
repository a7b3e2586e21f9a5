"""How fast a lane went against how fast it was allowed to go, judged from the outside.

Reads what the sandbox saw and plays the account's pacer beside it: had nothing ever taken time,
when could the next call have been made? Only the stretch in which the lane was never short of
work counts; waiting for somebody's retry to fall due is not slowness.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.core import usage as usages
from paceline.core.instants import MINUTE, Instant
from paceline.core.model import Ask, Standing, Wait
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.pacer import Pacer
from paceline.core.policy import Policy
from paceline.core.retry import consequence
from paceline.core.usage import Usage
from paceline.engine.verify import Attempt


@dataclass(frozen=True, slots=True)
class Pace:
    achieved_per_min: float
    allowed_per_min: float

    @property
    def share(self) -> float:
        return self.achieved_per_min / self.allowed_per_min if self.allowed_per_min else 1.0


def pace_of(attempts: Sequence[Attempt], policy: Policy) -> Pace:
    """The pace of one account over the stretch in which it still had fresh work."""
    calls = sorted(
        (a for a in attempts if a.happened_at is not None), key=lambda a: a.happened_at or 0
    )
    fresh = [index for index, call in enumerate(calls) if call.intent.attempt == 1]
    if not fresh or fresh[-1] == 0:
        return Pace(0.0, 0.0)
    calls = calls[: fresh[-1] + 1]
    steps = len(calls) - 1
    taken_us = (calls[-1].happened_at or 0) - (calls[0].happened_at or 0)
    needed_us = sum(_needed_gaps_us(calls, policy))
    return Pace(steps * MINUTE / taken_us, steps * MINUTE / needed_us if needed_us else 0.0)


def _needed_gaps_us(calls: Sequence[Attempt], policy: Policy) -> list[int]:
    """The least time the account's own gates put between each call and the next."""
    pacer = Pacer(policy, Standing())
    usage = Usage()
    rng = random.Random(0)
    settled = sorted(
        (call.outcome.at, index) for index, call in enumerate(calls) if call.outcome is not None
    )
    gaps: list[int] = []
    last_at: Instant | None = None
    for call in calls:
        called_at = call.happened_at or 0
        while settled and settled[0][0] <= called_at:
            at, index = settled.pop(0)
            usage = _settled(usage, calls[index], policy, at)
        ask = _ask(call)
        if last_at is not None:
            verdict = pacer.verdict(last_at, usage, ask)
            until_at = verdict.until_at if isinstance(verdict, Wait) else last_at
            gaps.append((until_at or last_at) - last_at)
        usage = usages.spend(usage, policy, ask, called_at, rng)
        last_at = called_at
    return gaps


def _ask(call: Attempt) -> Ask:
    return Ask(action=call.intent.action, run_id=call.intent.run_id)


def _settled(usage: Usage, call: Attempt, policy: Policy, at: Instant) -> Usage:
    row = call.outcome
    assert row is not None and row.outcome is not None
    outcome = Outcome(OutcomeKind(row.outcome), row.reason, row.code)
    after = usages.settle(usage, _ask(call), outcome, row.intent_at, row.run_id)
    result = consequence(outcome, retries=0, setbacks=usage.setbacks, policy=policy, now=at)
    if result.hold_until_at is not None:
        after = usages.hold(after, result.hold_until_at, "", at if result.slows else None)
    return after
