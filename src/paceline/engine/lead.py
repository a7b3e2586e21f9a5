"""How long it takes to write an intent: so much earlier it is begun, to call on the dot.

A lane that began to write when the call may be made would make every call late by one commit, and
at forty a minute that is one message in a hundred. Learned from the commits themselves, shared by
all lanes of a process, and bounded: a slow disk costs pace, never more than a moment of foresight.
"""

from __future__ import annotations

from paceline.core.instants import MILLISECOND

LONGEST_US = 200 * MILLISECOND
LONGEST_GUARD_US = 3 * MILLISECOND
SHARE = 8
"""One in so many: how fast what was learned gives way to what is new."""


class Lead:
    """The usual time from asking for an intent to knowing that it is stored."""

    __slots__ = ("us",)

    def __init__(self) -> None:
        self.us = 0

    @property
    def guard_us(self) -> int:
        """How much later than our last look a driver may really begin: another thread may have its
        turn in between. Where commits take time there are threads, and where they take none there
        are none."""
        return min(self.us // SHARE, LONGEST_GUARD_US)

    def learn(self, took_us: int) -> None:
        self.us += (min(took_us, LONGEST_US) - self.us) // SHARE
