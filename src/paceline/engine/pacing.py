"""An account's own pace, as a lane reckons with it that has nothing to do yet."""

from __future__ import annotations

from paceline.core.model import Wait
from paceline.engine.agenda import RunQueue
from paceline.engine.memory import LaneMemory
from paceline.engine.putting_off import plain

PACE_GATES = frozenset({"rate", "spacing"})
"""Gates of an account's own pace."""


def held_by_pace(memory: LaneMemory, queue: RunQueue) -> Wait | None:
    """What the next delivery of a run waits for when it falls due, if that is the pace: a lane that
    is woken before that lets it go would only go to sleep again."""
    paced_at = queue.paced_at
    if paced_at is None or queue.usual is None:
        return None
    verdict = memory.pacer.verdict(paced_at, memory.usage, plain(queue.usual))
    return verdict if isinstance(verdict, Wait) and verdict.gate in PACE_GATES else None
