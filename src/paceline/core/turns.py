"""When a turn begins: people write in bursts, and are answered once they have paused.

A burst is answered when nothing has come for ``quiet``, and at the latest ``max_wait`` after its
first message: whoever never pauses is answered as well. Where both are the same, it is a fixed
timer from the first message on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from paceline.core.instants import SECOND, Instant

OnNewer = Literal["wait", "redo"]


class Patience(NamedTuple):
    """How an account listens before it answers."""

    quiet_us: int = 8 * SECOND
    max_wait_us: int = 65 * SECOND
    on_newer: OnNewer = "wait"
    """What becomes of a reply that is being made when more comes in: it is sent, and what came is
    answered next; or it is made anew, for all of it."""

    def due_at(self, first_at: Instant, last_at: Instant) -> Instant:
        """When to answer what came in between; a clock that was set back makes nobody wait."""
        return min(max(last_at, first_at) + self.quiet_us, first_at + self.max_wait_us)

    @classmethod
    def stored(cls, raw: Mapping[str, Any]) -> Patience:
        """As it is kept with an account."""
        known = {name: raw[name] for name in cls._fields if name in raw}
        return cls(**known)
