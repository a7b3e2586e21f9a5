"""What a driver tells about itself so that the one suite can be played on it.

A driver's ``Case`` names what its own tables hold and what it can do; its ``Stage`` is the other
side: an account at an imaginary provider that can be told how to answer, and asked what it got.
The cases are listed in ``cases.py``; a new driver is one more of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from paceline.core.instants import Instant
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Driver, Message, News, Provider, Webhooks

T = TypeVar("T")

CONTENT = b"\r\n--%PDF\x00\xff\r\n"
"""A file that no format it is packed into may change."""


class Seen(NamedTuple):
    """A message that reached the other side, as far as the wire shows it."""

    target: str
    text: str
    file: bytes | None = None
    key: str | None = None


class Loss(NamedTuple):
    """A way in which the answer to a send does not come."""

    name: str
    kind: OutcomeKind
    takes: bool
    """Whether the message went out all the same."""
    silent: bool = False
    """Whether somebody has to give up waiting."""


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("nobody there", OutcomeKind.UNAVAILABLE, takes=False),
        Loss("reset while writing", OutcomeKind.UNKNOWN, takes=False),
        Loss("hung up, taken", OutcomeKind.UNKNOWN, takes=True),
        Loss("hung up, not taken", OutcomeKind.UNKNOWN, takes=False),
        Loss("cut short, taken", OutcomeKind.UNKNOWN, takes=True),
        Loss("silent, taken", OutcomeKind.UNKNOWN, takes=True, silent=True),
        Loss("silent, not taken", OutcomeKind.UNKNOWN, takes=False, silent=True),
    )
}
"""Before the first byte was written it is safe to try again; after it, the message may be out."""


class Stage(Protocol):
    """An account at an imaginary provider, and that provider itself."""

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def provider(self) -> Provider: ...

    def play(self, scene: Callable[[Driver], Awaitable[T]], *, hasty: bool = False) -> T:
        """Open the account, let the scene use it, close it. Whoever is hasty waits for an answer
        only as long as a test can."""
        ...

    def restart(self) -> None:
        """What this process knew is forgotten; what the provider knows is not."""
        ...

    def now(self) -> Instant: ...

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        """Something to send; with a handle, the file that was uploaded under it."""
        ...

    def answer(self, row: str) -> None:
        """Let the next send be answered with this row of the driver's table."""
        ...

    def lose(self, loss: Loss) -> None:
        """Let the answer to the next send be lost."""
        ...

    def mute(self) -> None:
        """From now on, whoever asks for something is not told."""
        ...

    def sent(self) -> list[Seen]:
        """Everything that went out."""
        ...

    def uploads(self) -> int:
        """How many files were taken."""
        ...

    def forget_uploads(self) -> None:
        """The provider no longer has any file."""
        ...


class Sample(NamedTuple):
    """A report as the provider sends it, and what it says."""

    name: str
    body: Any
    news: list[News]


class Proof(NamedTuple):
    """What comes with a report to show whose it is."""

    headers: dict[str, str]
    query: dict[str, str]


@dataclass(frozen=True)
class Reports:
    """What there is to know about a provider's webhooks."""

    webhooks: Callable[[], Webhooks]
    settings: Mapping[str, Mapping[str, Any]]
    """An account's settings by the way in which reports are proved."""
    unproved: Mapping[str, Any]
    """The settings of an account for which no secret was agreed upon."""
    prove: Callable[[str, Mapping[str, Any], bytes], Proof]
    """What the provider sends along with a body, by that way and those settings."""
    samples: tuple[Sample, ...]
    nothing: tuple[Any, ...]
    """Reports of no interest: they are understood, and say nothing."""
    challenges: tuple[tuple[dict[str, str], str | None], ...] = ()
    """Handshakes, each with the answer it is to get."""
    names_ours: bool = True
    """Whether a receipt says our own name of the message, and not only the provider's."""
    states: frozenset[str] = frozenset({"sent", "delivered", "read", "failed"})
    """How far of our own messages it reports."""
    groups: bool = True
    """Whether it reports what is said in groups."""
    standings: bool = True
    """Whether it reports how the account stands."""
    enclose: Callable[[str, Mapping[str, Any], Any], Any] = lambda way, settings, body: body
    """The body of a report, by the way in which it is proved: some have the proof in it."""


@dataclass(frozen=True)
class Case:
    """A driver, and all that the suite has to know of it."""

    name: str
    stage: Callable[[], AbstractContextManager[Stage]]
    rows: Mapping[str, OutcomeKind]
    """The driver's own table of errors: every row by a name of its own, with what it becomes."""
    losses: frozenset[str] = frozenset(LOSSES)
    """Those of the ``LOSSES`` that can happen to it."""
    media: bool = True
    """Whether it can send files."""
    group: str | None = None
    """A group that the account is a member of, where it can write to groups."""
    secret: str | None = None
    """The key that nobody may see, where the driver has one."""
    reports: Reports | None = None
    speaks_http: bool = False
    """Whether it is an HTTP API behind which anybody's pages may turn up."""
    shut_out: OutcomeKind = OutcomeKind.UNAUTHORISED
    """What a 401 in nobody's own words is taken for: a provider that never says no without a reason
    of its own was not the one who said it."""
    actions: frozenset[str] = field(default_factory=lambda: frozenset({"message"}))
    """What it can send, as its documentation says."""

    def __str__(self) -> str:
        return self.name
