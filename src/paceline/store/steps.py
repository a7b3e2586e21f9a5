"""Deliveries that follow others: released when the one before was sent, else skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ClauseElement, exists, select, text

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.steps import Advanced
from paceline.store.base import Subject, Tally, tally_move
from paceline.store.prepared import Prepared
from paceline.store.rows import spelled
from paceline.store.schema import counters, deliveries, run_accounts, runs

UNSENT = ("failed", "bounced", "skipped", "cancelled")
"""States from which the message before will not become a sent one by itself."""

# By the window over all rows and then by number: joined by their places, every row would be
# compared with every other.
_LINK = text("""
UPDATE deliveries SET after_id = p.before_id
FROM (
    SELECT id, lag(id) OVER (PARTITION BY position ORDER BY step) AS before_id
    FROM deliveries WHERE run_id = :run_id
) AS p
WHERE deliveries.id = p.id AND p.before_id IS NOT NULL
""")
# The account goes along: whoever wrote the first message writes the next.
_RELEASE = text("""
UPDATE deliveries SET state = 'ready', account_id = p.account_id, moved_at = :at,
    due_at = p.sent_at + :after_us, scheduled_at = p.sent_at + :after_us,
    expires_at = p.sent_at + :after_us + CAST(:expire_us AS BIGINT)
FROM deliveries AS p
WHERE deliveries.run_id = :run_id AND deliveries.state = 'planned' AND deliveries.step = :step
    AND deliveries.step > 1 AND p.id = deliveries.after_id AND p.state = 'sent'
RETURNING deliveries.account_id
""")
# An account that was removed has nobody follow up for it: whoever got its message knows no other.
_CALL_OFF = text("""
UPDATE deliveries SET state = 'cancelled', moved_at = :at,
    reason = 'account ' || a.name || ' removed'
FROM deliveries AS p JOIN accounts AS a ON a.id = p.account_id
WHERE deliveries.run_id = :run_id AND deliveries.state = 'planned' AND deliveries.step > 1
    AND p.id = deliveries.after_id AND p.state = 'sent' AND a.removed_at IS NOT NULL
RETURNING deliveries.account_id
""")
_SKIP = text(f"""
UPDATE deliveries SET state = 'skipped', moved_at = :at,
    reason = 'step ' || (deliveries.step - 1) || ' was not delivered: it is ' || p.state
FROM deliveries AS p
WHERE deliveries.run_id = :run_id AND deliveries.state = 'planned' AND deliveries.step > 1
    AND p.id = deliveries.after_id AND p.state IN ({", ".join(f"'{state}'" for state in UNSENT)})
RETURNING deliveries.account_id
""")
# What was skipped for the sake of a message that is tried again waits for it anew.
_REVIVE = text("""
UPDATE deliveries SET state = 'planned', moved_at = :at, reason = ''
FROM deliveries AS p
WHERE deliveries.run_id = :run_id AND deliveries.state = 'skipped' AND deliveries.step = :step
    AND deliveries.reason LIKE 'step % was not delivered: %'
    AND p.id = deliveries.after_id AND p.state IN ('ready', 'planned')
RETURNING deliveries.account_id
""")


def _waiting() -> ClauseElement:
    before = deliveries.alias("before")
    over = [spelled(DeliveryState(state)) for state in (*UNSENT, "sent")]
    return (
        select(runs.c.id)
        .where(
            runs.c.state == spelled(RunState.RUNNING),
            exists().where(
                deliveries.c.run_id == runs.c.id,
                deliveries.c.state == spelled(DeliveryState.PLANNED),
                text("deliveries.step > 1"),
                before.c.id == deliveries.c.after_id,
                before.c.state.in_(over),
            ),
        )
        .order_by(runs.c.id)
    )


# Asked for every minute by every process, for as long as something waits.
_WAITING = Prepared(lambda _: _waiting())


class Steps(Subject):
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
    ) -> Advanced:
        self._context.unhurried()
        self._hold_run(run_id)
        tally: Tally = {}
        called_off = self._changed(_CALL_OFF, {"run_id": run_id, "at": at})
        for owner, count in called_off.items():
            tally_move(tally, owner, run_id, "planned", "cancelled", count)
        released = 0
        for step, wait_us in sorted(after_us.items()):
            values = {
                "run_id": run_id,
                "step": step,
                "after_us": wait_us,
                "expire_us": expire_us,
                "at": at,
            }
            owners = self._changed(_RELEASE, values)
            released += owners.total()
            for owner, count in owners.items():
                # Of a pool, nobody had it while it was planned.
                before = NOBODY if self._pooled(run_id) else owner
                _add(tally, (before, run_id, "planned"), -count)
                _add(tally, (owner, run_id, "ready"), count)
        skipped = self._changed(_SKIP, {"run_id": run_id, "at": at})
        for owner, count in skipped.items():
            tally_move(tally, owner, run_id, "planned", "skipped", count)
        self._context.add_counts(tally)
        return Advanced(released, skipped.total() + called_off.total())

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
        self._context.add_counts(tally)
        return revived

    def _hold_run(self, run_id: int) -> None:
        concerned = select(counters.c.account_id).where(counters.c.run_id == run_id).distinct()
        self._context.hold_lanes(self._connection.execute(concerned).scalars())

    def _changed(self, statement: Any, values: dict[str, Any]) -> Counter[int]:
        result = self._connection.execute(statement, values)
        return Counter(owner or NOBODY for owner in result.scalars())

    def _pooled(self, run_id: int) -> bool:
        pool = select(run_accounts.c.run_id).where(run_accounts.c.run_id == run_id).limit(1)
        return self._connection.execute(pool).first() is not None


def _add(tally: Tally, key: tuple[int, int, str], count: int) -> None:
    tally[key] = tally.get(key, 0) + count
