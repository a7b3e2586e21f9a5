"""What a driver tells about itself so that the same campaigns can be played on it.

Each runs through the engine, the store and real connections to the driver's fake. What a driver can
be asked, and how its provider refuses, loses and forgets, is said in its ``Case``; what has to come
of it is said once, in the tests here. What only one driver has is in its own ``test_engine.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from paceline.core.model import Part, Target
from tests.providers import live
from tests.providers.loopback import Scripted, running
from tests.providers.remote import NOTE, PEOPLE

T = TypeVar("T")

Told = Callable[[Any], None]
"""Tells a fake something."""


def answering(*answers: Scripted) -> Told:
    """So are the next messages answered."""
    return lambda fake: fake.script.extend(answers)


class Doubt(NamedTuple):
    """A message that went out, and whose answer was lost."""

    name: str
    lost: Scripted
    action: str | None = None
    """Another one than the driver's usual."""
    fake: Mapping[str, Any] = {}
    """What else is so at the provider."""


class Refusal(NamedTuple):
    """Something after which an account is suspended."""

    name: str
    told: Told
    reason: str
    sends: int | None = None
    """How often anything is sent before it is found out, where that is always the same."""


class Trouble(NamedTuple):
    """Something that passes, and that is no message's own."""

    name: str
    told: Told
    met: Callable[[Any], bool]
    """Whether somebody has run into it."""
    sends: int


@dataclass(frozen=True)
class Files:
    """A file that two campaigns send, and that somebody loses between them."""

    lose: Callable[[Any], None]
    """Called with the world."""
    part: Callable[[str], Part] = lambda media: Part("media", "x", media=media)
    uploads: int | None = None
    """How often it is uploaded in all, where that is a call of its own."""
    connect: tuple[Any, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else is said of the campaigns."""
    ready: Told = lambda fake: None
    check: Callable[[Any], None] = lambda fake: None


@dataclass(frozen=True)
class Case:
    """A driver, and all that these campaigns have to know of it."""

    name: str
    fake: Callable[[], Any]
    world: Callable[[str, Any], live.LiveWorld]
    people: list[Target] = field(default_factory=lambda: PEOPLE)
    parts: tuple[Part, ...] = NOTE
    action: str = "message"
    ready: Told = lambda fake: None
    """What has to be there before anything can be sent."""
    hides: str = "unlisted"
    """What the fake is told so that it shows nobody what it took."""
    asked: Callable[[Any], bool] = lambda fake: False
    """Whether somebody has looked for a message."""
    doubts: tuple[Doubt, ...] = ()
    crashes: bool = False
    """Whether a crash is played as well; it takes seconds."""
    holds: bool = True
    """Whether what cannot be found is held for a person, and nothing else can tell of it."""
    resent: Callable[[Any], None] | None = None
    """What is true of a message that was sent again by choice."""
    takes_twice: bool = False
    """Whether its provider takes such a message a second time."""
    refusals: tuple[Refusal, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    files: Files | None = None

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def live(self, folder: Path) -> Iterator[Any]:
        """A world with the provider's fake, and nobody at it yet."""
        with running(self.fake()) as fake:
            self.ready(fake)
            yield self.world(f"sqlite:///{folder / 'live.db'}", fake)

    def campaign(self, world: Any, count: int | None = None, **more: Any) -> None:
        """To everybody, or only to so many."""
        said = {"targets": self.people[:count], "parts": self.parts, "action": self.action} | more
        world.campaign(**said)

    def hide(self, fake: Any, hidden: bool) -> None:
        setattr(fake, self.hides, hidden)
