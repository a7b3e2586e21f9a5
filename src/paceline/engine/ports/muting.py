"""What the engine asks of the store about people whom nobody answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from paceline.core.instants import Instant
from paceline.engine.ports.conversations import Conversation


class Muting(Protocol):
    """A conversation that begins with one of them is muted from its first message on."""

    def add(self, addresses: Collection[str], at: Instant) -> None: ...

    def remove(self, addresses: Collection[str]) -> int:
        """How many of them were muted."""
        ...

    def among(self, addresses: Collection[str]) -> frozenset[str]:
        """Those of these that are muted."""
        ...

    def conversations(self, addresses: Collection[str]) -> list[Conversation]:
        """Those that there are with these people, in the order in which they are held."""
        ...
