"""How far outgoing webhooks have come. One process at a time brings events to each.

As with lanes, a webhook is held by naming its generation until its lease ends by the database's
clock, and every write is one guarded UPDATE: whoever comes second changes nothing and is told so.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, func, or_, select, update

from paceline.engine.ports.events import Hook
from paceline.store.base import Subject, storable
from paceline.store.prepared import Prepared
from paceline.store.schema import events, webhooks

_LAST = select(func.coalesce(func.max(events.c.id), 0)).scalar_subquery()


class Hooks(Subject):
    """Where each webhook is, and who is at it."""

    def open(self, name: str) -> None:
        self._connection.execute(
            self._context.insert(webhooks)
            .values(
                name=name,
                cursor=_LAST,
                generation=0,
                failures=0,
                problem="",
                delivered=0,
                skipped=0,
                created_at=self._context.now,
            )
            .on_conflict_do_nothing()
        )

    def list(self) -> list_of[Hook]:
        statement = select(*webhooks.c).order_by(webhooks.c.name)
        return [Hook(*row) for row in self._connection.execute(statement)]

    def get(self, name: str) -> Hook | None:
        statement = select(*webhooks.c).where(webhooks.c.name == name)
        row = self._connection.execute(statement).first()
        return None if row is None else Hook(*row)

    def waiting(self, name: str, kinds: Sequence[str]) -> int:
        cursor = select(webhooks.c.cursor).where(webhooks.c.name == name).scalar_subquery()
        statement = (
            select(func.count())
            .select_from(events)
            .where(events.c.id > cursor, events.c.kind.in_(kinds))
        )
        return int(self._connection.execute(statement).scalar_one())

    def is_due(self, name: str) -> bool:
        found = _IS_DUE.run(self._context, whose=name, present=self._context.now)
        return found.fetchone() is not None

    def take(self, name: str, lease_us: int) -> Hook | None:
        now = self._context.now
        statement = (
            update(webhooks)
            .where(_due())
            .values(generation=webhooks.c.generation + 1, lease_until_at=now + lease_us)
            .returning(*webhooks.c)
        )
        row = self._connection.execute(statement, {"whose": name, "present": now}).first()
        return None if row is None else Hook(*row)

    def change(self, held: Hook, **changes: Any) -> Hook | None:
        if "problem" in changes:
            changes["problem"] = storable(changes["problem"])
        statement = (
            update(webhooks)
            .where(webhooks.c.name == held.name, webhooks.c.generation == held.generation)
            .values(changes)
            .returning(*webhooks.c)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else Hook(*row)

    def resume(self, name: str, cursor: int | None) -> Hook | None:
        statement = (
            update(webhooks)
            .where(webhooks.c.name == name)
            .values(
                cursor=webhooks.c.cursor if cursor is None else cursor,
                generation=webhooks.c.generation + 1,
                lease_until_at=None,
                failures=0,
                failing_since_at=None,
                next_try_at=None,
                disabled_at=None,
            )
            .returning(*webhooks.c)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else Hook(*row)


def _due() -> ColumnElement[bool]:
    """Not disabled, its next try has come, nobody is at it, and there is something to bring."""
    now = bindparam("present", type_=BigInteger)
    return and_(
        webhooks.c.name == bindparam("whose"),
        webhooks.c.disabled_at.is_(None),
        or_(webhooks.c.next_try_at.is_(None), webhooks.c.next_try_at <= now),
        or_(webhooks.c.lease_until_at.is_(None), webhooks.c.lease_until_at <= now),
        webhooks.c.cursor < _LAST,
    )


_IS_DUE = Prepared(lambda _: select(webhooks.c.name).where(_due()))
