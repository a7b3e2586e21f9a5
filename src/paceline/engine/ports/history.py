"""What was sent before Paceline came, on its way into the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant

IMPORTED = "imported"
"""The code of ledger rows about messages that others have sent."""


class PastMessage(NamedTuple):
    """One message that somebody else has sent; ``key`` is what makes it the same one again."""

    key: str
    account_id: int
    action: str
    target: str
    at: Instant
    contact_id: int | None = None


class History(Protocol):
    def add(
        self, run_id: int, policy_id: int, messages: Sequence[PastMessage], at: Instant
    ) -> dict[int, int]:
        """Write them down as sent, each key once; how many were new, by account.

        Each has a delivery and the ledger rows of one accepted part, with ``IMPORTED`` as their
        code: its intent is of then, and of its outcome we have heard ``at``.
        """
        ...

    def last_calls(
        self, account_id: int, since_at: Instant, until_at: Instant
    ) -> tuple[Instant | None, Instant | None]:
        """As ``Ledger.last_calls``, but only of what others have sent, and not after ``until_at``:
        a clock may have been set back since we were told of it."""
        ...
