"""What is asked of whoever answers people: a model, a service, a table of words.

A responder has effects at most outside of Paceline: what it says is sent by the account's lane, not
by itself. It may be asked the same again after a crash, under the same key; only one of its answers
is ever sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from paceline.core.enclosures import Enclosed
from paceline.core.errors import PacelineError
from paceline.core.instants import Instant


class Said(NamedTuple):
    """One message of a conversation."""

    by: Literal["them", "us"]
    text: str
    at: Instant
    kind: str = "text"
    """As the provider calls it: text, image, audio, …"""
    files: tuple[Enclosed, ...] = ()


class Burst(NamedTuple):
    """Everything somebody has said since they were answered last, and what came before."""

    key: str
    """The same however often this burst is answered."""
    account: str
    chat: str
    """Who it is, as a target is written."""
    said: tuple[Said, ...]
    """At least one, in order."""
    before: tuple[Said, ...] = ()
    """What was said on both sides before that, the oldest first."""
    fields: Mapping[str, Any] = {}
    """What is known of the person."""

    @property
    def text(self) -> str:
        """All of it as one text."""
        return "\n".join(one.text for one in self.said if one.text)


class Answer(NamedTuple):
    """What is to be said; with no text, nothing is."""

    text: str
    note: str = ""
    """For operators: which rule, how many tokens."""


class ResponderFailed(PacelineError):
    """No answer this time; the same may be asked again."""

    def __init__(self, reason: str, again_us: int | None = None) -> None:
        """``again_us`` is how long the responder itself asked to be left alone."""
        super().__init__(reason)
        self.again_us = again_us


class ResponderRefused(PacelineError):
    """There will be no answer until a person has seen to it: no credit left, a key that is not
    taken, a question that will not be answered."""

    def __init__(self, reason: str, *, everybody: bool = False) -> None:
        """``everybody`` where it is not about this question: nobody will be answered."""
        super().__init__(reason)
        self.everybody = everybody


class Responder(Protocol):
    """Answers one burst at a time; many at once."""

    async def answer(self, burst: Burst) -> Answer:
        """``ResponderFailed`` or ``ResponderRefused`` where there is none. Bounded in time."""
        ...

    async def close(self) -> None: ...
