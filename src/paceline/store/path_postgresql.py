"""The message path on PostgreSQL: one statement per kind and group, over arrays.

Other processes write at the same time, so each guard is held by a lock until the commit or is part
of the statement that changes the row:

* the fence, shared, comes first. A command that must be in force before the next message takes it
  alone, so it waits for groups under way; and every later statement of a group has a snapshot
  that is younger than the last command (READ COMMITTED takes one per statement, also of those that
  are sent together: the server begins with one when it is done with the one before).
* lanes are locked and runs read FOR SHARE: a takeover or a pause is an UPDATE of that very row, and
  waits. A row that was waited for is read again as it is now, so the answer is never an old one.
* deliveries are guarded in the UPDATE's own condition, which is also evaluated again after a wait.
  Suppressions are read by its snapshot, which the fence has made young enough; so is the message
  that a later step follows, whose account's lane is the same and is held.

A statement has one snapshot, taken before it waits for anything. So what is waited for and what
relies on it are never in the same statement: the fence, the lanes and the rest come one after the
other. What is in one statement with a change to a delivery is the ledger's row about it, which
relies on nothing else: an intent is appended for the very rows that the UPDATE returns, and an
outcome is appended whatever the delivery has become.

Locks are taken in one order by everybody: fence, lanes, runs, then deliveries and counters. Lanes
and runs are locked by a SELECT that is ordered by key. The UPDATEs are not: over arrays, rows come
in whatever order the planner likes. They need none, because whoever changes a delivery or a counter
holds the lane of its account, alone. What still meets head on (commands that go from a campaign to
its lanes, while somebody comes the other way) is ended by the server, and the journal tries again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from paceline.core.states import DeliveryState
from paceline.engine.ports.path import LaneResult, LaneUnit
from paceline.store.base import Cursor, array, columns, storable
from paceline.store.path import (
    FOLLOWS_A_SENT_ONE,
    INTENT_NAMES,
    MAY_SETTLE_FROM,
    MUST_NOT_START,
    OUTCOME_NAMES,
    READY,
    SENDING,
    UNKNOWN,
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
from paceline.store.path_postgresql_sure import FENCE, tell
from paceline.store.path_reads import Queries
from paceline.store.path_trusting import believed, foretold
from paceline.store.rows import suppressed_by
from paceline.store.settings import why_stopped


def _reached_from(source: DeliveryState) -> str:
    """The states to which a settlement may take a delivery from this one, spelled for SQL."""
    states = (state for state, sources in MAY_SETTLE_FROM.items() if source in sources)
    return ", ".join(f"'{state}'" for state in states if state is not SENDING)


_NOT_STARTING = ", ".join(f"'{state}'" for state in MUST_NOT_START)
_LANES = f"""
SELECT l.account_id, l.generation, l.owner, l.revision, p.lease_until_at,
    a.removed_at IS NULL AND a.state NOT IN ({_NOT_STARTING})
