"""What the engine asks of the store about how far messages got after they were sent."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from paceline.core.instants import Instant


class Early(NamedTuple):
    """How far a message got, told before its name was known; and which one that is."""

    delivery_id: int
    account_id: int
    provider_id: str
    delivered_at: Instant
    read_at: Instant | None


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

    def keep(self, account_id: int, provider_id: str, told_at: Instant, *, read: bool) -> None:
        """A message of a name that nobody here knows yet was delivered, or also read."""
        ...

    def early(self) -> bool:
        """Whether any are kept so."""
        ...

    def known(self, limit: int) -> list[Early]:
        """Those whose messages are known by now, and settled."""
        ...

    def forget(self, account_id: int, provider_id: str) -> None: ...

    def forget_older(self, than_us: int) -> int:
        """Those that nobody has found a message for in so long; how many."""
        ...
