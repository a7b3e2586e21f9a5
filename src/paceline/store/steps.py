"""Deliveries that follow others: released when the one before was sent, else skipped.

A message that a later step waits for is marked as awaited, and an index holds those of them that
are over. They are taken from there a few thousand at a time, and their followers found by a second
index: what a look costs depends on what has been settled since the last one, and not on how many
others still wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ClauseElement, TextClause, exists, select, text

from paceline.core.instants import Instant
from paceline.core.states import RunState
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.steps import Advanced
from paceline.store.base import Subject, Tally, array, dump, tally_move
from paceline.store.doubts import IN_DOUBT, LEFT_OPEN
from paceline.store.prepared import Prepared
from paceline.store.rows import spelled
from paceline.store.schema import AWAITED, FOLLOWING, counters, deliveries, run_accounts, runs

MOST = 5_000
"""Messages whose followers are told in one transaction: lanes wait while it lasts."""

UNSENT = ("failed", "bounced", "skipped", "cancelled")
"""States from which the message before will not become a sent one by itself."""

_UNSENT = ", ".join(f"'{state}'" for state in UNSENT)

# By the window over all rows and then by number: joined by their places, every row would be
# compared with every other.
_LINK = text("""
UPDATE deliveries SET after_id = p.before_id, awaited = p.awaited
FROM (
    SELECT id, lag(id) OVER steps AS before_id, lead(id) OVER steps IS NOT NULL AS awaited
    FROM deliveries WHERE run_id = :run_id WINDOW steps AS (PARTITION BY position ORDER BY step)
) AS p
WHERE deliveries.id = p.id AND (p.before_id IS NOT NULL OR p.awaited <> deliveries.awaited)
""")
_BEFORE = text("""
WITH RECURSIVE earlier (id, after_id, step) AS (
    SELECT id, after_id, step FROM deliveries WHERE id = :id
    UNION ALL
    SELECT d.id, d.after_id, d.step FROM deliveries AS d JOIN earlier AS e ON d.id = e.after_id
)
SELECT id FROM earlier WHERE id <> :id ORDER BY step
""")
_SETTLED = f"""
SELECT id FROM deliveries WHERE run_id = :run_id AND {AWAITED} ORDER BY id LIMIT :most {{locked}}
"""
_LOCKED = {
    True: text(_SETTLED.format(locked="FOR NO KEY UPDATE")),
    False: text(_SETTLED.format(locked="")),
}
_TELL = "UPDATE deliveries SET awaited = false WHERE id {ids}"
_FOLLOWS = FOLLOWING.replace("state", "deliveries.state").replace("step", "deliveries.step")
_THEIRS = (
    f"deliveries.run_id = :run_id AND {_FOLLOWS} AND deliveries.after_id = p.id AND p.id {{ids}}"
)
# So long after the one before, and not before the minute that a plan has given it.
_DUE_AT = """CASE WHEN deliveries.scheduled_at > p.sent_at + :after_us THEN deliveries.scheduled_at
    ELSE p.sent_at + :after_us END"""
# The account goes along: whoever wrote the first message writes the next.
_RELEASE = f"""
UPDATE deliveries SET state = 'ready', account_id = p.account_id, moved_at = :at,
    due_at = {_DUE_AT}, scheduled_at = {_DUE_AT},
    expires_at = {_DUE_AT} + CAST(:expire_us AS BIGINT)
FROM deliveries AS p
WHERE {_THEIRS} AND deliveries.state = 'planned' AND deliveries.step = :step AND p.state = 'sent'
RETURNING deliveries.account_id
"""
# An account that was removed has nobody follow up for it: whoever got its message knows no other.
_CALL_OFF = f"""
UPDATE deliveries SET state = 'cancelled', moved_at = :at,
    reason = 'account ' || a.name || ' removed'
FROM deliveries AS p JOIN accounts AS a ON a.id = p.account_id
WHERE {_THEIRS} AND deliveries.state = 'planned' AND p.state = 'sent' AND a.removed_at IS NOT NULL
RETURNING deliveries.account_id
"""
_SKIP = f"""
UPDATE deliveries SET state = 'skipped', due_at = NULL, moved_at = :at,
    reason = 'step ' || (deliveries.step - 1) || ' was not delivered: it is ' || p.state
FROM deliveries AS p
WHERE {_THEIRS} AND deliveries.state = :source AND p.state IN ({_UNSENT})
RETURNING deliveries.account_id
"""
# Unless it was sent already, as far as anybody knows, and waited to be sent again.
_LOSE = f"""
UPDATE deliveries SET state = 'unknown', due_at = NULL, moved_at = :at,
    reason = 'step ' || (deliveries.step - 1) || ' was not delivered: it is ' || p.state
        || '{LEFT_OPEN}'
FROM deliveries AS p
WHERE {_THEIRS} AND deliveries.state = 'ready' AND p.state IN ({_UNSENT}) AND {IN_DOUBT}
RETURNING deliveries.account_id
"""
# What was skipped for the sake of a message that is tried again waits for it anew.
_REVIVE = text("""
UPDATE deliveries SET state = 'planned', moved_at = :at, reason = ''
FROM deliveries AS p
WHERE deliveries.run_id = :run_id AND deliveries.state = 'skipped' AND deliveries.step = :step
    AND deliveries.reason LIKE 'step % was not delivered: %'
    AND p.id = deliveries.after_id AND p.state IN ('ready', 'planned')