FROM lanes l JOIN accounts a ON a.id = l.account_id LEFT JOIN processes p ON p.id = l.owner
WHERE l.account_id = ANY (%s::bigint[]) ORDER BY l.account_id FOR NO KEY UPDATE OF l
"""
# The runs may be waited for, and are read again then; the control row needs no lock, because who
# changes it has the fence for himself.
_GATE = """
WITH running AS (
    SELECT id FROM runs WHERE id = ANY (%s::bigint[]) AND state = 'running' ORDER BY id FOR SHARE
)
SELECT value, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    ARRAY (SELECT id FROM running)
FROM settings WHERE key = 'control'
"""
# The state a delivery must have comes as a value. Written out, it would lead the planner to the
# index of rows in that state, which holds every version not yet vacuumed away.
_WRITTEN = f"""
w AS MATERIALIZED (
    SELECT *, %s::text AS source FROM unnest(
        %s::bigint[], %s::int[], %s::int[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[],
        %s::bigint[], %s::bigint[], %s::int[], %s::bigint[], %s::bigint[], %s::text[], %s::text[],
        %s::text[], %s::text[], %s::bigint[], %s::text[], %s::bigint[], %s::int[], %s::int[],
        %s::text[]
    ) AS w ({OUTCOME_NAMES}, state, due_at, parts_done, retries, why)
)"""
_MOVED = """
moved AS (
    UPDATE deliveries d SET state = w.state, due_at = w.due_at, parts_done = w.parts_done,
        retries = w.retries, reason = w.why, provider_id = coalesce(w.provider_id, d.provider_id),
        sent_at = CASE WHEN w.state = 'sent' THEN w.at ELSE d.sent_at END, moved_at = w.at
    FROM w WHERE d.id = w.delivery_id AND d.attempts = w.attempt AND d.parts_done = w.part
        AND d.state = w.source AND w.state IN ({})
    RETURNING d.id, d.account_id, d.run_id, w.source
)"""
_SETTLE = f"""
WITH {_WRITTEN}, appended AS (
    INSERT INTO ledger ({OUTCOME_NAMES}, kind) SELECT {OUTCOME_NAMES}, 'outcome' FROM w
    ON CONFLICT DO NOTHING RETURNING 1
), {_MOVED.format(_reached_from(SENDING))}
SELECT appended.n, moved.* FROM (SELECT count(*) AS n FROM appended) AS appended
LEFT JOIN moved ON true
"""
_SETTLE_UNKNOWN = f"""
WITH {_WRITTEN}, {_MOVED.format(_reached_from(UNKNOWN))} SELECT * FROM moved
"""
_RESOLUTIONS = f"""
WITH {_WRITTEN}
INSERT INTO ledger ({OUTCOME_NAMES}, kind)
SELECT {", ".join(f"w.{name}" for name in OUTCOME_NAMES.split(", "))}, 'resolution'
FROM w JOIN ledger o ON o.delivery_id = w.delivery_id AND o.part = w.part AND o.attempt = w.attempt
    AND o.kind = 'outcome' AND o.outcome = 'unknown'
WHERE w.outcome <> 'unknown' ON CONFLICT DO NOTHING
"""
_PROGRESS = """
UPDATE deliveries d SET parts_done = greatest(d.parts_done, w.parts_done)
FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS w (id, attempt, parts_done)
WHERE d.id = w.id AND d.attempts = w.attempt AND d.state IN ('sending', 'unknown')
RETURNING d.id, d.account_id, d.run_id, d.state
"""
_CHECKPOINT = """
UPDATE usage u SET checkpoint = w.checkpoint
FROM unnest(%s::bigint[], %s::text[]) AS w (account_id, checkpoint)
WHERE u.account_id = w.account_id
"""
_WISHES = f"""
w AS MATERIALIZED (
    SELECT *, %s::text AS source FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::bigint[],
        %s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) AS w ({INTENT_NAMES})
)"""
_IS_WISHED = f"""d.id = w.delivery_id AND d.account_id = w.account_id AND d.run_id = w.run_id
AND d.state = w.source
AND NOT EXISTS (SELECT 1 FROM suppressions s WHERE {suppressed_by(postgresql=True)})
AND {FOLLOWS_A_SENT_ONE}"""
_APPENDED = f"""
INSERT INTO ledger ({INTENT_NAMES}, kind, intent_at, slots, code, reason)
SELECT {INTENT_NAMES}, 'intent', at, 1, '', '' FROM passed RETURNING delivery_id
"""
# Under the same conditions as the start that follows it, and behind the same fence: either both
# change the row or neither does. Of two accounts that want it, the second waits here, and finds it
# taken.
_TAKE = f"""
WITH {_WISHES}
UPDATE deliveries d SET account_id = w.account_id
FROM w WHERE d.account_id IS NULL AND {_IS_WISHED.replace("d.account_id = w.account_id AND ", "")}
    AND d.attempts = w.attempt - 1
