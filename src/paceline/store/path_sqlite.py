"""The message path on SQLite.

Inside ``BEGIN IMMEDIATE`` nobody else writes, to this file or to any part of it. A guard may
therefore be read with a plain SELECT and decided here: it stays true until the commit. That is
why there is no locking clause, no fence, and no condition repeated in an UPDATE. Many rows are
named by one JSON array, so that the text of a statement, and so its plan, is always the same.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from paceline.core.states import DeliveryState
from paceline.engine.ports.path import Intent
from paceline.store import rows
from paceline.store.base import storable, storable_or_none
from paceline.store.bulk import Bulk, fetch_gathered, gathered
from paceline.store.path import (
    MAY_SETTLE_FROM,
    MUST_NOT_START,
    READY,
    SENDING,
    BasePath,
    Gate,
    Intending,
    LaneState,
    LedgerValues,
    Moved,
    Settling,
)
from paceline.store.path_reads import Queries
from paceline.store.settings import why_stopped

_NAMED = "IN (SELECT value FROM json_each(?))"
_NOT_STARTING = ", ".join(f"'{state}'" for state in MUST_NOT_START)
_COLUMNS = len(rows.LEDGER_NAMES.split(", "))
_DELIVERY_COLUMNS = len(rows.DELIVERY)
_NUMBERED = ", ".join(f"?{n}" for n in range(1, _COLUMNS + 1))

_INTENTS = Bulk(f"INSERT INTO ledger ({rows.LEDGER_NAMES}) VALUES {{values}}", _COLUMNS)
_OUTCOMES = Bulk(
    f"INSERT INTO ledger ({rows.LEDGER_NAMES}) VALUES {{values}} ON CONFLICT DO NOTHING", _COLUMNS
)
_RESOLUTIONS = f"""
INSERT INTO ledger ({rows.LEDGER_NAMES}) SELECT {_NUMBERED}
WHERE ?14 <> 'unknown' AND EXISTS (SELECT 1 FROM ledger WHERE delivery_id = ?1 AND part = ?2
    AND attempt = ?3 AND kind = 'outcome' AND outcome = 'unknown')
ON CONFLICT DO NOTHING
"""
_BEFORE_SETTLING = gathered(
    f"SELECT id, account_id, run_id, state, attempts, parts_done FROM deliveries WHERE id {_NAMED}",
    6,
)
_SETTLE = Bulk(
    """
UPDATE deliveries AS d SET state = w.column2, due_at = w.column3, parts_done = w.column4,
    retries = w.column5, reason = w.column6,
    provider_id = coalesce(w.column7, d.provider_id), sent_at = coalesce(w.column8, d.sent_at),
    moved_at = w.column9
FROM (VALUES {values}) AS w WHERE d.id = w.column1
""",
    9,
)
_PROGRESS = Bulk(
    """
UPDATE deliveries AS d SET parts_done = max(d.parts_done, w.column2)
FROM (VALUES {values}) AS w WHERE d.id = w.column1
""",
    2,
)
_LANES = gathered(
    f"""
SELECT l.account_id, l.generation, l.owner, l.revision, p.lease_until_at,
    a.removed_at IS NULL AND a.state NOT IN ({_NOT_STARTING})
FROM lanes l JOIN accounts a ON a.id = l.account_id LEFT JOIN processes p ON p.id = l.owner
WHERE l.account_id {_NAMED}
""",
    6,
)
_CHECKPOINT = Bulk(
    """
UPDATE usage AS u SET checkpoint = w.column2
FROM (VALUES {values}) AS w WHERE u.account_id = w.column1
""",
    2,
)
_CONTROL = "SELECT value FROM settings WHERE key = 'control'"
_RUNNING = gathered(f"SELECT id FROM runs WHERE state = 'running' AND id {_NAMED}", 1)
_BEFORE_INTENDING = gathered(
    f"""
SELECT id, account_id, run_id, state, attempts, parts_done FROM deliveries d WHERE id {_NAMED}
AND NOT EXISTS (SELECT 1 FROM suppressions s WHERE s.address = d.target)
""",
    6,
)
_INTENDED = """
SELECT 1 FROM ledger WHERE delivery_id = ? AND part = ? AND attempt = ? AND kind = 'intent'
"""
_START = Bulk(
    """
UPDATE deliveries AS d SET state = 'sending', attempts = w.column2, due_at = NULL,
    moved_at = w.column3
