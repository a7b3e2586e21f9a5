"""The message path on PostgreSQL: one statement per kind and group, over arrays.

Other processes write at the same time, so each guard is held by a lock until the commit or is part
of the statement that changes the row:

* the fence, shared, comes first. A command that must be in force before the next message takes it
  alone, so it waits for groups under way; and every later statement of a group has a snapshot
  that is younger than the last command (READ COMMITTED takes one per statement).
* lanes are locked and runs read FOR SHARE: a takeover or a pause is an UPDATE of that very row, and
  waits. A row that was waited for is read again as it is now, so the answer is never an old one.
* deliveries are guarded in the UPDATE's own condition, which is also evaluated again after a wait.
  Suppressions are read by its snapshot, which the fence has made young enough.

Locks are taken in one order by everybody: fence, lanes, runs, then deliveries and counters. Lanes
and runs are locked by a SELECT that is ordered by key. The UPDATEs are not: over arrays, rows come
in whatever order the planner likes. They need none, because whoever changes a delivery or a counter
holds the lane of its account, alone. What still meets head on (commands that go from a campaign to
its lanes, while somebody comes the other way) is ended by the server, and the journal tries again.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paceline.core.states import DeliveryState
from paceline.store import rows
from paceline.store.base import array, columns, storable, storable_or_none
from paceline.store.path import (
    MAY_SETTLE_FROM,
    MUST_NOT_START,
    SENDING,
    UNKNOWN,
    BasePath,
    Gate,
    Intending,
    LaneState,
    LedgerValues,
    Moved,
    Settling,
)
from paceline.store.path_reads import Queries
from paceline.store.settings import FENCE_KEY, why_stopped

_FENCE = f"SELECT pg_advisory_xact_lock_shared({FENCE_KEY})"
_NOT_STARTING = ", ".join(f"'{state}'" for state in MUST_NOT_START)
_INTENTS = f"""
INSERT INTO ledger ({rows.LEDGER_NAMES})
SELECT w.* FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::text[], %s::bigint[], %s::bigint[],
    %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::bigint[], %s::bigint[],
    %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[]) AS w ({rows.LEDGER_NAMES})
"""
_OUTCOMES = f"{_INTENTS} ON CONFLICT DO NOTHING"
_RESOLUTIONS = f"""{_INTENTS}
JOIN ledger o ON o.delivery_id = w.delivery_id AND o.part = w.part AND o.attempt = w.attempt
    AND o.kind = 'outcome' AND o.outcome = 'unknown'
WHERE w.outcome <> 'unknown' ON CONFLICT DO NOTHING
"""
# The state it must have comes with each row. Written out, it would lead the planner to the index
# of rows in that state, which holds every version not yet vacuumed away.
_SETTLE = """
UPDATE deliveries d SET state = w.state, due_at = w.due_at, parts_done = w.parts_done,
    retries = w.retries, reason = w.reason, provider_id = coalesce(w.provider_id, d.provider_id),
    sent_at = coalesce(w.sent_at, d.sent_at), moved_at = w.moved_at
FROM unnest(%s::int[], %s::bigint[], %s::int[], %s::int[], %s::text[], %s::text[], %s::bigint[],
    %s::int[], %s::int[], %s::text[], %s::text[], %s::bigint[], %s::bigint[])
    AS w (place, id, attempt, part, source, state, due_at, parts_done, retries, reason, provider_id,
    sent_at, moved_at)
WHERE d.id = w.id AND d.attempts = w.attempt AND d.parts_done = w.part AND d.state = w.source
RETURNING w.place, d.account_id, d.run_id
"""
_PROGRESS = """
UPDATE deliveries d SET parts_done = greatest(d.parts_done, w.parts_done)
FROM unnest(%s::int[], %s::bigint[], %s::int[], %s::int[]) AS w (place, id, attempt, parts_done)
WHERE d.id = w.id AND d.attempts = w.attempt AND d.state IN ('sending', 'unknown')
RETURNING w.place, d.account_id, d.run_id, d.state
"""
_LANES = f"""
SELECT l.account_id, l.generation, l.owner, l.revision, p.lease_until_at,
    a.removed_at IS NULL AND a.state NOT IN ({_NOT_STARTING})
