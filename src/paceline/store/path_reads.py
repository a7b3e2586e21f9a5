"""What a lane reads: its next deliveries, what it left behind, and all it needs to begin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from sqlalchemy import bindparam, or_, select

from paceline.core.instants import Instant
from paceline.engine.ports.path import Restored, Seen, Spot
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.records import Delivery, LedgerRow
from paceline.store import rows
from paceline.store.accounts import select_accounts
from paceline.store.base import Cursor, Subject
from paceline.store.campaigns import select_runs
from paceline.store.prepared import Prepared
from paceline.store.schema import (
    CONTROL,
    IN_FLIGHT,
    SIGNALS,
    UNSETTLED,
    accounts,
    counters,
    lanes,
    run_accounts,
    runs,
    settings,
    usage,
)
from paceline.store.settings import why_stopped

_NAMES = ", ".join(f"d.{name}" for name in rows.DELIVERY_NAMES.split(", "))
_DELIVERY = f"""
SELECT {_NAMES}, {{suppressed}},
    CASE WHEN d.after_id IS NOT NULL
        THEN (SELECT CASE WHEN d.bidden AND p.state = 'failed' AND p.parts_done > 0
            THEN 'sent' ELSE p.state END FROM deliveries p WHERE p.id = d.after_id)
    END AS has_become
FROM deliveries d
"""
_DUE = f"""SELECT * FROM ({_DELIVERY}
WHERE d.account_id = ? AND d.run_id = ? AND d.due_at IS NOT NULL AND d.due_at <= ?
AND d.attempts %s 0 ORDER BY d.due_at, d.id LIMIT {{limit}}) AS %s
"""
# Two halves rather than one order over both: each follows an index and stops at its limit. Both
# are asked for at once, because on the way to a server asking takes longer than answering.
_BEGUN_AND_FRESH = f"{_DUE % ('>', 'begun')} UNION ALL {_DUE % ('=', 'fresh')}"
_NEXT_DUE = """
SELECT due_at, NOT reply AND state = 'ready' FROM deliveries
WHERE account_id = ? AND run_id = ? AND due_at IS NOT NULL AND due_at > ?
ORDER BY account_id, run_id, due_at, id LIMIT 1
"""
# In all the words of the queue's index: PostgreSQL does not see that nothing is left to be sorted
# where there is no account, and would go through all that are due for every message.
_NOBODYS_ORDER = "ORDER BY d.account_id, d.run_id, d.due_at, d.id"
_POOLED = f"""{_DELIVERY}
WHERE d.account_id IS NULL AND d.run_id = ? AND d.due_at IS NOT NULL AND d.due_at <= ?
{_NOBODYS_ORDER} LIMIT {{limit}}
"""
_NEXT_POOLED = """
SELECT min(due_at) FROM deliveries
WHERE account_id IS NULL AND run_id = ? AND due_at IS NOT NULL AND due_at > ?
"""
# Each look follows an index of its own and ends at the first one found; a stretch begins right
# behind the last, in the order of the queue's index, however many are due at the same instant.
_KNOWS = """
(SELECT 1 FROM deliveries k WHERE k.target = d.target AND k.account_id = ? AND {which} LIMIT 1)
IS NOT NULL
"""
_ACQUAINTED = f"""
SELECT d.due_at, d.id, {_KNOWS.format(which="k.sent_at IS NOT NULL")}
OR {_KNOWS.format(which=IN_FLIGHT.replace("deliveries.", "k."))}
FROM deliveries d
WHERE d.account_id IS NULL AND d.run_id = ? AND d.due_at IS NOT NULL AND d.due_at <= ?
AND (d.due_at, d.id) > (?, ?) {_NOBODYS_ORDER} LIMIT {{limit}}
"""
_ONE = f"{_DELIVERY} WHERE d.id = ?"
_STRANDED = f"{_DELIVERY} WHERE d.account_id = ? AND d.state = 'sending' ORDER BY d.id"
_OPEN_INTENT = f"""
SELECT {rows.LEDGER_NAMES} FROM ledger i
WHERE delivery_id = ? AND kind = 'intent' AND NOT EXISTS (
    SELECT 1 FROM ledger o
    WHERE o.delivery_id = i.delivery_id AND o.part = i.part AND o.attempt = i.attempt
    AND o.kind = 'outcome')
