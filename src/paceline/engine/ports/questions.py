"""What the engine asks of the store when a turn begins: all that whoever answers has to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.inbox import Received
from paceline.engine.ports.records import Account, Delivery


class Matter(NamedTuple):
    """What a turn is about."""

    turn: Turn
    conversation: Conversation
    """As it stood when the turn began, or was gone on with."""
    account: Account
    taken: Sequence[Received]
    """The messages of the turn, in the order in which they were written."""
    fields: Mapping[str, str]
    """What is known of whoever wrote them."""
    theirs: Sequence[Received]
    """What they had written before, and was answered or left; the latest first."""
    ours: Sequence[Delivery]
    """What was sent to them from this account; the latest first."""


class Questions(Protocol):
    def begin(
        self, conversation_id: int, owner: str, lease_us: int, at: Instant, most: int
    ) -> Matter | None:
        """Begin the turn of a conversation that whoever was set up to answers, and that is due by
        then, with everything that waits; None where it is not, another turn is active, or nothing
        waits. It is held either way. ``most`` of what each has said before is told."""
        ...

    def matter(self, turn: Turn, conversation: Conversation, most: int) -> Matter:
        """The same of a turn that is active."""
        ...