FROM lanes l JOIN accounts a ON a.id = l.account_id LEFT JOIN processes p ON p.id = l.owner
WHERE l.account_id = ANY (%s::bigint[]) ORDER BY l.account_id FOR NO KEY UPDATE OF l
"""
_CHECKPOINT = """
UPDATE usage u SET checkpoint = w.checkpoint
FROM unnest(%s::bigint[], %s::text[]) AS w (account_id, checkpoint)
WHERE u.account_id = w.account_id
"""
_GATE = """
SELECT value, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM settings WHERE key = 'control'
"""
_RUNNING = """
SELECT id FROM runs WHERE id = ANY (%s::bigint[]) AND state = 'running' ORDER BY id FOR SHARE
"""
_WISHES = """unnest(%s::int[], %s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::int[],
    %s::bigint[]) AS w (place, id, account_id, run_id, attempt, part, at)"""
_IS_WISHED = """d.id = w.id AND d.account_id = w.account_id AND d.run_id = w.run_id
AND NOT EXISTS (SELECT 1 FROM suppressions s WHERE s.address = d.target)"""
_START = f"""
UPDATE deliveries d SET state = 'sending', attempts = w.attempt, due_at = NULL, moved_at = w.at
FROM {_WISHES}
WHERE {_IS_WISHED} AND d.state = 'ready' AND d.attempts = w.attempt - 1
RETURNING w.place
"""
_CONTINUE = f"""
SELECT w.place FROM {_WISHES} JOIN deliveries d ON {_IS_WISHED}
WHERE d.state = 'sending' AND d.attempts = w.attempt AND d.parts_done = w.part
AND NOT EXISTS (SELECT 1 FROM ledger i WHERE i.delivery_id = w.id AND i.part = w.part
    AND i.attempt = w.attempt AND i.kind = 'intent')
ORDER BY d.id FOR NO KEY UPDATE OF d
"""


class PostgresqlPath(BasePath):
    """The hot path by the driver's own cursor and arrays."""

    queries: ClassVar[Queries] = Queries.spelled("%s")

    def _pass_fence(self) -> None:
        self._cursor.execute(_FENCE)

    def _append_outcomes(self, values: list[LedgerValues]) -> int:
        appended: int = self._cursor.execute(_OUTCOMES, columns(values)).rowcount
        return appended

    def _append_resolutions(self, values: list[LedgerValues]) -> None:
        self._cursor.execute(_RESOLUTIONS, columns(values))

    def _append_intents(self, values: list[LedgerValues]) -> None:
        if values:
            self._cursor.execute(_INTENTS, columns(values))

    def _settle(self, entries: list[Settling]) -> dict[int, Moved]:
        wishes = list(enumerate(entries))
        moved: dict[int, Moved] = {}
        progress = [
            (place, s.delivery_id, s.attempt, s.parts_done)
            for place, (_, _, _, s) in wishes
            if s.state is SENDING
        ]
        if progress:
            found = self._fetch(_PROGRESS, progress)
            moved.update((place, Moved(*delivery)) for place, *delivery in found)
        # An attempt is nearly always still on its way. What somebody has meanwhile declared
        # unknown is asked for in a second round, because UPDATE tells only what a row became.
        for source in (SENDING, UNKNOWN):
            values = [
                _settle_values(place, entry, source)
                for place, entry in wishes
                if entry.settlement.state is not SENDING
                and source in MAY_SETTLE_FROM[entry.settlement.state]
                and place not in moved
            ]
            if values:
                for place, account_id, run_id in self._fetch(_SETTLE, values):
                    moved[place] = Moved(account_id, run_id, source.value)
        return moved

    def _lanes(self, account_ids: list[int]) -> dict[int, LaneState]:
        found = self._cursor.execute(_LANES, (array(account_ids),)).fetchall()
        return {account_id: LaneState(*lane) for account_id, *lane in found}

    def _checkpoint(self, checkpoints: list[tuple[int, str]]) -> None:
        self._cursor.execute(_CHECKPOINT, columns(list(checkpoints)))

    def _gate(self) -> Gate:
        control, now = self._cursor.execute(_GATE).fetchone()
        return Gate(now, why_stopped(control) is not None)

    def _running(self, run_ids: list[int]) -> set[int]:
        found = self._cursor.execute(_RUNNING, (array(run_ids),)).fetchall()
        return {run_id for (run_id,) in found}

    def _intend(self, entries: list[Intending]) -> list[int]:
        passed: list[int] = []
        for statement, starts in ((_START, True), (_CONTINUE, False)):
            wishes = [
                (place, i.delivery_id, lease.account_id, i.run_id, i.attempt, i.part, i.at)
                for place, (_, _, lease, i) in enumerate(entries)
                if i.starts is starts
            ]
            if wishes:
                passed += [place for (place,) in self._fetch(statement, wishes)]
        return passed

    def _fetch(self, statement: str, values: list[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = self._cursor.execute(statement, columns(values)).fetchall()
        return found


def _settle_values(place: int, entry: Settling, source: DeliveryState) -> tuple[Any, ...]:
    settlement = entry.settlement
    return (
        place,
        settlement.delivery_id,
        settlement.attempt,
        settlement.part,
        source._value_,
        settlement.state._value_,
        settlement.due_at,
        settlement.parts_done,
        settlement.retries,
        storable(settlement.reason),
        storable_or_none(settlement.outcome.provider_id),
        settlement.settled_at if settlement.state is DeliveryState.SENT else None,
        settlement.settled_at,
    )
