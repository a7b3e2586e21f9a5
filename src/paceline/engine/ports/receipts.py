"""What the engine asks of the store about how far messages got after they were sent."""

from __future__ import annotations

from typing import Protocol

from paceline.core.instants import Instant


class Receipts(Protocol):
    """They only ever move forward: what was read was delivered, and stays so."""

    def named(self, account_id: int, provider_id: str) -> int | None:
        """The delivery whose last part the account's provider calls so."""
        ...

    def note(self, delivery_id: int, at: Instant, *, read: bool) -> bool:
        """A message that was sent was delivered, or also read; False where that was known, or it
        is not one that was sent."""
        ...

    def under_way(self, account_id: int) -> bool:
        """Whether anything of the account's is with its provider this very moment, so that its name
        may be unknown yet."""
        ...