"""
_PASSED = f"""
passed AS (
    UPDATE deliveries d SET state = 'sending', attempts = w.attempt, due_at = NULL, moved_at = w.at
    FROM w WHERE {_IS_WISHED} AND d.attempts = w.attempt - 1
    RETURNING w.*
)"""
_START = f"WITH {_WISHES}, {_PASSED} {_APPENDED}"
_CONTINUE = f"""
WITH {_WISHES}, passed AS (
    SELECT w.* FROM w JOIN deliveries d ON {_IS_WISHED}
    WHERE d.attempts = w.attempt AND d.parts_done = w.part
    AND NOT EXISTS (SELECT 1 FROM ledger i WHERE i.delivery_id = w.delivery_id
        AND i.part = w.part AND i.attempt = w.attempt AND i.kind = 'intent')
    ORDER BY d.id FOR NO KEY UPDATE OF d
) {_APPENDED}"""


class PostgresqlPath(BasePath):
    """The hot path over arrays, many rows in each statement."""

    queries: ClassVar[Queries] = Queries.spelled("%s")

    def trust(self, units: Sequence[LaneUnit]) -> list[LaneResult] | None:
        group = believed(units)
        if group is None:
            return None
        tell(group, self._context)
        return foretold(units)

    def _together(self) -> AbstractContextManager[Any]:
        return self._context.pipelined()

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        return self._context.ask(statement, values)

    def _guards(self, units: Sequence[LaneUnit]) -> Answer[tuple[Lanes, Gate | None]]:
        self._ask(FENCE)
        lanes = self._ask(_LANES, (array(list({unit.lease.account_id for unit in units})),))
        gate: Cursor = None
        if any(unit.intent is not None for unit in units):
            gate = self._ask(_GATE, (array(starting_runs(units)),))
        self._context.send()

        def answer() -> tuple[Lanes, Gate | None]:
            known = {lane[0]: lane for lane in lanes.fetchall()}
            return known, None if gate is None else _gate(*gate.fetchone())

        return answer

    def _written(self, entries: list[Settling]) -> list[str]:
        if not entries:
            return []
        changes = [
            (s.state._value_, s.due_at, s.parts_done, s.retries, s.reason and storable(s.reason))
            for _, _, s in entries
        ]
        return [*columns(outcome_rows(entries)), *columns(changes)]

    def _settle(self, entries: list[Settling], written: list[str]) -> Answer[Moved]:
        if not entries:
            return dict
        progress = [
            (s.delivery_id, s.attempt, s.parts_done) for _, _, s in entries if s.state is SENDING
        ]
        asked = [self._ask(_SETTLE, (SENDING.value, *written))]
        if progress:
            asked.append(self._ask(_PROGRESS, columns(progress)))

        def answer() -> Moved:
            settled = asked[0].fetchall()
            moved = {row[1]: row[2:] for row in settled if row[1] is not None}
            for cursor in asked[1:]:
                moved.update((row[0], row[1:]) for row in cursor.fetchall())
            if settled[0][0] < len(entries):
                # Some were there already: repeated, or declared unknown while we waited.
                self._ask(_RESOLUTIONS, (SENDING.value, *written))
            # An attempt is nearly always still on its way. What somebody has meanwhile declared
            # unknown is asked for separately, because UPDATE tells only what a row became.
            left = [entry for entry in entries if entry[2].delivery_id not in moved]
            if left:
                again = self._ask(_SETTLE_UNKNOWN, (UNKNOWN.value, *self._written(left)))
                moved.update((row[0], row[1:]) for row in again.fetchall())
            return moved

        return answer

    def _checkpoint(self, checkpoints: dict[int, str]) -> None:
        accounts, texts = list(checkpoints), list(checkpoints.values())
        self._ask(_CHECKPOINT, (array(accounts), array(texts)))

    def _intend(self, entries: list[Intending]) -> Answer[Iterable[int]]:
        starts = [entry for entry in entries if entry[2].starts]
        further = [entry for entry in entries if not entry[2].starts]
        pooled = [entry for entry in starts if entry[2].pooled]
        if pooled:
            self._ask(_TAKE, (READY.value, *columns(intent_rows(pooled))))
        asked = [
            self._ask(statement, (source.value, *columns(intent_rows(some))))
            for statement, source, some in ((_START, READY, starts), (_CONTINUE, SENDING, further))
            if some
        ]
        return lambda: [passed for cursor in asked for (passed,) in cursor.fetchall()]


def _gate(control: str, now: int, running: list[int]) -> Gate:
    return Gate(now, why_stopped(control) is not None, frozenset(running))
