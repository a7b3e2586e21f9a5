"""What the engine asks of the store where many people write at once: a few statements for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.engine.ports.conversations import Conversation
from paceline.engine.ports.records import Account
from paceline.engine.ports.webhooks import Inbound

Chat = tuple[int, str]
"""An account, and whom it writes with; or an account and what somebody is called there."""
Named = tuple[int, str]
"""An account, and a message as its provider names it."""


class Looked(NamedTuple):
    """What has to be known before anything can be written down."""

    accounts: Mapping[int, Account]
    settings: Mapping[str, Any]
    minded: frozenset[Chat]
    known: frozenset[Named]
    held: Mapping[Chat, Conversation]


class Heard(NamedTuple):
    """A message for the inbox."""

    account_id: int
    message: Inbound
    at: Instant
    conversation_id: int | None
    """Where it waits for its turn; None for what is nobody's to answer."""


class Waiting(NamedTuple):
    """What became of a conversation in which something was said."""

    conversation_id: int
    heard_at: Instant
    first_at: Instant | None
    last_at: Instant | None
    due_at: Instant | None


class Listening(Protocol):
    def look(
        self,
        account_ids: Collection[int],
        settings: Collection[str],
        names: Collection[Chat] = (),
        messages: Collection[Named] = (),
        chats: Collection[Chat] = (),
    ) -> Looked:
        """These accounts, those of these settings that there are, which of these people were
        written to by a campaign that minds whether they answer, which of these messages are in the
        inbox already, and those of these conversations that there are, held until the end of the
        transaction."""
        ...

    def hold_off(self) -> None:
        """For who changes whom nobody answers, or how an account is answered, before any
        conversation is held: nobody hears of anything until this transaction ends. All that was
        heard is seen here, and whoever hears later sees what was changed."""
        ...

    def minded(self, names: Collection[Chat]) -> frozenset[Chat]:
        """Which of these people were written to by such a campaign."""
        ...

    def hold(
        self, chats: Mapping[Chat, Instant], names: Mapping[Chat, Collection[str]] = ...
    ) -> dict[Chat, Conversation]:
        """The conversations that they have, and new ones where they have none, made at that
        instant; held until the end of the transaction. A new one is muted where somebody is who has
        one of these ``names``, or an address of the same contact."""
        ...

    def open(
        self, chats: Mapping[Chat, Instant], names: Mapping[Chat, Collection[str]] = ...
    ) -> dict[Chat, Conversation]:
        """The same of those who have none, as far as is known; after a look for them."""
        ...

    def add(self, heard: Sequence[Heard], waiting: Sequence[Waiting] = ()) -> list[int | None]:
        """The number of each message, in this order; None where it is there already. With them it
        is written down how these conversations stand, as ``let_wait`` does."""
        ...

    def renew(self, turns: Sequence[tuple[int, int]], lease_us: int) -> set[int]:
        """Hold turns, each with its generation, for so much longer; those that are still ours and
        in the making."""
        ...

    def hold_waiting(
        self, account_ids: Collection[int], after_id: int, limit: int
    ) -> list[Conversation]:
        """The next conversations of these accounts where something waits, by their numbers; held
        until the end of the transaction."""
        ...

    def let_wait(self, waiting: Sequence[Waiting]) -> None:
        """Write down how these conversations stand, which are held."""
        ...
