"""Counting what an observer is told, and passing the counts on from one process to another.

Every message passes through here several times, in the event loop's own thread; so counting is a
plain addition. What a worker has counted since it last said so goes to whoever started it, which
adds it to its own and answers for all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DeliveryState

_LATENCY = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COMMIT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_GROUP = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class Histogram:
    """How often a value was at most so large."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def take(self) -> list[float]:
        """The counts and the total, which begin anew."""
        taken = [*self.counts, self.total]
        self.counts, self.total = [0] * len(self.counts), 0.0
        return taken

    def add(self, taken: Sequence[float]) -> None:
        *counts, total = taken
        self.counts = [own + int(other) for own, other in zip(self.counts, counts, strict=True)]
        self.total += total


class Tally:
    """An observer that counts."""

    def __init__(self) -> None:
        self.intents: Counter[str] = Counter()
        self.attempts: Counter[tuple[str, OutcomeKind]] = Counter()
        self.moves: Counter[DeliveryState] = Counter()
        self.crashes: Counter[str] = Counter()
        self.lanes = 0
        self.latency = Histogram(_LATENCY)
        self.commits = Histogram(_COMMIT)
        self.groups = Histogram(_GROUP)

    # ------------------------------------------------------------------ as an observer

    def intended(self, account: str, delivery_id: int, at: Instant) -> None:
        self.intents[account] += 1

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None:
        self.attempts[account, outcome.kind] += 1
        self.moves[state] += 1
        if latency_us is not None:
            self.latency.observe(latency_us / SECOND)

    def lanes_running(self, count: int) -> None:
        self.lanes = count

    def lane_crashed(self, account: str) -> None:
        self.crashes[account] += 1

    def committed(self, units: int, took_us: int) -> None:
        self.commits.observe(took_us / SECOND)
        self.groups.observe(units)

    # ------------------------------------------------------------------ between processes

    def take(self) -> dict[str, Any]:
        """What was counted since this was last asked, in a form that JSON can carry."""
        taken: dict[str, Any] = {
            "intents": dict(self.intents),
            "attempts": [[name, kind.value, n] for (name, kind), n in self.attempts.items()],
            "moves": {state.value: n for state, n in self.moves.items()},
            "crashes": dict(self.crashes),
            "latency": self.latency.take(),
            "commits": self.commits.take(),
            "groups": self.groups.take(),
        }
        for counter in (self.intents, self.attempts, self.moves, self.crashes):
            counter.clear()
        return taken

    def add(self, taken: Mapping[str, Any]) -> None:
        """What another process has counted. How many lanes it runs is not among it: that is no
        number to be added up over time."""
        self.intents.update(taken["intents"])
        self.attempts.update({(name, OutcomeKind(kind)): n for name, kind, n in taken["attempts"]})
        self.moves.update({DeliveryState(state): n for state, n in taken["moves"].items()})
        self.crashes.update(taken["crashes"])
        self.latency.add(taken["latency"])
        self.commits.add(taken["commits"])
        self.groups.add(taken["groups"])