FROM (VALUES {values}) AS w WHERE d.id = w.column1
""",
    3,
)


class SqlitePath(BasePath):
    """The hot path by the driver's own cursor, many rows in each statement."""

    queries: ClassVar[Queries] = Queries.spelled("?")

    def _pass_fence(self) -> None:
        """Nothing to pass: a command that holds the fence holds the whole file."""

    def _append_outcomes(self, values: list[LedgerValues]) -> int:
        return _OUTCOMES.run(self._cursor, values)

    def _append_resolutions(self, values: list[LedgerValues]) -> None:
        self._cursor.executemany(_RESOLUTIONS, values)

    def _append_intents(self, values: list[LedgerValues]) -> None:
        _INTENTS.run(self._cursor, values)

    def _settle(self, entries: list[Settling]) -> dict[int, Moved]:
        found = self._by_id(_BEFORE_SETTLING, [entry.delivery_id for entry in entries])
        moved: dict[int, Moved] = {}
        changes: list[tuple[Any, ...]] = []
        progress: list[tuple[int, int]] = []
        for place, entry in enumerate(entries):
            settlement, after = entry.settlement, entry.settlement.state
            row = found.get(settlement.delivery_id)
            if row is None or row[4] != settlement.attempt or row[3] not in MAY_SETTLE_FROM[after]:
                continue
            if after is not SENDING and row[5] != settlement.part:
                continue  # the part has its answer already, and the delivery has gone on
            moved[place] = Moved(row[1], row[2], row[3])
            if after is SENDING:
                progress.append((settlement.delivery_id, settlement.parts_done))
            else:
                changes.append(_settle_values(entry))
        _SETTLE.run(self._cursor, changes)
        _PROGRESS.run(self._cursor, progress)
        return moved

    def _lanes(self, account_ids: list[int]) -> dict[int, LaneState]:
        return {
            account_id: LaneState(*lane) for account_id, *lane in self._named(_LANES, account_ids)
        }

    def _checkpoint(self, checkpoints: list[tuple[int, str]]) -> None:
        _CHECKPOINT.run(self._cursor, checkpoints)

    def _gate(self) -> Gate:
        control = self._cursor.execute(_CONTROL).fetchone()[0]
        return Gate(self._context.read_clock(), why_stopped(control) is not None)

    def _running(self, run_ids: list[int]) -> set[int]:
        return {run_id for (run_id,) in self._named(_RUNNING, run_ids)}

    def _intend(self, entries: list[Intending]) -> list[int]:
        found = self._by_id(_BEFORE_INTENDING, [entry.delivery_id for entry in entries])
        passed: list[int] = []
        starts: list[tuple[int, int, int]] = []
        for place, (_, _, lease, intent) in enumerate(entries):
            row = found.get(intent.delivery_id)
            if row is None or row[1] != lease.account_id or row[2] != intent.run_id:
                continue
            if intent.starts and row[3] == READY and row[4] == intent.attempt - 1:
                starts.append((intent.delivery_id, intent.attempt, intent.at))
            elif intent.starts or not self._continues(row, intent):
                continue
            passed.append(place)
        _START.run(self._cursor, starts)
        return passed

    def _continues(self, row: rows.Row, intent: Intent) -> bool:
        """Whether this is the next part of a delivery on its way, and nobody has intended it."""
        if row[3] != SENDING or row[4] != intent.attempt or row[5] != intent.part:
            return False
        key = (intent.delivery_id, intent.part, intent.attempt)
        return self._cursor.execute(_INTENDED, key).fetchone() is None

    def _all(self, query: str, parameters: tuple[object, ...]) -> list[list[Any]]:
        return fetch_gathered(self._cursor.execute(gathered(query, _DELIVERY_COLUMNS), parameters))

    def _named(self, statement: str, ids: list[int]) -> list[list[Any]]:
        return fetch_gathered(self._cursor.execute(statement, (json.dumps(ids),)))

    def _by_id(self, statement: str, ids: list[int]) -> dict[int, rows.Row]:
        return {row[0]: row for row in self._named(statement, ids)}


def _settle_values(entry: Settling) -> tuple[Any, ...]:
    settlement = entry.settlement
    return (
        settlement.delivery_id,
        settlement.state._value_,
        settlement.due_at,
        settlement.parts_done,
        settlement.retries,
        storable(settlement.reason),
        storable_or_none(settlement.outcome.provider_id),
        settlement.settled_at if settlement.state is DeliveryState.SENT else None,
        settlement.settled_at,
    )
