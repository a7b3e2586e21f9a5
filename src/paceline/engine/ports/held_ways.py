"""What the engine asks of the store about ways to answer that are held."""

from __future__ import annotations

from builtins import list as list_of
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant


class HeldWay(NamedTuple):
    """A way to answer in which nobody is answered just now, because its responder will not."""

    way: str
    reason: str
    since_at: Instant
    tries: int
    """How often it was tried since."""
    try_at: Instant
    """When it is tried next."""


class HeldWays(Protocol):
    def list(self) -> list_of[HeldWay]: ...

    def find(self, way: str) -> HeldWay | None: ...

    def hold(self, way: str, reason: str, at: Instant, try_at: Instant) -> bool:
        """Hold it; False where it is held already, which then knows the newer reason."""
        ...

    def put_off(self, held: HeldWay, try_at: Instant) -> bool:
        """Try it now, and then not before; False where somebody else does, or it goes on."""
        ...

    def release(self, way: str, since_at: Instant | None = None) -> HeldWay | None:
        """Let it go on, if it has been held since then; what it was held for, None if it was
        not."""
        ...

    def longest_due(self, way: str, at: Instant) -> int | None:
        """The conversation that has been due in this way for longest, and has no turn."""
        ...

    def overdue(self, first_before_at: Instant, limit: int) -> list_of[tuple[int, HeldWay]]:
        """Conversations of held ways where something waits from before an instant, and which has
        them; the longest due first."""
        ...
