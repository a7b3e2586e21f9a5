"""When deliveries are due, many at a time: plans written down, what no longer fits put off.

Only what is ready and was never tried is moved: a retry has an instant of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, case, or_, select, update

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports.timetable import PUT_OFF_WORDS, Later
from paceline.store.base import Subject, array, chunks, columns, storable
from paceline.store.bulk import Bulk
from paceline.store.rows import spelled
from paceline.store.schema import deliveries, run_accounts

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
_PUTS_OFF_POOLED = f"AND d.account_id IS NULL AND d.due_at = {{was_at}} AND {_FRESH}"
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
_SQLITE["put off pooled"] = Bulk(
    "UPDATE deliveries AS d SET due_at = w.column2, reason = w.column3 "
    "FROM (VALUES {values}) AS w WHERE d.id = w.column1 "
    + _PUTS_OFF_POOLED.format(was_at="w.column4"),
    4,
)
_POSTGRESQL["put off pooled"] = (
    "UPDATE deliveries d SET due_at = w.at, reason = w.reason FROM unnest(%s::bigint[], "
    "%s::bigint[], %s::text[], %s::bigint[]) AS w (id, at, reason, was_at) "
    "WHERE d.id = w.id " + _PUTS_OFF_POOLED.format(was_at="w.was_at")
)
_FREE_NOW = (
    "SELECT id FROM deliveries WHERE id = ANY(%s::bigint[]) AND account_id IS NULL "
    "ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"
)


# Written as the others are, though nobody is told a reason.
_AWAITING = "d.state = 'planned' AND d.step > 1"
_SQLITE["expect"] = Bulk(
    "UPDATE deliveries AS d SET scheduled_at = w.column2 FROM (VALUES {values}) AS w "
    f"WHERE d.id = w.column1 AND {_AWAITING}",
    2,
)
_POSTGRESQL["expect"] = (
    "UPDATE deliveries d SET scheduled_at = w.at FROM unnest(%s::bigint[], %s::bigint[]) "
    f"AS w (id, at) WHERE d.id = w.id AND {_AWAITING}"
)


class Timetable(Subject):
    def hold(self, account_ids: Iterable[int]) -> None:
        self._context.hold_lanes(account_ids)

    def plan(self, slots: Iterable[tuple[int, Instant]]) -> int:
        return self._write("plan", ((key, at, "") for key, at in slots))

    def expect(self, slots: Iterable[tuple[int, Instant]]) -> int:
        return self._write("expect", slots)

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

    def put_off_pooled(self, moves: Iterable[Later]) -> int:
        rows = ((move.key, move.at, storable(move.why), move.was_at) for move in moves)
        return sum(
            self._run("put off pooled", free)
            for chunk in chunks(rows, CHUNK)
            if (free := self._free_now(chunk))
        )

    def _free_now(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Without those that somebody is taking. No lane keeps others away from what is nobody's,
        so whoever waited for them here could be waited for in turn."""
        if not self._context.postgresql:
            return rows
        found = self._context.ask(_FREE_NOW, (array([row[0] for row in rows]),))
        free = {number for (number,) in found.fetchall()}
        return [row for row in rows if row[0] in free]

    def _write(self, name: str, rows: Iterable[tuple[Any, ...]]) -> int:
        self._context.unhurried()
        written = 0
        for chunk in chunks(rows, CHUNK):
            if self._context.postgresql:
                self._hold(row[0] for row in chunk)
            written += self._run(name, chunk)
        return written

    def _run(self, name: str, rows: list[tuple[Any, ...]]) -> int:
        if self._context.postgresql:
            return int(self._context.ask(_POSTGRESQL[name], columns(rows)).rowcount)
        return _SQLITE[name].run(self._context.cursor(), rows)

    def _hold(self, delivery_ids: Iterable[int]) -> None:
        """Their lanes first: nobody starts one of them while it is moved."""
        owners = select(deliveries.c.account_id).where(deliveries.c.id.in_(list(delivery_ids)))
        found = self._connection.execute(owners.distinct()).scalars()
        self._context.hold_lanes(owner for owner in found if owner is not None)

    def recall(self, account_id: int, at: Instant) -> int:
        self._context.hold_lanes([account_id])
        return self._recall(deliveries.c.account_id == account_id, *_put_off_till(at), at=at)

    def recall_pooled(self, account_id: int, at: Instant) -> int:
        pools = select(run_accounts.c.run_id).where(run_accounts.c.account_id == account_id)
        nobodys = deliveries.c.account_id.is_(None)
        found = select(deliveries.c.id).where(
            nobodys, deliveries.c.run_id.in_(pools), *_put_off_till(at)
        )
        # What an account is about to take needs nobody's help.
        free = found.order_by(deliveries.c.id).with_for_update(skip_locked=True, key_share=True)
        return self._recall(nobodys, deliveries.c.id.in_(free), at=at)

    def _recall(self, *which: ColumnElement[bool], at: Instant) -> int:
        planned_at = deliveries.c.scheduled_at
        due_at = case((planned_at > at, planned_at), else_=at)
        statement = update(deliveries).where(*which).values(due_at=due_at, reason="")
        return self._connection.execute(statement).rowcount


def _put_off_till(at: Instant) -> tuple[ColumnElement[bool], ...]:
    """What a gate has put off until after ``at``."""
    return (
        deliveries.c.due_at.is_not(None),
        deliveries.c.due_at > deliveries.c.scheduled_at,
        deliveries.c.due_at > at,
        deliveries.c.state == spelled(_READY),
        deliveries.c.attempts == 0,
        or_(*(deliveries.c.reason.startswith(words) for words in PUT_OFF_WORDS)),
    )
