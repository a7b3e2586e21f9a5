"""What the engine asks of the store about what comes in."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

from paceline.core.enclosures import Enclosed
from paceline.core.instants import Instant
from paceline.engine.ports.webhooks import Inbound


class Received(NamedTuple):
    """A message that came in, as it is kept."""

    id: int
    account_id: int
    provider_id: str
    chat: str
    sender: str
    subject: str
    text: str
    kind: str
    automatic: bool
    from_us: bool
    delivery_id: int | None
    """What it answers."""
    at: Instant
    received_at: Instant
    conversation_id: int | None = None
    turn_id: int | None = None
    """The turn that it was answered in; None where it waits, or is nobody's to answer."""
    files: tuple[Enclosed, ...] = ()


class Inbox(Protocol):
    """Messages that came in, each once."""

    def add(
        self, account_id: int, message: Inbound, delivery_id: int | None, at: Instant
    ) -> int | None:
        """Its number; None where it is there already."""
        ...

    def put_into(self, received_id: int, conversation_id: int) -> None:
        """It is part of that conversation, and waits for its turn."""
        ...

    def has(self, account_id: int, provider_id: str) -> bool:
        """Whether a message of this name is there already."""
        ...

    def waiting(self, conversation_id: int) -> list_of[Received]:
        """What of it is in no turn, in the order in which it came."""
        ...

    def of_conversation(self, conversation_id: int, limit: int) -> list_of[Received]:
        """The latest of it, latest first."""
        ...

    def written_since(self, senders: Set[str], at: Instant) -> list_of[Received]:
        """What somebody, by whichever of these names, has written in any conversation after an
        instant."""
        ...

    def knows(self, addresses: Sequence[str]) -> bool:
        """Whether anybody with one of these addresses has ever written."""
        ...

    def latest(self, account_id: int | None = None, limit: int = 50) -> list_of[Received]:
        """The newest, newest first."""
        ...

    def blot_out(self, renamed: Mapping[str, str]) -> int:
        """Forget what these people wrote, and let them be known by another name; how many."""
        ...


class Watch(NamedTuple):
    """How far an account's mailbox has been read, and by whom."""

    account_id: int
    cursor: str
    generation: int
    lease_until_at: Instant | None
    problem: str
    """What is wrong with it; empty where nothing is."""
    failing_since_at: Instant | None
    read_at: Instant | None


class Watches(Protocol):
    """Mailboxes by their accounts. Each is read by one process at a time; times are the
    database's."""

    def take(self, account_id: int, lease_us: int) -> Watch | None:
        """Take it upon us to read it; None where another process does."""
        ...

    def change(self, held: Watch, lease_us: int | None, **changes: Any) -> Watch | None:
        """Write down how far we are, and hold it so much longer, or not at all any more; None if
        it is not ours any more."""
        ...

    def list(self) -> list_of[Watch]: ...
