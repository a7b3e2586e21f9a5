"""Conversations of a simulated world: who writes how, who answers how, and how hooks behave.

Descriptions and records only. What happens by them is told in ``customers.py``; what must follow
from it is for the checkers to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from paceline.core.instants import MILLISECOND, MINUTE, SECOND, Instant
from paceline.core.opting_out import Wish
from paceline.core.turns import Patience

Span = tuple[int, int]
Strange = Literal["", "group", "automatic", "from_us"]


class Mind(StrEnum):
    """How whoever was set up to answer takes one question."""

    PROMPT = "prompt"
    SLOW = "slow"  # for longer than a lease
    FAILS = "fails"  # this time; the next may go better
    BUSY = "busy"  # and says when to come again
    REFUSES = "refuses"  # this one
    SHUT = "shut"  # to everybody
    SILENT = "silent"  # has nothing to say to it
    BREAKS = "breaks"  # a defect


OPENING, FOLLOW_UP = "news for", "as you wished,"
"""How messages of a campaign begin that people may answer, and those that follow an answer."""

PROMPT_US, SLOW_US = (50 * MILLISECOND, 4 * SECOND), (12 * SECOND, 70 * SECOND)
BUSY_US = (SECOND, 25 * SECOND)


@dataclass(frozen=True, slots=True)
class Talk:
    """What is said in a world."""

    seed: int
    people: tuple[str, ...]
    """Their addresses. Each writes to each account."""
    patience: Mapping[str, Patience]
    """How each account listens, by its name."""
    minds: Mapping[Mind, int] = field(default_factory=lambda: {Mind.PROMPT: 1})
    """Of so many questions so many."""
    rest_us: Span = (5 * SECOND, 90 * SECOND)
    """How long somebody is silent between two bursts."""
    most: int = 4
    """Messages of a burst."""
    gaps: tuple[Span, ...] = ((10 * MILLISECOND, SECOND), (SECOND, 6 * SECOND))
    """Between two of them, one of these each time."""
    stops: float = 0.0
    """How often a burst ends with the wish not to be written to; about as soon they want it
    again."""
    reacts: float = 0.3
    """How often somebody writes back at once to what reached them."""
    hooks: tuple[Span, ...] = ((MILLISECOND, 300 * MILLISECOND),)
    """How long a message takes until it is told, one of these each time."""
    twice: float = 0.2
    """How often something is told once more, a moment or a minute later."""
    together: float = 0.2
    """How often a burst is told in one go, in whatever order."""
    strange: float = 0.0
    """How often something else is told as well: what was said in a group, by a machine, by us."""
    curt: float = 0.0
    """How often all that comes back from somebody is what a machine writes for them, or STOP."""
    within_us: int = 0
    """How long after the campaign's message whoever answers bids its follow-up; 0 where there is
    none."""
    rough: frozenset[str] = frozenset()
    """Accounts whose provider tells time in whole seconds."""
    impatient_us: int = 8 * SECOND
    """How long a provider waits to be told that its report was taken."""
    again_us: Span = (SECOND, 20 * SECOND)
    """How long it then waits before it tells the same again."""
    after_us: int = 2 * MINUTE
    """For how long people go on writing when the bad weather is over."""
    look_every_us: int = 2 * SECOND
    at_once: int = 20
    retries: int = 2


@dataclass(frozen=True, slots=True)
class Wrote:
    """One message, as it was really written."""

    number: int
    at: Instant
    """True time."""
    account: str
    chat: str
    text: str
    """Empty only where ``told_at`` tells it from all others of its conversation."""
    wish: Wish | None = None
    kind: str = "text"
    told_at: Instant = 0
    """When the provider says that it was written."""
    answers: str | None = None
    strange: Strange = ""
    """What makes it nobody's to answer."""

    @property
    def name(self) -> str:
        """As the provider calls it."""
        return f"wamid-{self.number}"


@dataclass(slots=True)
class Telling:
    """One report that a process was given."""

    at: Instant
    process: str
    numbers: tuple[int, ...]
    answered_at: Instant | None = None
    """When it said that it had taken it."""
    missing: tuple[int, ...] = ()
    """What stood in no table in that moment."""


@dataclass(slots=True)
class Asked:
    """One question, as it reached whoever answers."""

    at: Instant
    process: str
    key: str
    account: str
    chat: str
    numbers: tuple[int | None, ...]
    """What was said, in the order in which it was told; None for what nobody had written."""
    answered_at: Instant | None = None
    """When it was answered, if the process still listened."""
    silent: bool = False
    """Whether the answer was that there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Something of ours that has reached somebody."""

    at: Instant
    account: str
    chat: str
    delivery_id: int
    key: str | None
    """Of the turn that it says it answers."""
    numbers: tuple[int, ...]
    """Of the messages that it says it answers; none where a person wrote it."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """A person has answered."""

    at: Instant
    conversation_id: int
    delivery_id: int
    minute: int
    """How many commits had changed a conversation by then."""


__all__ = [
    "BUSY_US",
    "FOLLOW_UP",
    "OPENING",
    "PROMPT_US",
    "SLOW_US",
    "Asked",
    "ByHand",
    "Mind",
    "Reached",
    "Span",
    "Strange",
    "Talk",
    "Telling",
    "Wrote",
]
