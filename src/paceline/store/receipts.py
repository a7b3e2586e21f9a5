"""How far messages got after they were sent: delivered, read. Columns of a delivery, not states."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, delete, func, select, text, update

from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.core.states import DeliveryState
from paceline.engine.ports.receipts import Early
from paceline.store import rows
from paceline.store.base import Subject
from paceline.store.prepared import Prepared
from paceline.store.schema import deliveries, early_receipts

_SENDING = text("deliveries.state = 'sending'")
_NAMED = text("deliveries.provider_id IS NOT NULL")
"""Spelled as the indexes have them: SQLite would not see that it is the same."""


class Receipts(Subject):
    def named(self, account_id: int, provider_id: str) -> int | None:
        statement = (
            select(deliveries.c.id)
            .where(deliveries.c.account_id == account_id, _NAMED)
            .where(deliveries.c.provider_id == keepable_name(provider_id))
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

    def keep(self, account_id: int, provider_id: str, told_at: Instant, *, read: bool) -> None:
        first = self._context.insert(early_receipts).values(
            account_id=account_id,
            provider_id=keepable_name(provider_id),
            delivered_at=told_at,
            read_at=told_at if read else None,
            heard_at=self._context.now,
        )
        read_at = func.coalesce(early_receipts.c.read_at, first.excluded.read_at)
        self._connection.execute(
            first.on_conflict_do_update(
                index_elements=["account_id", "provider_id"], set_={"read_at": read_at}
            )
        )

    def early(self) -> bool:
        return bool(_ANY.run(self._context).fetchall())

    def known(self, limit: int) -> list[Early]:
        named = and_(
            deliveries.c.account_id == early_receipts.c.account_id,
            _NAMED,
            deliveries.c.provider_id == early_receipts.c.provider_id,
        )
        statement = (
            select(
                deliveries.c.id,
                early_receipts.c.account_id,
                early_receipts.c.provider_id,
                early_receipts.c.delivered_at,
                early_receipts.c.read_at,
            )
            .join_from(early_receipts, deliveries, named)
            # While it is in doubt nobody can have got it, as far as anybody knows.
            .where(deliveries.c.state.not_in(["sending", "unknown"]))
            .order_by(deliveries.c.id)
            .limit(limit)
        )
        return [Early(*row) for row in self._connection.execute(statement)]

    def forget(self, account_id: int, provider_id: str) -> None:
        this = (
            early_receipts.c.account_id == account_id,
            early_receipts.c.provider_id == provider_id,
        )
        self._connection.execute(delete(early_receipts).where(*this))

    def forget_older(self, than_us: int) -> int:
        old = early_receipts.c.heard_at < self._context.now - than_us
        return self._connection.execute(delete(early_receipts).where(old)).rowcount


_ANY = Prepared(lambda _: select(early_receipts.c.account_id).limit(1))
