"""A group of the message path on PostgreSQL that is told in one flight (``path_trusting.py``): four
statements, each of which insists on what is believed.

The guards, their order and their locks are those of ``path_postgresql.py``, and so are the reasons:
the fence, the lanes and the runs are waited for one after the other, and what relies on them has a
snapshot that is younger. Everything that is written comes last and is one statement: its parts
concern different rows, so none has to see what another has done, and a server takes longer to set
out for a statement than to change ten rows by it.
"""

from __future__ import annotations

from typing import Any

from paceline.engine.ports.path import Intent, Settlement
from paceline.engine.ports.records import Lease
from paceline.store.base import (
    BY_KEY,
    PG_COUNT,
    PG_NOW,
    Context,
    array,
    columns,
    insisting,
    storable,
)
from paceline.store.locks import Lock
from paceline.store.path import (
    FOLLOWS_A_SENT_ONE,
    MAY_SETTLE_FROM,
    MUST_NOT_START,
    OUTCOME_NAMES,
    READY,
    SENDING,
    outcome_rows,
)
from paceline.store.path_trusting import Believed
from paceline.store.rows import is_suppressed

_READY, _SENDING = READY.value, SENDING.value
_NOT_STARTING = ", ".join(f"'{state}'" for state in MUST_NOT_START)
_FROM_SENDING = ", ".join(
    f"'{state}'"
    for state, sources in MAY_SETTLE_FROM.items()
    if SENDING in sources and state is not SENDING
)

# With it goes a word to the planner: every row is looked up by its key. Its statistics are those of
# a campaign that was only planned, until somebody gathers new ones; by them hardly anything is
# ready, and is best found by reading the whole table, at worst once for every message of a group.
FENCE = f"SELECT pg_advisory_xact_lock_shared({Lock.FENCE:d}), {BY_KEY}"
_LANES = f"""
WITH held AS MATERIALIZED (
    SELECT l.generation, l.owner, l.revision,
        a.removed_at IS NULL AND a.state NOT IN ({_NOT_STARTING}) AS starts
    FROM lanes l JOIN accounts a ON a.id = l.account_id
    WHERE l.account_id = ANY (%(accounts)s::bigint[])
    ORDER BY l.account_id FOR NO KEY UPDATE OF l
), numbered AS (
    SELECT held.*, row_number() OVER () AS place, %(revisions)s::bigint[] AS revisions,
        %(generations)s::bigint[] AS generations FROM held
)
{
    insisting(
        "count(*) = cardinality(%(accounts)s::bigint[]) AND bool_and(("
        "owner = %(process)s AND generation = generations[place] AND (revisions[place] = -1 "
        "OR (revision = revisions[place] AND starts))) IS TRUE)"
    )
} FROM numbered
"""
_GATE = f"""
WITH running AS (
    SELECT id FROM runs WHERE id = ANY (%(runs)s::bigint[]) AND state = 'running'
    ORDER BY id FOR SHARE
)
{
    insisting(
        "(SELECT count(*) FROM running) = cardinality(%(runs)s::bigint[]) "
        "AND (SELECT value::json ->> 'stopped' IS NULL FROM settings WHERE key = 'control') "
        f"AND (SELECT lease_until_at > {PG_NOW} FROM processes WHERE id = %(process)s)"
    )
}
"""
_LEDGER = f"{OUTCOME_NAMES}, kind"
_TYPES = (
    "bigint int int bigint bigint text bigint bigint bigint int bigint bigint text text text text "
    "bigint text int text text bigint int int text"
)
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in _TYPES.split())
_WRITE = f"""
WITH w AS MATERIALIZED (
    SELECT * FROM unnest({_ARRAYS})
    AS w ({_LEDGER}, tried, source, state, due_at, parts_done, retries, why)
), appended AS (
    INSERT INTO ledger ({_LEDGER}) SELECT {_LEDGER} FROM w ON CONFLICT DO NOTHING RETURNING 1
), moved AS (
    UPDATE deliveries d SET state = w.state, attempts = w.attempt, due_at = w.due_at,
        parts_done = w.parts_done, retries = coalesce(w.retries, d.retries),
        reason = coalesce(w.why, d.reason), provider_id = coalesce(w.provider_id, d.provider_id),
        sent_at = CASE WHEN w.state = 'sent' THEN w.at ELSE d.sent_at END, moved_at = w.at
    FROM w WHERE d.id = w.delivery_id AND d.account_id = w.account_id AND d.run_id = w.run_id
        AND d.attempts = w.tried AND d.parts_done = w.part AND d.state = w.source
        AND CASE WHEN w.kind = 'outcome' THEN w.state IN ({_FROM_SENDING})
            ELSE NOT {is_suppressed(postgresql=True)} AND {FOLLOWS_A_SENT_ONE} END
    RETURNING 1
), checkpointed AS (
    UPDATE usage u SET checkpoint = k.checkpoint
    FROM unnest(%s::bigint[], %s::text[]) AS k (account_id, checkpoint)
    WHERE u.account_id = k.account_id
), counted AS ({PG_COUNT} RETURNING 1)
{
    insisting(
        "(SELECT count(*) FROM appended) = (SELECT count(*) FROM w) "
        "AND (SELECT count(*) FROM moved) = (SELECT count(*) FROM w) "
        "AND (SELECT count(*) FROM counted) = %s"
    )
}
"""


def tell(group: Believed, context: Context) -> None:
    """All of it, on its way with the COMMIT."""
    context.tell(FENCE, ())
    lanes = {
        "accounts": array([unit.lease.account_id for unit in group.units]),
        "generations": array([unit.lease.generation for unit in group.units]),
        "revisions": array(group.revisions),
        "process": group.process_id,
    }
    context.tell(_LANES, lanes)
    if group.intents:
        context.tell(_GATE, {"runs": array(group.runs), "process": group.process_id})
    outcomes = outcome_rows(group.settlings)
    rows = [
        *(
            (*outcome, *_settled(done))
            for outcome, (*_, done) in zip(outcomes, group.settlings, strict=True)
        ),
        *(_intended(lease, intent) for _, lease, intent in group.intents),
    ]
    counts = [(*key, change) for key, change in group.tally().items() if change]
    accounts, texts = group.checkpoints or ([], [])
    if rows or accounts:
        values = (*_columns(rows, 25), array(accounts), array(texts), *_columns(counts, 4))
        context.tell(_WRITE, (*values, len(counts)))


def _settled(done: Settlement) -> tuple[Any, ...]:
    """What its delivery becomes, behind the outcome's row of the ledger."""
    return (
        "outcome",
        done.attempt,
        _SENDING,
        done.state._value_,
        done.due_at,
        done.parts_done,
        done.retries,
        done.reason and storable(done.reason),
    )


def _intended(lease: Lease, intent: Intent) -> tuple[Any, ...]:
    """The intent's row of the ledger, and what its delivery becomes. What is said of its tries so
    far stays as it is."""
    delivery_id, run_id, part, attempt, action, at, policy_id, *_ = intent
    account_id, generation = lease.account_id, lease.generation
    entry = (delivery_id, part, attempt, account_id, run_id, action, at, at, None, 1)
    unanswered = (None, "", "", None, None, "intent")
    becomes = (attempt - 1, _READY, _SENDING, None, part, None, None)
    return (*entry, policy_id, generation, *unanswered, *becomes)


def _columns(rows: list[tuple[Any, ...]], width: int) -> list[str]:
    return columns(rows) if rows else ["{}"] * width
