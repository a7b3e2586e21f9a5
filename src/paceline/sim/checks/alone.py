"""Throttles that are said to be about one recipient alone: whether there was reason to say so.

Counted from the ledger in the plainest way; where its order is not known, for the engine.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from paceline.core.instants import WEEK, Instant
from paceline.engine.ports import LedgerRow
from paceline.providers.sandbox.effects import Effect

LEAST = 3
"""Throttles of a message before one of them may be called its own, that one included."""
OTHERS = 3
"""Messages that have to have got through in a row since it was held back itself."""
SINGLES_US = WEEK
"""Once that was so, others need not be shown for so long, where as many have just got through."""
ENOUGH = 6
"""Throttles of a message after which nobody else is asked for."""


def is_reread(row: LedgerRow, effect: Effect) -> bool:
    """Whether a throttle was written down as trouble of its message."""
    return effect.answer == "throttled" and row.outcome == "transient"


class Alone:
    """What is known of messages that were throttled, and of others, row by row."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self._passed: Counter[int] = Counter()
        self._waiting: dict[int, set[int]] = defaultdict(set)
        """By account: those that were throttled and since when nobody got through."""
        self._single_at: dict[int, Instant] = {}

    def take_in(self, row: LedgerRow, effect: Effect | None) -> bool:
        """Whether this answer is rightly taken for its message's own trouble."""
        account_id, delivery_id = row.account_id, row.delivery_id
        if row.outcome == "accepted":
            self._passed[account_id] += 1
            if self._passed[account_id] >= OTHERS:
                self._waiting[account_id].clear()
        if effect is None or effect.answer != "throttled":
            return False
        self._times[delivery_id] += 1
        times, passed = self._times[delivery_id], self._passed[account_id]
        shown = times >= LEAST and delivery_id not in self._waiting[account_id]
        singles = row.at - self._single_at.get(account_id, -SINGLES_US) < SINGLES_US
        taken = singles and passed >= OTHERS and effect.retry_after_us is None
        if shown:
            self._single_at[account_id] = row.at
        if row.outcome == "throttled":
            self._waiting[account_id].add(delivery_id)
        if row.outcome == "throttled" or not shown:
            self._passed[account_id] = 0
        return is_reread(row, effect) and (shown or taken or times >= ENOUGH)
