"""Throttles that are said to be about one recipient alone: whether there was reason to say so.

Counted from the ledger in the plainest way; where its order is not known, for the engine.
"""

from __future__ import annotations

from collections import Counter

from paceline.engine.ports import LedgerRow
from paceline.providers.sandbox.effects import Effect

LEAST = 3
"""Throttles of a message before one of them may be called its own, that one included."""
OTHERS = 3
"""Messages that have to have got through since anybody was held back."""
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

    def take_in(self, row: LedgerRow, effect: Effect | None) -> bool:
        """Whether this answer is rightly taken for its message's own trouble."""
        if row.outcome == "accepted":
            self._passed[row.account_id] += 1
        if effect is None or effect.answer != "throttled":
            return False
        self._times[row.delivery_id] += 1
        times, passed = self._times[row.delivery_id], self._passed[row.account_id]
        if row.outcome == "throttled":
            self._passed[row.account_id] = 0
        others = times >= LEAST and passed >= OTHERS
        return is_reread(row, effect) and (others or times >= ENOUGH)
