"""The nouns of a plan: what wants a slot, who may give it one, and what comes of it.

Plain values only; who is given which slot is worked out in ``plan.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.core.model import Ask, Standing
from paceline.core.policy import Policy
from paceline.core.usage import Usage

Rank = tuple[bool, int, bool, Instant, int]
"""Who comes first: direct messages, the higher priority, a firing that has begun, the window that
closes first; then the number of a firing, which has its turn to its end. Those of the same rank
share."""


class Want(NamedTuple):
    """A delivery that is to be given a slot."""

    key: int
    ask: Ask
    target: str = ""
    """Whom it is for: what they were sent under this name is what it has to reckon with."""
    begun: bool = False
    """Whether it was tried before: those go ahead of the others of their run."""
    follows: int | None = None
    """The key of the one before it in the same queue, after which it goes, if that goes."""
    after_us: int = 0
    """How long after that one, and not before its own instant."""
    also: tuple[str, ...] = ()
    """Under which names besides ``target`` others know whom it is for: they count it as well."""
    new_to: tuple[int, ...] = ()
    """Accounts that have never written to it; told only of those that may write to nobody new."""
    turn: int = 0
    """Whose turn it takes: those of a queue that have no minutes yet take turns by this, step by
    step. The same for all where each has its own, and all go by these."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in one run, in its order, for one account or for several that share it."""

    run_id: int
    rank: Rank
    wants: Sequence[Want]
    accounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seat:
    """An account as it stands when the plan begins."""

    account_id: int
    policy: Policy
    standing: Standing = field(default_factory=Standing)
    usage: Usage = field(default_factory=Usage)


class Slot(NamedTuple):
    """When a delivery starts, from which account, and why not before."""

    run_id: int
    key: int
    account_id: int
    at: Instant
    done_at: Instant
    """When its last part goes out."""
    gate: str
    """What it waited for right before; empty if for nothing."""
    bound_by: str
    """What has cost it most of the time since the beginning; empty if nothing has."""


class Never(NamedTuple):
    """A delivery that can not go out, unless somebody changes something."""

    run_id: int
    key: int
    gate: str
    why: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Every delivery is in exactly one of the two."""

    slots: list[Slot]
    """In the order in which they start."""
    nevers: list[Never]
