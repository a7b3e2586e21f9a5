"""The judge of the pace: a naive look at instants, which knows nothing of how they came about."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.core.grammar import Rate
from paceline.core.instants import Instant


def overshoot(instants: Sequence[Instant], rate: Rate) -> float:
    """By how many sends the worst of all intervals is over ``burst + rate × time``; 0 if none is.

    Every interval that could be the worst begins and ends with a send, so all of those are tried.
    """
    ordered = sorted(instants)
    worst = 0
    for first, began_at in enumerate(ordered):
        for last in range(first, len(ordered)):
            over = (last - first + 1 - rate.burst) * rate.per_us
            worst = max(worst, over - rate.count * (ordered[last] - began_at))
    return worst / rate.per_us


def allowed(rate: Rate, lanes: int, us: int) -> float:
    """What so many lanes may send in so long once they are under way."""
    return lanes * rate.count * us / rate.per_us
