"""People whom nobody answers, whichever account they write to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, exists, or_, select, union

from paceline.core.address import is_somebodys
from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.engine.ports.conversations import Conversation
from paceline.store.base import Context, Subject
from paceline.store.locks import Lock
from paceline.store.prepared import among_words
from paceline.store.schema import addresses as known_addresses
from paceline.store.schema import conversations, deliveries, inbound, muted_people

HEARS = f"pg_advisory_xact_lock_shared({Lock.HEARING:d})"
"""What whoever hears of a message calls on PostgreSQL, in a statement before the one in which it is
looked for who is muted: that one sees all that was committed until then."""

_theirs = known_addresses.alias("theirs")
_OTHERS = (
    select(_theirs.c.address)
    .join_from(known_addresses, _theirs, _theirs.c.contact_id == known_addresses.c.contact_id)
    .correlate(None)
)
"""Addresses of the contacts that have some of these."""


class Muting(Subject):
    def add(self, addresses: Collection[str], at: Instant, by_id: int | None) -> None:
        self.learn(dict.fromkeys(addresses, by_id), at)

    def learn(self, by: Mapping[str, int | None], at: Instant) -> None:
        stored = {keepable_name(address): by_id for address, by_id in by.items()}
        # In one order: those who write down the same names at once wait for each other in it.
        rows = [{"address": one, "at": at, "by_id": stored[one]} for one in sorted(stored)]
        if rows:
            insert = self._context.insert(muted_people)
            # Before schema 0013 nobody wrote down what was muted together.
            filled = insert.on_conflict_do_update(
                index_elements=["address"],
                set_={"by_id": insert.excluded.by_id},
                where=muted_people.c.by_id.is_(None),
            )
            self._connection.execute(filled, rows)

    def remove(self, addresses: Collection[str]) -> int:
        named = muted_people.c.address.in_(sorted(self.of(addresses)))
        return self._connection.execute(delete(muted_people).where(named)).rowcount

    def among(self, addresses: Collection[str]) -> frozenset[str]:
        stored = {address: keepable_name(address) for address in addresses}
        named = muted_people.c.address.in_(sorted(set(stored.values())))
        found = set(self._connection.execute(select(muted_people.c.address).where(named)).scalars())
        return frozenset(address for address, kept in stored.items() if kept in found)

    def of(self, addresses: Collection[str]) -> dict[str, int | None]:
        wanted = _stored(addresses)
        others = _OTHERS.where(known_addresses.c.address.in_(wanted))
        named = or_(muted_people.c.address.in_(wanted), muted_people.c.address.in_(others))
        by = select(muted_people.c.by_id).where(named)
        statement = select(muted_people.c.address, muted_people.c.by_id).where(
            or_(named, muted_people.c.by_id.in_(by))
        )
        return dict(map(tuple, self._connection.execute(statement)))

    def names_in(self, conversation_id: int) -> frozenset[str]:
        said = (inbound.c.conversation_id == conversation_id, ~inbound.c.from_us)
        senders = select(inbound.c.sender).where(*said, inbound.c.sender != "")
        answered = select(deliveries.c.target).join_from(
            inbound,
            deliveries,
            (deliveries.c.id == inbound.c.delivery_id)
            & (deliveries.c.account_id == inbound.c.account_id),
        )
        chat = select(conversations.c.chat).where(conversations.c.id == conversation_id)
        wrote_from = not is_somebodys(self._connection.execute(chat).scalar() or "")
        asked = [answered.where(*said), *([senders] if wrote_from else ())]
        return frozenset(self._connection.execute(union(*asked)).scalars())

    def conversations(
        self, addresses: Collection[str], account_id: int | None = None
    ) -> list[Conversation]:
        wanted = _stored(addresses)
        written = select(inbound.c.conversation_id).where(
            inbound.c.sender.in_(wanted), inbound.c.conversation_id.is_not(None), ~inbound.c.from_us
        )
        theirs = or_(conversations.c.chat.in_(wanted), conversations.c.id.in_(written))
        statement = select(*conversations.c).where(theirs).order_by(conversations.c.id)
        if account_id is not None:
            statement = statement.where(conversations.c.account_id == account_id)
        found = [Conversation(*row) for row in self._connection.execute(statement)]
        return [one for one in found if one.chat in wanted or not is_somebodys(one.chat)]


def hears(context: Context) -> None:
    """Whoever hears of a message is in the way of nobody but those who ``hold_off``."""
    if context.postgresql:
        context.ask(f"SELECT {HEARS}").fetchall()


def is_muted(parameter: str, *, on_postgresql: bool) -> ColumnElement[bool]:
    """Whether somebody is who has one of the names in a parameter, or another address of a contact
    who has one of them."""

    def named(column: Any) -> ColumnElement[bool]:
        return among_words(column, parameter, on_postgresql=on_postgresql)

    others: Select[Any] = _OTHERS.where(named(known_addresses.c.address))
    return or_(
        exists().where(named(muted_people.c.address)),
        exists().where(muted_people.c.address.in_(others)),
    )


def _stored(addresses: Collection[str]) -> list[str]:
    return sorted({keepable_name(address) for address in addresses})
