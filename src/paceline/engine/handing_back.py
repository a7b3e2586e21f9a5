"""Handing many conversations back at once: whoever was to answer has failed, and works again."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.core.instants import Instant
from paceline.engine import conversations
from paceline.engine.ports import Tx
from paceline.engine.ports.conversations import Conversation

MOST = 1_000_000
TOGETHER = 100
"""Conversations of one transaction: others who write to the database wait for it."""


def handed_over(tx: Tx, account_id: int | None = None) -> list[Conversation]:
    """Those that people have because no answer could be made or sent, and not because somebody
    has taken them; whoever has waited for longest first."""
    found = tx.conversations.list(account_id=account_id, modes=("human",), limit=MOST)
    return sorted(
        (one for one in found if one.reason != conversations.TAKEN),
        key=lambda one: (one.first_at or one.heard_at, one.id),
    )


def hand_back(tx: Tx, numbers: Sequence[int], at: Instant) -> int:
    """How many there were of these that nobody has handed back or taken meanwhile."""
    count = 0
    for number in sorted(numbers):  # the order in which everybody holds them
        held = tx.conversations.hold(number)
        if held.mode == "human" and held.reason != conversations.TAKEN:
            conversations.hand_back(tx, number, at)
            count += 1
    return count
