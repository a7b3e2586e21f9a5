"""What the engine asks of the store about when deliveries are due, many at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from paceline.core.instants import Instant


class Timetable(Protocol):
    """``scheduled_at`` is what a launch has planned and stays; ``due_at`` is how it now stands."""

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
        """Move everything that is ready and due earlier to ``until_at``; how many.

        Nothing is moved where there are more than ``most``: what nobody has laid out keeps its
        order by staying as it is.
        """
        ...

    def recall(self, account_id: int, at: Instant) -> int:
        """Let what was put off be due again as it was planned, or at ``at`` if that is over."""
        ...
