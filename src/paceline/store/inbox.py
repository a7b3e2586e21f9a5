"""What comes in: messages, each once, and how far mailboxes have been read.

As with lanes, a mailbox is held by naming its generation until its lease ends by the database's
clock, and every write is one guarded UPDATE: whoever comes second changes nothing and is told so.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Mapping, Sequence, Set
from typing import Any

from sqlalchemy import Text, bindparam, cast, literal, or_, select, update

from paceline.core.enclosures import MOST_FILES
from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.engine.ports.inbox import Received, Watch
from paceline.engine.ports.webhooks import Inbound
from paceline.store import rows
from paceline.store.base import Subject, dump, insert_into, storable
from paceline.store.prepared import Prepared
from paceline.store.schema import inbound, watches

LONGEST_MESSAGE = 65_536
"""Characters of a message that are kept: as many as WhatsApp takes, and more than anybody types."""

_COLUMNS = [
    column.name for column in inbound.c if column.name not in ("id", "conversation_id", "turn_id")
]
"""What is written of a message when it comes."""


class Inbox(Subject):
    def add(
        self, account_id: int, message: Inbound, delivery_id: int | None, at: Instant
    ) -> int | None:
        values = values_of(account_id, message, delivery_id, at)
        row = _ADD.run(self._context, **values).fetchone()
        return None if row is None else int(row[0])

    def put_into(self, received_id: int, conversation_id: int) -> None:
        _PUT_INTO.run(self._context, received_id=received_id, conversation=conversation_id)

    def has(self, account_id: int, provider_id: str) -> bool:
        name = keepable_name(provider_id)
        named = (inbound.c.account_id == account_id, inbound.c.provider_id == name)
        return self._connection.execute(select(inbound.c.id).where(*named)).first() is not None

    def waiting(self, conversation_id: int) -> list_of[Received]:
        theirs = (inbound.c.conversation_id == conversation_id, inbound.c.turn_id.is_(None))
        statement = select(*inbound.c).where(*theirs).order_by(inbound.c.id)
        return [rows.received(row) for row in self._connection.execute(statement)]

    def of_conversation(self, conversation_id: int, limit: int) -> list_of[Received]:
        found = _LATEST.run(self._context, conversation=conversation_id, most=limit)
        return [rows.received(row) for row in found.fetchall()]

    def written_since(self, senders: Set[str], at: Instant) -> list_of[Received]:
        theirs = inbound.c.sender.in_(sorted(keepable_name(name) for name in senders))
        said = (inbound.c.conversation_id.is_not(None), inbound.c.at > at)
        statement = select(*inbound.c).where(theirs, *said).order_by(inbound.c.at, inbound.c.id)
        return [rows.received(row) for row in self._connection.execute(statement)]

    def knows(self, addresses: Sequence[str]) -> bool:
        self._context.unhurried()
        theirs = or_(inbound.c.sender.in_(addresses), inbound.c.chat.in_(addresses))
        found = self._connection.execute(select(inbound.c.id).where(theirs).limit(1))
        return found.first() is not None

    def latest(self, account_id: int | None = None, limit: int = 50) -> list_of[Received]:
        statement = select(*inbound.c).order_by(inbound.c.id.desc()).limit(limit)
        if account_id is not None:
            statement = statement.where(inbound.c.account_id == account_id)
        return [rows.received(row) for row in self._connection.execute(statement)]

    def blot_out(self, renamed: Mapping[str, str]) -> int:
        found = 0
        for before, after in renamed.items():
            theirs = or_(inbound.c.sender == before, inbound.c.chat == before)
            # The name that their own mail system gave it may say where they are.
            name = literal("erased:") + cast(inbound.c.id, Text)
            blank = {"sender": after, "chat": after, "subject": "", "text": "", "files": None}
            values = {**blank, "provider_id": name}
            found += self._connection.execute(update(inbound).where(theirs).values(values)).rowcount
        return found


_ADD = Prepared(
    lambda on_postgresql: (
        insert_into(inbound, on_postgresql=on_postgresql)
        .values({name: bindparam(name) for name in _COLUMNS})
        .on_conflict_do_nothing()
        .returning(inbound.c.id)
    )
)
_LATEST = Prepared(
    lambda _: (
        select(*inbound.c)
        .where(inbound.c.conversation_id == bindparam("conversation"))
        .order_by(inbound.c.id.desc())
        .limit(bindparam("most"))
    )
)
_PUT_INTO = Prepared(
    lambda _: (
        update(inbound)
        .where(inbound.c.id == bindparam("received_id"))
        .values(conversation_id=bindparam("conversation"))
    )
)


def values_of(
    account_id: int, message: Inbound, delivery_id: int | None, at: Instant
) -> dict[str, Any]:
    """A message as it is stored, by column."""
    return {
        "account_id": account_id,
        "provider_id": keepable_name(message.provider_id),
        "chat": keepable_name(message.chat),
        "sender": keepable_name(message.sender),
        "subject": storable(message.subject),
        "text": storable(message.text, LONGEST_MESSAGE),
        "files": _written(message),
        "kind": storable(message.kind),
        "automatic": message.automatic,
        "from_us": message.from_us,
        "delivery_id": delivery_id,
        "at": message.at or at,
        "received_at": at,
    }


def _written(message: Inbound) -> str | None:
    """The files as they are stored; none of most messages."""
    if not message.files:
        return None
    # Escaped, so that whatever a file is called can be stored.
    return dump([file.to_mapping() for file in message.files[:MOST_FILES]])


class Watches(Subject):
    def take(self, account_id: int, lease_us: int) -> Watch | None:
        self._connection.execute(
            self._context.insert(watches)
            .values(account_id=account_id, cursor="", generation=0, problem="")
            .on_conflict_do_nothing()
        )
        now = self._context.now
        free = or_(watches.c.lease_until_at.is_(None), watches.c.lease_until_at <= now)
        statement = (
            update(watches)
            .where(watches.c.account_id == account_id, free)
            .values(generation=watches.c.generation + 1, lease_until_at=now + lease_us)
            .returning(*watches.c)
        )
        return self._one(statement)

    def change(self, held: Watch, lease_us: int | None, **changes: Any) -> Watch | None:
        if "problem" in changes:
            changes["problem"] = storable(changes["problem"])
        until_at = None if lease_us is None else self._context.now + lease_us
        ours = (watches.c.account_id == held.account_id, watches.c.generation == held.generation)
        statement = (
            update(watches)
            .where(*ours)
            .values(lease_until_at=until_at, **changes)
            .returning(*watches.c)
        )
        return self._one(statement)

    def list(self) -> list_of[Watch]:
        statement = select(*watches.c).order_by(watches.c.account_id)
        return [Watch(*row) for row in self._connection.execute(statement)]

    def _one(self, statement: Any) -> Watch | None:
        row = self._connection.execute(statement).first()
        return None if row is None else Watch(*row)
