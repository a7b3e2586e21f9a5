"""How conversations stand as a whole: what waits, and how much of what came in met a turn."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, case, exists, func, or_, select

from paceline.core.instants import Instant
from paceline.engine.ports.conversations import Met, Waiting
from paceline.store.schema import conversations, inbound, turns


def waiting(connection: Connection) -> list[Waiting]:
    first_at = conversations.c.first_at
    statement = (
        select(conversations.c.mode, func.count(), func.min(first_at))
        .where(first_at.is_not(None))
        .group_by(conversations.c.mode)
        .order_by(conversations.c.mode)
    )
    return [Waiting(*row) for row in connection.execute(statement)]


def met(connection: Connection, since_at: Instant, latest: int) -> Met:
    """By their numbers first: however much ever came in, only the latest are looked at."""
    newest: Select[Any] = (
        select(inbound.c.conversation_id, inbound.c.received_at)
        .order_by(inbound.c.id.desc())
        .limit(latest)
    )
    came = newest.subquery()
    at = came.c.received_at
    busy = exists().where(
        turns.c.conversation_id == came.c.conversation_id,
        turns.c.started_at < at,
        or_(turns.c.ended_at.is_(None), turns.c.ended_at > at),
    )
    statement = select(func.count(), func.coalesce(func.sum(case((busy, 1), else_=0)), 0)).where(
        came.c.conversation_id.is_not(None), at > since_at
    )
    heard, meeting = connection.execute(statement).one()
    return Met(int(heard), int(meeting))