ORDER BY attempt DESC, part DESC LIMIT 1
"""


_RESTORE = Prepared(
    lambda _: (
        select_accounts(
            lanes.c.revision,
            usage.c.checkpoint,
            select(settings.c.value).where(settings.c.key == CONTROL).scalar_subquery(),
            select(settings.c.value).where(settings.c.key == SIGNALS).scalar_subquery(),
        )
        .join(lanes, lanes.c.account_id == accounts.c.id)
        .join(usage, usage.c.account_id == accounts.c.id)
        .where(accounts.c.id == bindparam("account_id"), accounts.c.removed_at.is_(None))
    )
)
_SOMETHING_LEFT = (counters.c.n > 0, or_(*(counters.c.state == state for state in UNSETTLED)))
# Its own, and those of which it may take what is nobody's.
_UNSETTLED_RUNS = Prepared(
    lambda _: (
        select_runs()
        .where(
            runs.c.id.in_(
                select(counters.c.run_id)
                .where(counters.c.account_id == bindparam("account_id"), *_SOMETHING_LEFT)
                .union_all(
                    select(counters.c.run_id)
                    .join(run_accounts, run_accounts.c.run_id == counters.c.run_id)
                    .where(
                        run_accounts.c.account_id == bindparam("account_id"),
                        counters.c.account_id == NOBODY,
                        *_SOMETHING_LEFT,
                    )
                )
            )
        )
        .order_by(runs.c.id)
    )
)


@dataclass(frozen=True, slots=True)
class Queries:
    """The reads, which differ only in how a driver spells a parameter."""

    due: str
    next_due: str
    pooled: str
    next_pooled: str
    acquainted: str
    one: str
    stranded: str
    open_intent: str

    @classmethod
    def spelled(cls, parameter: str) -> Queries:
        texts = (
            _BEGUN_AND_FRESH,
            _NEXT_DUE,
            _POOLED,
            _NEXT_POOLED,
            _ACQUAINTED,
            _ONE,
            _STRANDED,
            _OPEN_INTENT,
        )
        suppressed = rows.is_suppressed(postgresql=parameter != "?")
        return cls(
            *(text.replace("?", parameter).replace("{suppressed}", suppressed) for text in texts)
        )


@lru_cache(maxsize=64)
def limited(query: str, limit: int) -> str:
    """The query with its limit written out; there are few.

    Bound as a value, PostgreSQL would have to plan for any limit, finds the plan it could keep too
    dear on a large table, and makes a new one for every page: more than twice the work of reading.
    """
    return query.replace("{limit}", str(limit))


class PathReads(Subject):
    """The reading half of the path."""

    queries: ClassVar[Queries]

    def _ask(self, query: str, values: tuple[object, ...]) -> Cursor:
        return self._context.ask(query, values)

    def due(self, account_id: int, run_id: int, until_at: Instant, limit: int) -> list[Delivery]:
        half = (account_id, run_id, until_at)
        found = self._all(limited(self.queries.due, limit), (*half, *half))
        return [rows.delivery(row) for row in found[:limit]]

    def _all(self, query: str, parameters: tuple[object, ...]) -> Sequence[rows.Row]:
        """Every row of a query; by way of its own where a driver is slow at that."""
        found: list[rows.Row] = self._ask(query, parameters).fetchall()
        return found

    def next_due(
        self, account_id: int, run_id: int, after_at: Instant = -1
    ) -> tuple[Instant | None, bool]:
        row = self._ask(self.queries.next_due, (account_id, run_id, after_at)).fetchone()
        return (None, False) if row is None else (row[0], bool(row[1]))

    def next_due_at(self, account_id: int, run_id: int, after_at: Instant = -1) -> Instant | None:
        return self.next_due(account_id, run_id, after_at)[0]

    def pooled(self, run_id: int, until_at: Instant, limit: int) -> list[Delivery]:
        # Each limit is a statement that a server keeps, so there are few.
        most = 1 << (limit - 1).bit_length()
        found = self._all(limited(self.queries.pooled, most), (run_id, until_at))
        return [rows.delivery(row) for row in found[:limit]]

    def acquainted(
        self, account_id: int, run_id: int, behind: Spot, until_at: Instant, limit: int
    ) -> list[Seen]:
        query = limited(self.queries.acquainted, limit)
        values = (account_id, account_id, run_id, until_at, *behind)
        found = self._ask(query, values).fetchall()
        return [Seen(due_at, number, bool(known)) for due_at, number, known in found]

    def one(self, delivery_id: int) -> Delivery:
        (found,) = self._all(self.queries.one, (delivery_id,))
        return rows.delivery(found)

    def next_pooled_at(self, run_id: int, after_at: Instant = -1) -> Instant | None:
        asked = self._ask(self.queries.next_pooled, (run_id, after_at))
        due_at: Instant | None = asked.fetchone()[0]
        return due_at

    def stranded(self, account_id: int) -> list[tuple[Delivery, LedgerRow | None]]:
        asked = self._ask(self.queries.stranded, (account_id,))
        found = [rows.delivery(row) for row in asked.fetchall()]
        return [(delivery, self._open_intent(delivery.id)) for delivery in found]

    def _open_intent(self, delivery_id: int) -> LedgerRow | None:
        row = self._ask(self.queries.open_intent, (delivery_id,)).fetchone()
        return rows.ledger_row(row) if row else None

    def restore(self, account_id: int) -> Restored | None:
        row = _RESTORE.run(self._context, account_id=account_id).fetchone()
        if row is None:
            return None
        *account, revision, checkpoint, control, signals = row
        found = _UNSETTLED_RUNS.run(self._context, account_id=account_id).fetchall()
        return Restored(
            account=rows.account(account),
            revision=revision,
            checkpoint=None if checkpoint is None else json.loads(checkpoint),
            stopped=why_stopped(control) is not None,
            runs=tuple(rows.run(run) for run in found),
            signals=None if signals is None else json.loads(signals),
        )