RETURNING deliveries.account_id
""")
_AWAIT_AGAIN = text(f"""
UPDATE deliveries SET awaited = true WHERE NOT awaited AND id IN (
    SELECT after_id FROM deliveries WHERE run_id = :run_id AND {FOLLOWING} AND state = 'planned'
)
""")


def _spelled(statement: str) -> dict[bool, TextClause]:
    """For PostgreSQL and for SQLite, with many ids as one value."""
    return {
        True: text(statement.format(ids="= ANY (CAST(:ids AS BIGINT[]))")),
        False: text(statement.format(ids="IN (SELECT value FROM json_each(:ids))")),
    }


_TOLD = {
    name: _spelled(statement)
    for name, statement in (
        ("tell", _TELL),
        ("release", _RELEASE),
        ("call off", _CALL_OFF),
        ("lose", _LOSE),
        ("skip", _SKIP),
    )
}


def _waiting() -> ClauseElement:
    settled = exists().where(deliveries.c.run_id == runs.c.id, text(AWAITED))
    return (
        select(runs.c.id)
        .where(runs.c.state == spelled(RunState.RUNNING), settled)
        .order_by(runs.c.id)
    )


# Asked for every minute by every process, for as long as something waits.
_WAITING = Prepared(lambda _: _waiting())


class Steps(Subject):
    def before(self, delivery_id: int) -> list[int]:
        return [row[0] for row in self._connection.execute(_BEFORE, {"id": delivery_id})]

    def link(self, run_id: int) -> None:
        self._context.unhurried()
        self._connection.execute(_LINK, {"run_id": run_id})

    def waiting(self) -> list[int]:
        return [run_id for (run_id,) in _WAITING.run(self._context).fetchall()]

    def advance(
        self,
        run_id: int,
        after_us: Mapping[int, int],
        at: Instant,
        expire_us: int | None = None,
        most: int = MOST,
    ) -> Advanced:
        self._context.unhurried()
        self._hold_run(run_id)
        ids = self._take(run_id, most)
        if not ids:
            return Advanced(0, 0)
        values = {"run_id": run_id, "at": at, "ids": ids}
        tally: Tally = {}
        called_off = self._told("call off", values)
        for owner, count in called_off.items():
            tally_move(tally, owner, run_id, "planned", "cancelled", count)
        released = 0
        pooled = self._pooled(run_id)
        for step, wait_us in sorted(after_us.items()):
            waits = {"step": step, "after_us": wait_us, "expire_us": expire_us}
            owners = self._told("release", {**values, **waits})
            released += owners.total()
            for owner, count in owners.items():
                # Of a pool, nobody had it while it was planned.
                before = NOBODY if pooled else owner
                _add(tally, (before, run_id, "planned"), -count)
                _add(tally, (owner, run_id, "ready"), count)
        skipped = called_off.total()
        for owner, count in self._told("lose", values).items():
            tally_move(tally, owner, run_id, "ready", "unknown", count)
        # What is ready is called off, too, by a bounce that came after its release.
        for source in ("planned", "ready"):
            owners = self._told("skip", {**values, "source": source})
            skipped += owners.total()
            for owner, count in owners.items():
                tally_move(tally, owner, run_id, source, "skipped", count)
        self._context.add_counts(tally)
        return Advanced(released, skipped)

    def revive(self, run_id: int, steps: int, at: Instant) -> int:
        self._context.unhurried()
        self._hold_run(run_id)
        tally: Tally = {}
        revived = 0
        for step in range(2, steps + 1):
            owners = self._changed(_REVIVE, {"run_id": run_id, "step": step, "at": at})
            revived += owners.total()
            for owner, count in owners.items():
                tally_move(tally, owner, run_id, "skipped", "planned", count)
        if revived:
            self._connection.execute(_AWAIT_AGAIN, {"run_id": run_id})
        self._context.add_counts(tally)
        return revived

    def _hold_run(self, run_id: int) -> None:
        concerned = select(counters.c.account_id).where(counters.c.run_id == run_id).distinct()
        self._context.hold_lanes(self._connection.execute(concerned).scalars())

    def _take(self, run_id: int, most: int) -> str:
        """Messages that are over, held until this commits, and told of from now on; empty if there
        are none."""
        on_postgresql = self._context.postgresql
        self._context.by_key()
        found = self._connection.execute(
            _LOCKED[on_postgresql], {"run_id": run_id, "most": most}
        ).scalars()
        ids = list(found)
        if not ids:
            return ""
        taken = array(ids) if on_postgresql else dump(ids)
        self._connection.execute(_TOLD["tell"][on_postgresql], {"ids": taken})
        return taken

    def _told(self, what: str, values: dict[str, Any]) -> Counter[int]:
        return self._changed(_TOLD[what][self._context.postgresql], values)

    def _changed(self, statement: TextClause, values: dict[str, Any]) -> Counter[int]:
        result = self._connection.execute(statement, values)
        return Counter(owner or NOBODY for owner in result.scalars())

    def _pooled(self, run_id: int) -> bool:
        pool = select(run_accounts.c.run_id).where(run_accounts.c.run_id == run_id).limit(1)
        return self._connection.execute(pool).first() is not None


def _add(tally: Tally, key: tuple[int, int, str], count: int) -> None:
    tally[key] = tally.get(key, 0) + count
