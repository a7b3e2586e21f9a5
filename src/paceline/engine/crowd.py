"""Lanes that are late together: they step out of each other's way, once.

A lane counts its gap from its last call, so lanes that were held up by the same thing (a start, a
slow disk, a busy machine) fall due at the same instant ever after, stand in line for it each time,
and each time all but the first are late. What is lost is never caught up with, since no gap may be
shorter than it is. So whoever was late in a crowd is called a little later the next time, by its
place in the line; from then on they come one after the other, and nobody waits.
"""

from __future__ import annotations

from paceline.core.instants import MILLISECOND, Instant

LATE_US = 4 * MILLISECOND
"""What anybody may be late by: others have their turn as well."""
TOGETHER_US = 100 * MILLISECOND
STEP_US = MILLISECOND // 2
"""A little more than a message takes, so that a line that was spread out does not form again."""
FARTHEST_US = 250 * MILLISECOND


class Crowd:
    """Shared by all lanes of a process."""

    __slots__ = ("_late", "_slot")

    def __init__(self) -> None:
        self._slot = 0
        self._late = 0

    def step_back_us(self, due_at: Instant, called_at: Instant) -> int:
        """By how much a lane steps back before its next call, whose last one was due then and made
        at ``called_at``; nothing where it was on time, or the first that was not."""
        if called_at - due_at < LATE_US:
            return 0
        slot = called_at // TOGETHER_US
        if slot != self._slot:
            self._slot, self._late = slot, 0
        place, self._late = self._late, self._late + 1
        return min(place * STEP_US, FARTHEST_US)


class Place:
    """One lane's place among the others."""

    __slots__ = ("_back_us", "_crowd", "_due_at")

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._due_at: Instant | None = None
        self._back_us = 0

    def stepped_back(self, opens_at: Instant) -> Instant:
        """When to call, where the account's own pace lets it go at ``opens_at``."""
        self._due_at = opens_at + self._back_us
        return self._due_at

    def called(self, at: Instant | None) -> None:
        """The call was made, or not after all."""
        due_at, self._due_at = self._due_at, None
        if due_at is not None and at is not None:
            self._back_us = self._crowd.step_back_us(due_at, at)
