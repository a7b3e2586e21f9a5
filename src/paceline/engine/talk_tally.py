"""Counting what becomes of conversations, for whoever watches a service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from paceline.core.instants import SECOND
from paceline.engine.tally import Histogram

_ANSWERED = (1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600, 1_800)


class TalkTally:
    """What one process has done since it began, and how all of them stand."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        """By the way to answer, and what came of it: answered, nothing to say, handed over."""
        self.took = Histogram(_ANSWERED)
        """From the first message of a turn to its answer, in seconds."""
        self.acquired = 0
        self.already_held = 0
        self.stale_cleaned = 0
        self.turns: dict[str, int] = {}
        """Active ones by their state, in all processes together."""
        self.waiting: dict[str, int] = {}
        """Conversations where something waits, by who is to answer."""
        self.oldest_s: dict[str, float] = {}
        """How long the oldest of it waits."""

    def answered(self, way: str, outcome: str, took_us: int | None = None) -> None:
        self.answers[way, outcome] += 1
        if took_us is not None:
            self.took.observe(max(took_us, 0) / SECOND)

    def stands(
        self, turns: Mapping[str, int], waiting: Mapping[str, int], oldest_s: Mapping[str, float]
    ) -> None:
        self.turns, self.waiting, self.oldest_s = dict(turns), dict(waiting), dict(oldest_s)
