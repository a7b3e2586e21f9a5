"""What the driver asks of a connection to WhatsApp, and what it is told by it.

Plain values and one protocol, so that everything above it can be tried without WhatsApp. The real
one is in ``process.py``; what its errors mean is read elsewhere (``errors.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from paceline.core.enclosures import Enclosed
from paceline.core.instants import Instant

FileKind = Literal["image", "video", "document"]


class Uploaded(NamedTuple):
    """A file at WhatsApp, encrypted: where it lies, and the key that opens it."""

    url: str
    path: str
    key: bytes
    sha256: bytes
    encrypted_sha256: bytes
    length: int
    thumbnail: bytes = b""
    """A small JPEG that is shown until the file itself is there."""
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """One message as it is to be sent: a text, or a file with its caption."""

    text: str
    kind: FileKind | None = None
    mime: str = ""
    name: str = ""
    file: Uploaded | None = None
    uploaded_at: Instant = 0


class WireGroup(NamedTuple):
    """What WhatsApp says about a group that the account is a member of."""

    jid: str
    name: str
    size: int | None = None
    may_send: bool = True


# ------------------------------------------------------------------ what is told unasked

StandingState = Literal[
    "ready", "offline", "unpaired", "logged_out", "replaced", "banned", "outdated", "ended"
]


class Standing(NamedTuple):
    """How the connection stands as a whole.

    ``offline`` comes back by itself; ``ended`` does not, but another connection may be made.
    """

    state: StandingState
    reason: str = ""
    code: str = ""
    lasts_us: int | None = None
    """How long a ban lasts, where WhatsApp says so."""
    own: str = ""
    """The account's own number, once it is ready: ``+49…``."""


class Came(NamedTuple):
    """A message that came in, or one that the account sent from another device."""

    id: str
    chat: str
    sender: str
    text: str
    kind: str
    at: Instant
    from_us: bool = False
    group: bool = False
    files: tuple[Enclosed, ...] = ()
    mark: str = ""
    """By which it is confirmed: until then it is kept, and told again."""
    also: tuple[str, ...] = ()
    """What else whoever wrote it is called."""


class Composing(NamedTuple):
    """Somebody is writing to the account, or speaking."""

    chat: str


class Acknowledged(NamedTuple):
    """What became of messages that were sent."""

    ids: tuple[str, ...]
    state: Literal["delivered", "read", "failed"]
    at: Instant


class GroupChanged(NamedTuple):
    """What was known about a group may not hold any more."""

    jid: str


class QrCode(NamedTuple):
    """What a phone has to scan, for the next twenty seconds; the first one lives for a minute."""

    code: str


class PairingOver(NamedTuple):
    """How an attempt at pairing ended. After a success the connection becomes ready."""

    result: str
    """``success``, ``timeout``, ``error`` or what WhatsApp calls it."""
    reason: str = ""


class Dropped(NamedTuple):
    """So many reports came faster than they were taken, and are lost."""

    reports: int


WireEvent = (
    Standing | Came | Composing | Acknowledged | GroupChanged | QrCode | PairingOver | Dropped
)

Listener = Callable[[WireEvent], None]
"""Told of everything that happens, on the loop. It must not wait."""


# ------------------------------------------------------------------ what can go wrong


class WireError(Exception):
    """A call that came to nothing."""


class LibraryError(WireError):
    """WhatsApp, or the library that speaks to it, said no; in its own words."""


class WireLost(WireError):
    """The connection itself is gone, or does not answer.

    ``handed_over`` says whether the call may have got through before that.
    """

    def __init__(self, reason: str, *, handed_over: bool) -> None:
        super().__init__(reason)
        self.handed_over = handed_over


class WireRefused(WireError):
    """No connection can be made, and none could a moment later.

    ``code`` is ``not-installed`` or ``in-use``.
    """

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


# ------------------------------------------------------------------ the connection


class WhatsAppWire(Protocol):
    """One connection of one account. Calls raise ``WireError`` and nothing else."""

    async def connect(self) -> None:
        """Begin to connect. What comes of it is told: ready, unpaired, logged out, …"""
        ...

    async def pair_by_phone(self, phone: str) -> str:
        """The code to type into that phone, for a connection that has told it is unpaired."""
        ...

    async def groups(self) -> list[WireGroup]: ...

    async def group(self, jid: str) -> WireGroup: ...

    async def look_up(self, phone: str) -> str | None:
        """The id under which WhatsApp knows a number; None if it does not."""
        ...

    async def upload(self, kind: FileKind, content: bytes) -> Uploaded: ...

    async def send(self, jid: str, draft: Draft) -> str:
        """The id of the message, once WhatsApp has it.

        Calling this off does not stop a message that was handed over; ``abort`` does.
        """
        ...

    async def confirm(self, mark: str) -> None:
        """All messages up to this one are written down, and need not be told again."""
        ...

    async def be_online(self) -> None:
        """Show the account as online: only then WhatsApp tells who is typing."""
        ...

    async def close(self) -> None:
        """End it in good order. Whatever was still under way is lost."""
        ...

    def abort(self) -> None:
        """End it at once: what is under way certainly goes no further."""
        ...


MakeWire = Callable[[Path, Listener], WhatsAppWire]
"""Makes a connection for the session kept in a file."""
