"""How long it takes to write an intent: so much earlier it is begun, to call on the dot.

A lane that began to write when the call may be made would make every call late by one commit, and
at forty a minute that is one message in a hundred. Learned from the commits themselves, shared by
all lanes of a process, and bounded: a slow disk costs pace, never more than a moment of foresight.
What nine commits in ten do not exceed is allowed for: one that is done sooner is waited for, but
whoever is late has lost that much for good.
"""

from __future__ import annotations

from paceline.core.instants import MILLISECOND

LONGEST_US = 200 * MILLISECOND
LONGEST_GUARD_US = 3 * MILLISECOND
GUARD_SHARE = 8
RISE, FALL = 4, 32
"""One in so many: how fast what was learned gives way to what takes longer, and to what does not.
Between the two it comes to rest where one in nine takes longer."""


class Lead:
    """The time from asking for an intent to knowing that it is stored, as it is at most times."""

    __slots__ = ("us",)

    def __init__(self) -> None:
        self.us = 0

    @property
    def guard_us(self) -> int:
        """How much later than it has begun a call may really leave: many a driver lets others have
        their turn before it writes. Where commits take time there are others, and where they take
        none there are none."""
        return min(self.us // GUARD_SHARE, LONGEST_GUARD_US)

    def learn(self, took_us: int) -> None:
        more_us = min(took_us, LONGEST_US) - self.us
        self.us += more_us // (RISE if more_us > 0 else FALL)
