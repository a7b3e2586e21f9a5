"""Ways to answer that are held, and the conversations that wait for them."""

from __future__ import annotations

from builtins import list as list_of
from typing import Any

from sqlalchemy import JSON, ColumnElement, bindparam, cast, delete, exists, func, or_, select, text
from sqlalchemy import update as change

from paceline.core.instants import Instant
from paceline.engine.ports.held_ways import HeldWay
from paceline.store.base import Subject, storable
from paceline.store.prepared import Prepared
from paceline.store.schema import accounts, conversations, held_ways, inbound, turns

IS_ACTIVE = text("turns.state IN ('thinking', 'replying')")
"""Spelled as the index has it: SQLite would not see that it is the same."""

UNATTENDED = (
    conversations.c.mode == "auto",
    conversations.c.due_at.is_not(None),
    ~exists().where(turns.c.conversation_id == conversations.c.id).where(IS_ACTIVE),
)
"""Of conversations that have a turn to come, and none yet."""


def way_of_account(*, on_postgresql: bool) -> ColumnElement[Any]:
    """The name of the way in which an account answers."""
    written = accounts.c.answering
    if on_postgresql:
        return func.json_extract_path_text(cast(written, JSON), "way")
    return func.json_extract(written, "$.way")


def is_held(tried_since: ColumnElement[Any], *, on_postgresql: bool) -> ColumnElement[bool]:
    """Of a conversation: whether the way in which its account answers is held, and tried now and
    then. One that is not has been removed from everybody's settings, and holds nobody back."""
    way = way_of_account(on_postgresql=on_postgresql)
    return exists().where(
        accounts.c.id == conversations.c.account_id,
        held_ways.c.way == way,
        held_ways.c.try_at > tried_since,
    )


class HeldWays(Subject):
    def list(self) -> list_of[HeldWay]:
        return [HeldWay(*row) for row in _ALL.run(self._context).fetchall()]

    def find(self, way: str) -> HeldWay | None:
        statement = select(*held_ways.c).where(held_ways.c.way == storable(way))
        row = self._connection.execute(statement).first()
        return None if row is None else HeldWay(*row)

    def hold(self, way: str, reason: str, at: Instant, try_at: Instant) -> bool:
        insert = self._context.insert(held_ways).values(
            way=storable(way), reason=storable(reason), since_at=at, tries=0, try_at=try_at
        )
        new = insert.on_conflict_do_nothing().returning(held_ways.c.way)
        if self._connection.execute(new).first() is not None:
            return True
        known = change(held_ways).where(held_ways.c.way == storable(way))
        self._connection.execute(known.values(reason=storable(reason)))
        return False

    def put_off(self, held: HeldWay, try_at: Instant) -> bool:
        # Whoever was faster has counted it; whoever was held anew counts from the beginning.
        statement = change(held_ways).where(
            held_ways.c.way == held.way,
            held_ways.c.since_at == held.since_at,
            held_ways.c.tries == held.tries,
            held_ways.c.try_at == held.try_at,
        )
        found = self._connection.execute(statement.values(tries=held.tries + 1, try_at=try_at))
        return bool(found.rowcount)

    def release(self, way: str, since_at: Instant | None = None) -> HeldWay | None:
        statement = delete(held_ways).where(held_ways.c.way == storable(way))
        if since_at is not None:
            statement = statement.where(held_ways.c.since_at == since_at)
        row = self._connection.execute(statement.returning(*held_ways.c)).first()
        return None if row is None else HeldWay(*row)

    def longest_due(self, way: str, at: Instant) -> int | None:
        row = _LONGEST_DUE.run(self._context, way=way, now=at).fetchone()
        return None if row is None else row[0]

    def overdue(self, first_before_at: Instant, limit: int) -> list_of[tuple[int, HeldWay]]:
        found = _OVERDUE.run(self._context, before=first_before_at, most=limit).fetchall()
        return [(row[0], HeldWay(*row[1:])) for row in found]


_ALL = Prepared(lambda _: select(*held_ways.c).order_by(held_ways.c.way))
_LONGEST_DUE = Prepared(
    lambda on_postgresql: (
        select(conversations.c.id)
        .join(accounts, accounts.c.id == conversations.c.account_id)
        .where(*UNATTENDED, conversations.c.due_at <= bindparam("now"))
        .where(way_of_account(on_postgresql=on_postgresql) == bindparam("way"))
        .order_by(conversations.c.due_at, conversations.c.id)
        .limit(1)
    )
)
# What took long to be told has waited for as long as its provider says.
_written_before = exists().where(
    inbound.c.conversation_id == conversations.c.id,
    inbound.c.turn_id.is_(None),
    inbound.c.at < bindparam("before"),
)
_OVERDUE = Prepared(
    lambda on_postgresql: (
        select(conversations.c.id, *held_ways.c)
        .join(accounts, accounts.c.id == conversations.c.account_id)
        .join(held_ways, held_ways.c.way == way_of_account(on_postgresql=on_postgresql))
        .where(*UNATTENDED, or_(conversations.c.first_at < bindparam("before"), _written_before))
        .order_by(conversations.c.due_at, conversations.c.id)
        .limit(bindparam("most"))
    )
)
