"""What the engine asks of the store about people whom nobody answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from paceline.core.instants import Instant
from paceline.engine.ports.conversations import Conversation


class Muting(Protocol):
    """A conversation that begins with one of them is muted from its first message on."""

    def add(self, addresses: Collection[str], at: Instant, by_id: int | None) -> None:
        """All of them one person's, muted by this conversation; those that are muted already stay
        as they are, unless nobody knows by which conversation."""
        ...

    def learn(self, by: Mapping[str, int | None], at: Instant) -> None:
        """The same of several people's, each with the conversation that it is muted by."""
        ...

    def remove(self, addresses: Collection[str]) -> int:
        """With all that was muted together with one of them; how many there were."""
        ...

    def among(self, addresses: Collection[str]) -> frozenset[str]:
        """Those of these that are muted."""
        ...

    def of(self, addresses: Collection[str]) -> dict[str, int | None]:
        """All that is muted together with one of these, and by which conversation; themselves
        included, and whatever else the same contact is known by, where that is muted."""
        ...

    def names_in(self, conversation_id: int) -> frozenset[str]:
        """All that whoever wrote there was called: what was written to where they answer that; and
        what they wrote from, unless the chat is somebody's own address. Then that is who they are,
        and anybody can write something else above a letter."""
        ...

    def conversations(
        self, addresses: Collection[str], account_id: int | None = None
    ) -> list[Conversation]:
        """Those that there are with these people, with this account or with any; or in which they
        have written, where the chat is nobody's own address. In the order in which they are
        held."""
        ...
