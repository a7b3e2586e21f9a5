"""People whom nobody answers, whichever account they write to."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, select

from paceline.core.instants import Instant
from paceline.engine.ports.conversations import Conversation
from paceline.store.base import Subject, storable
from paceline.store.schema import conversations, muted_people


class Muting(Subject):
    def add(self, addresses: Collection[str], at: Instant) -> None:
        rows = [{"address": address, "at": at} for address in _stored(addresses)]
        if rows:
            insert = self._context.insert(muted_people).on_conflict_do_nothing()
            self._connection.execute(insert, rows)

    def remove(self, addresses: Collection[str]) -> int:
        named = muted_people.c.address.in_(_stored(addresses))
        return self._connection.execute(delete(muted_people).where(named)).rowcount

    def among(self, addresses: Collection[str]) -> frozenset[str]:
        stored = {address: storable(address) for address in addresses}
        named = muted_people.c.address.in_(sorted(set(stored.values())))
        found = set(self._connection.execute(select(muted_people.c.address).where(named)).scalars())
        return frozenset(address for address, kept in stored.items() if kept in found)

    def conversations(self, addresses: Collection[str]) -> list[Conversation]:
        theirs = conversations.c.chat.in_(_stored(addresses))
        statement = select(*conversations.c).where(theirs).order_by(conversations.c.id)
        return [Conversation(*row) for row in self._connection.execute(statement)]


def _stored(addresses: Collection[str]) -> list[str]:
    return sorted({storable(address) for address in addresses})
