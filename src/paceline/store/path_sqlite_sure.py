"""Whether a group of the message path is as its lanes believe, on SQLite, in two questions.

The guards are those of ``path.py``, and hold for the same reason as there: nobody else writes until
the commit. Only what they say is not fetched to be compared, but compared where it is and counted:
each unit that is right about its lane, about the delivery it settles and about the one it is to
start is one. If any is missing nothing was written, and who is wrong is found out one by one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from paceline.engine.ports.path import LaneUnit
from paceline.store import rows
from paceline.store.base import Context, Cursor
from paceline.store.bulk import Bulk
from paceline.store.path import FOLLOWS_A_SENT_ONE, MAY_SETTLE_FROM, MUST_NOT_START, SENDING
from paceline.store.path_trusting import Believed

_FROM_SENDING = frozenset(state for state, sources in MAY_SETTLE_FROM.items() if SENDING in sources)
_NOT_STARTING = ", ".join(f"'{state}'" for state in MUST_NOT_START)
_GOES_ON = """'{"stopped":null}', '{"stopped": null}'"""
"""The control row as it is written, and as it was when the database was made. In any other words
it is read by who asks one by one."""

_NAMES = (
    *("account_id", "generation", "owner", "revision"),
    *("settled_id", "settled_attempt", "settled_part", "settled_run"),
    *("wanted_id", "wanted_attempt", "wanted_run"),
)
_ARE_RIGHT = f"""
l.generation = w.generation AND l.owner = w.owner
AND (w.settled_id IS NULL OR (b.state = 'sending' AND b.attempts = w.settled_attempt
    AND b.parts_done = w.settled_part AND b.run_id = w.settled_run AND b.account_id = w.account_id))
AND (w.wanted_id IS NULL OR (
    l.revision = w.revision AND a.removed_at IS NULL AND a.state NOT IN ({_NOT_STARTING})
    AND d.state = 'ready' AND d.attempts = w.wanted_attempt - 1
    AND d.run_id = w.wanted_run AND d.account_id = w.account_id
    AND NOT {rows.is_suppressed(postgresql=False)}
    AND {FOLLOWS_A_SENT_ONE}))
"""
# CROSS tells the planner to keep to this order: from the few that are asked about, each by its key.
_RIGHT = f"""
WITH w ({", ".join(_NAMES)}) AS (VALUES {{values}})
SELECT count(*) FROM w CROSS JOIN lanes l ON l.account_id = w.account_id
CROSS JOIN accounts a ON a.id = w.account_id
LEFT JOIN deliveries b ON b.id = w.settled_id LEFT JOIN deliveries d ON d.id = w.wanted_id
WHERE {_ARE_RIGHT}
"""
_ONE_RIGHT = f"""
SELECT count(*) FROM lanes l CROSS JOIN accounts a ON a.id = l.account_id
LEFT JOIN deliveries b ON b.id = w.settled_id LEFT JOIN deliveries d ON d.id = w.wanted_id
WHERE l.account_id = w.account_id AND {_ARE_RIGHT}
"""
for _place, _name in enumerate(_NAMES, 1):
    _ONE_RIGHT = re.sub(rf"\bw\.{_name}\b", f"?{_place}", _ONE_RIGHT)
_UNITS = Bulk(_RIGHT, len(_NAMES), _ONE_RIGHT)
_GATE = f"""
SELECT p.lease_until_at FROM settings c CROSS JOIN processes p
WHERE c.key = 'control' AND c.value IN ({_GOES_ON}) AND p.id = ?
AND (SELECT count(*) FROM runs WHERE id IN ({{runs}}) AND state = 'running') = ?
"""


def is_as_believed(group: Believed, context: Context, cursor: Cursor) -> bool:
    """Whether every one of them is right about everything, until this transaction ends."""
    asked = []
    for unit in group.units:
        row = _row(unit)
        if row is None:
            return False
        asked.append(row)
    return _UNITS.count(cursor, asked) == len(asked) and (
        not group.intents or _may_start(group, context, cursor)
    )


def _row(unit: LaneUnit) -> tuple[Any, ...] | None:
    """What it believes, in the order of ``_NAMES``; None where it is nothing plain."""
    lease, revision, _, settlements, intent = unit
    lane = (lease.account_id, lease.generation, lease.process_id, revision)
    settled: tuple[int | None, ...] = (None, None, None, None)
    if settlements:
        if len(settlements) > 1 or settlements[0].state not in _FROM_SENDING:
            return None
        done = settlements[0]
        settled = (done.delivery_id, done.attempt, done.part, done.run_id)
    if intent is None:
        return (*lane, *settled, None, None, None)
    return (*lane, *settled, intent.delivery_id, intent.attempt, intent.run_id)


def _may_start(group: Believed, context: Context, cursor: Cursor) -> bool:
    runs = group.runs
    found = cursor.execute(_gate(len(runs)), (group.process_id, *runs, len(runs))).fetchone()
    return found is not None and found[0] > context.read_clock()


@lru_cache(maxsize=64)
def _gate(runs: int) -> str:
    return _GATE.replace("{runs}", ", ".join("?" * runs))
