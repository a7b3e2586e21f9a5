"""The message path on SQLite.

Inside ``BEGIN IMMEDIATE`` nobody else writes, to this file or to any part of it. A guard may
therefore be read with a plain SELECT and decided here: it stays true until the commit. That is
why there is no locking clause, no fence, and no condition repeated in an UPDATE. Many rows are
named by one JSON array, so that the text of a statement, and so its plan, is always the same.

Nearly always everything is as the lanes believe. That is found out first, in two questions for the
whole group (``path_sqlite_sure``), and then all of it is written; otherwise nothing was, and
each is asked and judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from paceline.core.keepable import keepable_name
from paceline.core.states import DeliveryState
from paceline.engine.ports.path import Intent, LaneResult, LaneUnit, Settlement
from paceline.store import rows
from paceline.store.base import Context, Cursor, storable
from paceline.store.bulk import Bulk, fetch_gathered, gathered
from paceline.store.path import (
    FOLLOWS_A_SENT_ONE,
    INTENT_NAMES,
    MAY_SETTLE_FROM,
    MUST_NOT_START,
    OUTCOME_NAMES,
    READY,
    SENDING,
    Answer,
    BasePath,
    Gate,
    Intending,
    Lanes,
    Moved,
    Settling,
    intent_rows,
    outcome_rows,
    starting_runs,
)
from paceline.store.path_reads import Queries
from paceline.store.path_sqlite_sure import is_as_believed
from paceline.store.path_trusting import Believed, believed, foretold
from paceline.store.settings import why_stopped

SENT = DeliveryState.SENT

_NAMED = "IN (SELECT value FROM json_each(?))"
_NOT_STARTING = ", ".join(f"'{state}'" for state in MUST_NOT_START)
_DELIVERY_COLUMNS = len(rows.DELIVERY)
_OUTCOME_COLUMNS = OUTCOME_NAMES.count(",") + 1
_INTENT_COLUMNS = INTENT_NAMES.count(",") + 1
_NUMBERED = ", ".join(f"?{n}" for n in range(1, _OUTCOME_COLUMNS + 1))
_LISTED = ", ".join(f"column{n}" for n in range(1, _OUTCOME_COLUMNS + 1))

# "WHERE true" tells the parser that ON belongs to the INSERT and not to a join.
_OUTCOMES = Bulk(
    f"""
INSERT INTO ledger ({OUTCOME_NAMES}, kind) SELECT {_LISTED}, 'outcome'
FROM (VALUES {{values}}) WHERE true ON CONFLICT DO NOTHING
""",
    _OUTCOME_COLUMNS,
    f"""
INSERT INTO ledger ({OUTCOME_NAMES}, kind) VALUES ({_NUMBERED}, 'outcome') ON CONFLICT DO NOTHING
""",
)
_RESOLUTIONS = f"""
INSERT INTO ledger ({OUTCOME_NAMES}, kind) SELECT {_NUMBERED}, 'resolution'
WHERE ?13 <> 'unknown' AND EXISTS (SELECT 1 FROM ledger WHERE delivery_id = ?1 AND part = ?2
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
    """
UPDATE deliveries SET state = ?2, due_at = ?3, parts_done = ?4, retries = ?5, reason = ?6,
    provider_id = coalesce(?7, provider_id), sent_at = coalesce(?8, sent_at), moved_at = ?9
WHERE id = ?1
""",
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
    "UPDATE usage SET checkpoint = ?2 WHERE account_id = ?1",
)
_CONTROL = "SELECT value FROM settings WHERE key = 'control'"
_RUNNING = gathered(f"SELECT id FROM runs WHERE state = 'running' AND id {_NAMED}", 1)
_BEFORE_INTENDING = gathered(
    f"""
SELECT id, account_id, run_id, state, attempts, parts_done FROM deliveries d WHERE id {_NAMED}
AND NOT EXISTS (SELECT 1 FROM suppressions s WHERE {rows.suppressed_by(postgresql=False)})
AND {FOLLOWS_A_SENT_ONE}
""",
    6,
)
_INTENDED = """
SELECT 1 FROM ledger WHERE delivery_id = ? AND part = ? AND attempt = ? AND kind = 'intent'
"""
_TAKE = Bulk(
    """
UPDATE deliveries AS d SET account_id = w.column2
FROM (VALUES {values}) AS w WHERE d.id = w.column1
""",
    2,
)
_START = Bulk(
    """
UPDATE deliveries AS d SET state = 'sending', attempts = w.column2, due_at = NULL,
    moved_at = w.column3
FROM (VALUES {values}) AS w WHERE d.id = w.column1
""",
    3,
    """
UPDATE deliveries SET state = 'sending', attempts = ?2, due_at = NULL, moved_at = ?3 WHERE id = ?1
""",
)
_INTENTS = Bulk(
    f"""
INSERT INTO ledger ({INTENT_NAMES}, kind, intent_at, slots, code, reason)
SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9,
    'intent', column7, 1, '', '' FROM (VALUES {{values}})
""",
    _INTENT_COLUMNS,
    f"""
INSERT INTO ledger ({INTENT_NAMES}, kind, intent_at, slots, code, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'intent', ?7, 1, '', '')
""",
)


