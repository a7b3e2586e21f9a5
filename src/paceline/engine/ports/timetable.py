"""What the engine asks of the store about when deliveries are due, many at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant

PUT_OFF_WORDS = (
    "Daily cap",
    "Weekly cap",
    "Outside business hours",
    "Outside send window",
)
"""How the reason begins of what a gate has put off, and not a person or a plan."""

IN_LINE_WORDS = "; no free slot in time"
"""How the reason goes on of what was put off and stands in line: planned for no minute, and first
when the gate opens."""


class Later(NamedTuple):
    """A delivery that a gate has put off."""

    key: int
    was_at: Instant
    """When it was due as it was looked at."""
    at: Instant
    why: str


class Timetable(Protocol):
    """``scheduled_at`` is what a launch has planned and stays; ``due_at`` is how it now stands.
    What follows another one is due at no instant until that was sent: until then a new plan changes
    the minute that was planned."""

    def hold(self, account_ids: Iterable[int]) -> None:
        """Keep everybody else away from these accounts until this commits. Whoever is about to lay
        out many deliveries does it first, or two of them could wait for each other."""
        ...

    def plan(self, slots: Iterable[tuple[int, Instant]]) -> int:
        """Write down what a launch has planned: both instants, of what is ready and was never
        tried; how many."""
        ...

    def expect(self, slots: Iterable[tuple[int, Instant]]) -> int:
        """Write down the minutes planned for what follows another one and is not released yet,
        before which it will not be due; how many."""
        ...

    def lay(self, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        """Lay them anew: only when they are due changes, and why; how many. What moves by no more
        than a second stays as it is."""
        ...

    def share(self, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        """The same for what makes room for others: what a limit had put off before says so first,
        and what is due no later than it was planned says nothing."""
        ...

    def put_off(self, account_id: int, moves: Iterable[Later]) -> int:
        """Move what is on this account, ready, was never tried and is due as it was; how many."""
        ...

    def put_off_pooled(self, moves: Iterable[Later]) -> int:
        """The same of what is nobody's. What an account is about to take is left to it."""
        ...

    def recall(self, account_id: int, at: Instant) -> int:
        """Let what a gate has put off be due again as it was planned, or at ``at`` if that is
        over."""
        ...

    def recall_pooled(self, account_id: int, at: Instant) -> int:
        """The same of what is nobody's in the pools of this account."""
        ...
