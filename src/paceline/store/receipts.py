"""How far messages got after they were sent: delivered, read. Columns of a delivery, not states."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select, text, update

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.store import rows
from paceline.store.base import Subject, storable
from paceline.store.schema import deliveries

_SENDING = text("deliveries.state = 'sending'")
_NAMED = text("deliveries.provider_id IS NOT NULL")
"""Spelled as the indexes have them: SQLite would not see that it is the same."""


class Receipts(Subject):
    def named(self, account_id: int, provider_id: str) -> int | None:
        statement = (
            select(deliveries.c.id)
            .where(deliveries.c.account_id == account_id, _NAMED)
            .where(deliveries.c.provider_id == storable(provider_id))
            # A provider that gives one name to two means the one it gave it to last.
            .order_by(deliveries.c.id.desc())
            .limit(1)
        )
        found: int | None = self._connection.execute(statement).scalar_one_or_none()
        return found

    def note(self, delivery_id: int, at: Instant, *, read: bool) -> bool:
        unknown = deliveries.c.read_at if read else deliveries.c.delivered_at
        sent = deliveries.c.state == rows.spelled(DeliveryState.SENT)
        changes: dict[str, Any] = {"delivered_at": func.coalesce(deliveries.c.delivered_at, at)}
        if read:
            changes["read_at"] = at
        this = update(deliveries).where(deliveries.c.id == delivery_id, sent, unknown.is_(None))
        return bool(self._connection.execute(this.values(changes)).rowcount)

    def under_way(self, account_id: int) -> bool:
        ours = select(deliveries.c.id).where(deliveries.c.account_id == account_id, _SENDING)
        return self._connection.execute(ours.limit(1)).first() is not None
