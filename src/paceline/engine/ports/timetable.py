"""What the engine asks of the store about when deliveries are due, many at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from paceline.core.instants import Instant

PUT_OFF_WORDS = (
    "Daily cap",
    "Weekly cap",
    "Outside business hours",
    "Outside send window",
)
"""How the reason begins of what a gate has put off, and not a person or a plan."""


class Timetable(Protocol):
    """``scheduled_at`` is what a launch has planned and stays; ``due_at`` is how it now stands."""

    def hold(self, account_ids: Iterable[int]) -> None:
        """Keep everybody else away from these accounts until this commits. Whoever is about to lay
        out many deliveries does it first, or two of them could wait for each other."""
        ...

    def plan(self, slots: Iterable[tuple[int, Instant]]) -> int:
        """Write down what a launch has planned: both instants, of what is ready and was never
        tried; how many."""
        ...

    def lay(self, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        """Lay them anew: only when they are due changes, and why; how many."""
        ...

    def put_off(
        self, account_id: int, run_id: int, until_at: Instant, reason: str, most: int
    ) -> int:
        """Move everything that is ready, due earlier and was never tried to ``until_at``; how many.

        Nothing is moved where there are more than ``most``: what nobody has laid out keeps its
        order by staying as it is.
        """
        ...

    def recall(self, account_id: int, at: Instant) -> int:
        """Let what a gate has put off be due again as it was planned, or at ``at`` if that is
        over."""
        ...