class SqlitePath(BasePath):
    """The hot path by the driver's own cursor, many rows in each statement."""

    queries: ClassVar[Queries] = Queries.spelled("?")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cursor = context.cursor()

    def apply(self, units: Sequence[LaneUnit]) -> list[LaneResult]:
        group = believed(units)
        if group is None or not is_as_believed(group, self._context, self._cursor):
            return super().apply(units)
        self._write(group)
        return foretold(units)

    def _write(self, group: Believed) -> None:
        if group.settlings:
            self._append(outcome_rows(group.settlings))
            _SETTLE.run(self._cursor, [_change(settlement) for *_, settlement in group.settlings])
        if checkpoints := group.checkpoints:
            _CHECKPOINT.run(self._cursor, list(zip(*checkpoints, strict=True)))
        if group.intents:
            starts = [(wish.delivery_id, wish.attempt, wish.at) for *_, wish in group.intents]
            _START.run(self._cursor, starts)
            _INTENTS.run(self._cursor, intent_rows(group.intents))
        self._context.add_counts(group.tally())

    def _ask(self, query: str, values: tuple[object, ...]) -> Cursor:
        return self._cursor.execute(query, values)

    def _together(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def _guards(self, units: Sequence[LaneUnit]) -> Answer[tuple[Lanes, Gate | None]]:
        # There is no fence to pass: a command that holds it holds the whole file.
        lanes = self._by_id(_LANES, list({unit.lease.account_id for unit in units}))
        wishes = any(unit.intent is not None for unit in units)
        gate = self._gate(starting_runs(units)) if wishes else None
        return lambda: (lanes, gate)

    def _gate(self, run_ids: list[int]) -> Gate:
        control = self._cursor.execute(_CONTROL).fetchone()[0]
        running = self._named(_RUNNING, run_ids) if run_ids else ()
        return Gate(
            self._context.read_clock(),
            why_stopped(control) is not None,
            frozenset(run_id for (run_id,) in running),
        )

    def _written(self, entries: list[Settling]) -> list[tuple[Any, ...]]:
        return outcome_rows(entries)

    def _settle(self, entries: list[Settling], written: list[tuple[Any, ...]]) -> Answer[Moved]:
        moved: dict[int, tuple[int, int, str]] = {}
        if not entries:
            return lambda: moved
        self._append(written)
        found = self._by_id(_BEFORE_SETTLING, [row[0] for row in written])
        changes: list[tuple[Any, ...]] = []
        progress: list[tuple[int, int]] = []
        for _, _, settlement in entries:
            after, delivery_id = settlement.state, settlement.delivery_id
            row = found.get(delivery_id)
            if row is None or row[4] != settlement.attempt or row[3] not in MAY_SETTLE_FROM[after]:
                continue
            if after is SENDING:
                progress.append((delivery_id, settlement.parts_done))
            elif row[5] == settlement.part:
                changes.append(_change(settlement))
            else:
                continue  # the part has its answer already, and the delivery has gone on
            moved[delivery_id] = (row[1], row[2], row[3])
        _SETTLE.run(self._cursor, changes)
        _PROGRESS.run(self._cursor, progress)
        return lambda: moved

    def _append(self, written: list[tuple[Any, ...]]) -> None:
        if _OUTCOMES.run(self._cursor, written) < len(written):
            # Some were there already: repeated, or declared unknown while the answer was awaited.
            self._cursor.executemany(_RESOLUTIONS, written)

    def _checkpoint(self, checkpoints: dict[int, str]) -> None:
        _CHECKPOINT.run(self._cursor, list(checkpoints.items()))

    def _intend(self, entries: list[Intending]) -> Answer[Iterable[int]]:
        found = self._by_id(_BEFORE_INTENDING, [intent.delivery_id for _, _, intent in entries])
        passed: list[Intending] = []
        starts: list[tuple[int, int, int]] = []
        taken: list[tuple[int, int]] = []
        for entry in entries:
            _, lease, intent = entry
            row = found.get(intent.delivery_id)
            if row is None or row[2] != intent.run_id:
                continue
            if row[1] != (None if intent.pooled else lease.account_id):
                continue
            if intent.starts and row[3] == READY and row[4] == intent.attempt - 1:
                starts.append((intent.delivery_id, intent.attempt, intent.at))
                if intent.pooled:
                    taken.append((intent.delivery_id, lease.account_id))
            elif intent.starts or not self._continues(row, intent):
                continue
            passed.append(entry)
        _TAKE.run(self._cursor, taken)
        _START.run(self._cursor, starts)
        _INTENTS.run(self._cursor, intent_rows(passed))
        return lambda: [intent.delivery_id for _, _, intent in passed]

    def _continues(self, row: rows.Row, intent: Intent) -> bool:
        """Whether this is the next part of a delivery on its way, and nobody has intended it."""
        if row[3] != SENDING or row[4] != intent.attempt or row[5] != intent.part:
            return False
        key = (intent.delivery_id, intent.part, intent.attempt)
        return self._cursor.execute(_INTENDED, key).fetchone() is None

    def _all(self, query: str, parameters: tuple[object, ...]) -> list[list[Any]]:
        return fetch_gathered(self._cursor.execute(gathered(query, _DELIVERY_COLUMNS), parameters))

    def _named(self, statement: str, ids: list[int]) -> list[list[Any]]:
        # Numbers are written alike in both languages.
        return fetch_gathered(self._cursor.execute(statement, (str(ids),)))

    def _by_id(self, statement: str, ids: list[int]) -> dict[int, rows.Row]:
        return {row[0]: row for row in self._named(statement, ids)}


def _change(settlement: Settlement) -> tuple[Any, ...]:
    """What its delivery becomes, as ``_SETTLE`` takes it."""
    after, provider_id, at = settlement.state, settlement.outcome.provider_id, settlement.settled_at
    return (
        settlement.delivery_id,
        after._value_,
        settlement.due_at,
        settlement.parts_done,
        settlement.retries,
        settlement.reason and storable(settlement.reason),
        provider_id and keepable_name(provider_id),
        at if after is SENT else None,
        at,
    )
