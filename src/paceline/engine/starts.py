"""How many accounts of a process may begin a firing at once: log in, upload, send one message.

Only the beginning is bounded. Once its first message is on its way an account has a pace of its
own, and how long another one takes to begin is bounded by the provider's timeout.
"""

from __future__ import annotations

FIRE_CONCURRENCY = 8


class Starts:
    def __init__(self, limit: int = FIRE_CONCURRENCY) -> None:
        self.limit = limit
        self._beginning: set[int] = set()

    def enter(self, account_id: int) -> bool:
        """Whether there is room for one more; whoever entered must leave."""
        if len(self._beginning) >= self.limit:
            return False
        self._beginning.add(account_id)
        return True

    def leave(self, account_id: int) -> None:
        self._beginning.discard(account_id)

    @property
    def why(self) -> str:
        return f"{self.limit} other accounts are beginning a firing just now"
