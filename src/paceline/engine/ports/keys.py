"""What the engine asks of the store about keys of what was asked for."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from paceline.core.instants import Instant


class Kept(NamedTuple):
    """What was done under a key."""

    kind: str
    subject_id: int
    digest: str


class Keys(Protocol):
    def reserve(self, key: str, kind: str, digest: str, at: Instant) -> Kept | None:
        """Take a key; what was done under it already, or None if it is ours from now on."""
        ...

    def keep(self, key: str, subject_id: int) -> None:
        """Remember what was made under a key that was reserved in this transaction."""
        ...
