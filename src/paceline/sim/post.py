"""Mail of a simulated world: how letters are taken, what comes back, and how mailboxes fail.

Descriptions and records only. What happens by them is told in ``post_office.py``; what must follow
from it is for the checkers to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine.ports import News


class Manner(StrEnum):
    """How a house takes letters for one of its people."""

    WELL = "well"
    GREY = "grey"  # not from strangers; a few minutes later they are none any more
    GONE = "gone"  # there is no such person, and it says so at once
    FULL = "full"  # for a while
    LOST = "lost"  # takes it, and finds out later that there is no such person
    STUFFED = "stuffed"  # takes it, and finds out later that it has no room


class Reaction(StrEnum):
    """What somebody does about a letter that has reached them."""

    NOTHING = "nothing"
    ANSWER = "answer"
    NOTE = "note"  # nobody there, says a machine
    COMPLAINT = "complaint"
    CLICK = "click"  # on the link that unsubscribes


TroubleKind = Literal["away", "refused", "silent"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A stretch in which a mailbox lets nobody read: since the world began, and for how long."""

    after_us: int
    lasts_us: int
    kind: TroubleKind


SOON, LATER, MUCH_LATER = (SECOND, 20 * SECOND), (2 * MINUTE, HOUR), (2 * HOUR, 15 * HOUR)
"""After how long something comes back: before the sender has written down that it went out, the
same day, or when everybody has gone home."""


@dataclass(frozen=True, slots=True)
class Post:
    """What befalls letters in a world."""

    seed: int
    manners: Mapping[Manner, int]
    """Of so many people so many."""
    reactions: Mapping[Reaction, int]
    returns: tuple[tuple[int, int], ...] = (SOON, SOON, LATER, LATER, MUCH_LATER)
    """After how long things come back, one of these each time."""
    throttled: float = 0.0
    """How often an account is told to slow down, as a chance per letter."""
    forged: int = 0
    """How many reports come that somebody has made up."""
    troubles: Mapping[str, tuple[Trouble, ...]] = field(default_factory=dict)
    """By account."""
    at_once: int = 4
    """How many pieces of mail a mailbox gives away at a time."""
    open_us: int = 0
    """For how long there is power, each day from the hour of the beginning on; 0: day and night."""
    look_every_us: int = 10 * MINUTE
    wait_us: int = 10 * MINUTE
    lease_us: int = 30 * MINUTE
    """Of whoever reads a mailbox."""


MailKind = Literal["hard", "soft", "delayed", "complaint", "answer", "note", "forged"]


@dataclass(frozen=True, slots=True)
class Mail:
    """One piece of mail as it lies in a mailbox."""

    number: int
    """Its place there, from 1."""
    at: Instant
    kind: MailKind
    target: str
    """Whom the letter was for that it is about."""
    key: str
    """Of that letter; of a forged one whatever it says."""
    news: News

    @property
    def delivery_id(self) -> int:
        return int(self.key.rsplit("-", 2)[1])


@dataclass(slots=True)
class Click:
    """Somebody unsubscribes."""

    at: Instant
    target: str
    link: str
    answered_at: Instant | None = None
    """When the page said that it was done."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a mailbox told whoever wanted to read it."""

    at: Instant
    by: object
    trouble: str
    """Empty where it let them."""


@dataclass(slots=True)
class Box:
    """One mailbox."""

    mail: list[Mail] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)


def number_in(cursor: str) -> int | None:
    """Up to which piece somebody has read; None where nobody has begun to."""
    return int(cursor) if cursor else None


def drawn(chance: float, among: Mapping[Manner, int] | Mapping[Reaction, int]) -> str:
    """One of several, each as likely as it is frequent."""
    left = chance * sum(among.values())
    for name, share in among.items():
        left -= share
        if left < 0:
            return name
    raise AssertionError("a chance is less than 1")


__all__ = [
    "Answered",
    "Box",
    "Click",
    "Mail",
    "MailKind",
    "Manner",
    "Post",
    "Reaction",
    "Trouble",
    "drawn",
    "number_in",
]
