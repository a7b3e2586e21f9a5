"""When deliveries are due, many at a time: plans written down, what no longer fits put off.

Only what is ready and was never tried is laid anew: a retry has an instant of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import case, or_, select, update

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports.timetable import PUT_OFF_WORDS
from paceline.store.base import Subject, chunks, columns, storable
from paceline.store.bulk import Bulk
from paceline.store.rows import spelled
from paceline.store.schema import deliveries

CHUNK = 2_000

_READY = DeliveryState.READY
_FRESH = "d.state = 'ready' AND d.attempts = 0"
_STAYS_US = 1_000_000
"""A slot that moves by less stays where it is."""
_SETS = {
    "plan": "scheduled_at = {at}, due_at = {at}",
    "lay": "due_at = {at}, reason = {reason}",
}


def _moves(at: str) -> str:
    return f" AND d.due_at NOT BETWEEN {at} - {_STAYS_US} AND {at} + {_STAYS_US}"


_SQLITE = {
    name: Bulk(
        f"UPDATE deliveries AS d SET {sets.format(at='w.column2', reason='w.column3')} "
        f"FROM (VALUES {{values}}) AS w WHERE d.id = w.column1 AND {_FRESH}"
        f"{_moves('w.column2') if name == 'lay' else ''}",
        3,
    )
    for name, sets in _SETS.items()
}
_POSTGRESQL = {
    name: f"UPDATE deliveries d SET {sets.format(at='w.at', reason='w.reason')} "
    "FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS w (id, at, reason) "
    f"WHERE d.id = w.id AND {_FRESH}{_moves('w.at') if name == 'lay' else ''}"
    for name, sets in _SETS.items()
}


class Timetable(Subject):
    def hold(self, account_ids: Iterable[int]) -> None:
        self._context.hold_lanes(account_ids)

    def plan(self, slots: Iterable[tuple[int, Instant]]) -> int:
        return self._write("plan", slots, "")

    def lay(self, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        return self._write("lay", slots, storable(reason))

    def _write(self, name: str, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        self._context.unhurried()
        written = 0
        for chunk in chunks(slots, CHUNK):
            rows: list[tuple[Any, ...]] = [(key, at, reason) for key, at in chunk]
            cursor = self._context.cursor()
            if self._context.postgresql:
                self._hold(key for key, _ in chunk)
                written += cursor.execute(_POSTGRESQL[name], columns(rows)).rowcount
            else:
                written += _SQLITE[name].run(cursor, rows)
        return written

    def _hold(self, delivery_ids: Iterable[int]) -> None:
        """Their lanes first: nobody starts one of them while it is moved."""
        owners = select(deliveries.c.account_id).where(deliveries.c.id.in_(list(delivery_ids)))
        found = self._connection.execute(owners.distinct()).scalars()
        self._context.hold_lanes(owner for owner in found if owner is not None)

    def put_off(
        self, account_id: int, run_id: int, until_at: Instant, reason: str, most: int
    ) -> int:
        self._context.hold_lanes([account_id])
        overdue = (
            select(deliveries.c.id)
            .where(
                deliveries.c.account_id == account_id,
                deliveries.c.run_id == run_id,
                deliveries.c.due_at.is_not(None),
                deliveries.c.due_at < until_at,
                deliveries.c.state == spelled(_READY),
                # A retry has an instant of its own, and goes ahead of the others anyway.
                deliveries.c.attempts == 0,
            )
            .limit(most + 1)
        )
        found = list(self._connection.execute(overdue).scalars())
        if not found or len(found) > most:
            return 0
        statement = update(deliveries).where(deliveries.c.id.in_(found))
        self._connection.execute(statement.values(due_at=until_at, reason=storable(reason)))
        return len(found)

    def recall(self, account_id: int, at: Instant) -> int:
        self._context.hold_lanes([account_id])
        planned_at = deliveries.c.scheduled_at
        statement = (
            update(deliveries)
            .where(
                deliveries.c.account_id == account_id,
                deliveries.c.due_at.is_not(None),
                deliveries.c.due_at > planned_at,
                deliveries.c.due_at > at,
                deliveries.c.state == spelled(_READY),
                deliveries.c.attempts == 0,
                or_(*(deliveries.c.reason.startswith(words) for words in PUT_OFF_WORDS)),
            )
            .values(due_at=case((planned_at > at, planned_at), else_=at), reason="")
        )
        return self._connection.execute(statement).rowcount
