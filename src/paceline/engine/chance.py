"""Chance for lanes: many sources that take no room, each with an order of its own."""

from __future__ import annotations

import random


class Draws:
    """Draws that follow from a seed and from how many there were before.

    A generator keeps two and a half kilobytes of state, which ten thousand lanes would hold only to
    draw a gap now and then. So one is made for each draw, and forgotten.
    """

    __slots__ = ("_count", "_seed")

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def randint(self, low: int, high: int) -> int:
        """A whole number between the two, both included."""
        self._count += 1
        return random.Random(f"{self._seed}/{self._count}").randint(low, high)
