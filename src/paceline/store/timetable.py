"""When deliveries are due, many at a time: plans written down, what no longer fits put off.

Only what is ready and was never tried is moved: a retry has an instant of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import case, or_, select, update

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports.timetable import PUT_OFF_WORDS, Later
from paceline.store.base import Subject, chunks, columns, storable
from paceline.store.bulk import Bulk
from paceline.store.rows import spelled
from paceline.store.schema import deliveries

CHUNK = 2_000

_READY = DeliveryState.READY
_FRESH = "d.state = 'ready' AND d.attempts = 0"
_STAYS_US = 1_000_000
"""A slot that moves by less stays where it is."""
_LIMITED = " OR ".join(f"substr(d.reason, 1, {len(w)}) = '{w}'" for w in PUT_OFF_WORDS)
_SETS = {
    "plan": "scheduled_at = {at}, due_at = {at}",
    "lay": "due_at = {at}, reason = {reason}",
    # What a limit has put off is still put off by it, and is recalled when the limit changes. What
    # is due no later than planned needs no reason.
    "share": f"""due_at = {{at}}, reason = CASE WHEN {{at}} <= d.scheduled_at THEN ''
        WHEN {_LIMITED} THEN {{limit}} || '; ' || {{reason}} ELSE {{reason}} END""",
}
_UP_TO = "substr(d.reason, 1, {found}(d.reason || ';', ';') - 1)"
_LIMIT = {"sqlite": _UP_TO.format(found="instr"), "postgresql": _UP_TO.format(found="strpos")}
"""What a reason says of the limit, without what else has been said since."""


def _moves(name: str, at: str) -> str:
    if name == "plan":
        return ""
    return f" AND d.due_at NOT BETWEEN {at} - {_STAYS_US} AND {at} + {_STAYS_US}"


_SQLITE = {
    name: Bulk(
        "UPDATE deliveries AS d SET "
        f"{sets.format(at='w.column2', reason='w.column3', limit=_LIMIT['sqlite'])} "
        f"FROM (VALUES {{values}}) AS w WHERE d.id = w.column1 AND {_FRESH}"
        f"{_moves(name, 'w.column2')}",
        3,
    )
    for name, sets in _SETS.items()
}
_POSTGRESQL = {
    name: "UPDATE deliveries d SET "
    f"{sets.format(at='w.at', reason='w.reason', limit=_LIMIT['postgresql'])} "
    "FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS w (id, at, reason) "
    f"WHERE d.id = w.id AND {_FRESH}{_moves(name, 'w.at')}"
    for name, sets in _SETS.items()
}
# What somebody has moved since it was looked at stays where they have put it.
_PUTS_OFF = f"AND d.account_id = {{owner}} AND d.due_at = {{was_at}} AND {_FRESH}"
_SQLITE["put off"] = Bulk(
    "UPDATE deliveries AS d SET due_at = w.column2, reason = w.column3 "
    "FROM (VALUES {values}) AS w WHERE d.id = w.column1 "
    + _PUTS_OFF.format(owner="w.column4", was_at="w.column5"),
    5,
)
_POSTGRESQL["put off"] = (
    "UPDATE deliveries d SET due_at = w.at, reason = w.reason FROM unnest(%s::bigint[], "
    "%s::bigint[], %s::text[], %s::bigint[], %s::bigint[]) AS w (id, at, reason, owner, was_at) "
    "WHERE d.id = w.id " + _PUTS_OFF.format(owner="w.owner", was_at="w.was_at")
)


class Timetable(Subject):
    def hold(self, account_ids: Iterable[int]) -> None:
        self._context.hold_lanes(account_ids)

    def plan(self, slots: Iterable[tuple[int, Instant]]) -> int:
        return self._write("plan", ((key, at, "") for key, at in slots))

    def lay(self, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        told = storable(reason)
        return self._write("lay", ((key, at, told) for key, at in slots))

    def share(self, slots: Iterable[tuple[int, Instant]], reason: str) -> int:
        told = storable(reason)
        return self._write("share", ((key, at, told) for key, at in slots))

    def put_off(self, account_id: int, moves: Iterable[Later]) -> int:
        # In haste and without looking for other lanes: it is a lane that does this about itself, in
        # a transaction that it shares with many others.
        self._context.hold_lanes([account_id])
        rows = ((move.key, move.at, storable(move.why), account_id, move.was_at) for move in moves)
        return sum(self._run("put off", chunk) for chunk in chunks(rows, CHUNK))

    def _write(self, name: str, rows: Iterable[tuple[Any, ...]]) -> int:
        self._context.unhurried()
        written = 0
        for chunk in chunks(rows, CHUNK):
            if self._context.postgresql:
                self._hold(row[0] for row in chunk)
            written += self._run(name, chunk)
        return written

    def _run(self, name: str, rows: list[tuple[Any, ...]]) -> int:
        cursor = self._context.cursor()
        if self._context.postgresql:
            return int(cursor.execute(_POSTGRESQL[name], columns(rows)).rowcount)
        return _SQLITE[name].run(cursor, rows)

    def _hold(self, delivery_ids: Iterable[int]) -> None:
        """Their lanes first: nobody starts one of them while it is moved."""
        owners = select(deliveries.c.account_id).where(deliveries.c.id.in_(list(delivery_ids)))
        found = self._connection.execute(owners.distinct()).scalars()
        self._context.hold_lanes(owner for owner in found if owner is not None)

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
