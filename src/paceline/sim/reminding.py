"""Reminders of a simulated world: as people write them, and the book of what they order.

The book is kept by those who give the orders, so it says what should be, whatever the engine makes
of it. What became of it in the tables is in the diary (``diary.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.instants import Instant


@dataclass(frozen=True, slots=True)
class Reminding:
    """A reminder as its file has it, and whom it goes to."""

    raw: Mapping[str, Any]
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.raw["name"])

    @property
    def accounts(self) -> tuple[str, ...]:
        return tuple(self.raw["accounts"])

    @property
    def zone(self) -> str:
        return str(self.raw["zone"])


@dataclass(frozen=True, slots=True)
class Routine:
    """What a world is reminded of, and what befalls its reminders."""

    made: tuple[Reminding, ...]
    drafts: tuple[Mapping[str, Any], ...] = ()
    """What somebody may change of one, each as ``edit`` takes it."""
    synced: frozenset[str] = frozenset()
    """Accounts that were asked for their groups; of the others nothing is known."""
    dark: tuple[tuple[int, int], ...] = ()
    """After how long nobody runs any more, and for how long, one after the other."""
    behind_us: int = 0
    """By how much the clock of those who give orders is behind the database's."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a reminder from one commit on."""

    page: int
    """The number of the commit."""
    at: Instant
    """By the clock of whoever ordered it."""
    true_at: Instant
    reminding: Reminding
    enabled: bool = True


@dataclass(slots=True)
class Book:
    """Everything that was ordered about reminders, in order."""

    terms: dict[str, list[Terms]] = field(default_factory=lambda: defaultdict(list))
    by_hand: dict[str, dict[str, tuple[int, Instant]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By reminder and key, the run that was fired with it, and when by the clock of whoever did."""
    reassigned: list[tuple[int, str]] = field(default_factory=list)
    """The commits in which what was left of a reminder's runs went to other accounts."""
    looks: int = 0
    """How often people have put things right."""

    def now(self, name: str) -> Terms:
        return self.terms[name][-1]
