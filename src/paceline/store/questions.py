"""The beginning of a turn, and what it is about.

On PostgreSQL each statement would be a round trip, so they are sent together, and the first that is
waited for is the last. Conversations are held before anything else is looked at: what is looked at
later in the same transaction sees all that was ever put into them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from paceline.core.address import written_to
from paceline.core.instants import Instant
from paceline.core.states import TURN
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.inbox import Received
from paceline.engine.ports.questions import Matter
from paceline.store import rows
from paceline.store.accounts import select_accounts
from paceline.store.base import BY_KEY, PG_NOW, Cursor, Subject, storable
from paceline.store.deliveries import SENT_TO, sent_to
from paceline.store.held_ways import IS_ACTIVE
from paceline.store.prepared import Prepared
from paceline.store.schema import (
    accounts,
    addresses,
    contacts,
    conversations,
    deliveries,
    inbound,
    turns,
)
from paceline.store.talking import TAKEN, Conversations, Turns, turn_of

Row = Sequence[Any]

_TURN = len(turns.c)


class Questions(Subject):
    def begin(
        self, conversation_id: int, owner: str, lease_us: int, at: Instant, most: int
    ) -> Matter | None:
        if self._context.postgresql:
            begun = self._begin_at_once(conversation_id, owner, lease_us, at, most)
            if begun is not None:
                return begun
            # Why there is none is found out below, and what has to be done about it is done.
        talk = Conversations(self._context).hold(conversation_id)
        if talk.mode != "auto" or talk.due_at is None or talk.due_at > at:
            return None
        turn = Turns(self._context).begin(talk.id, owner, lease_us, at)
        return None if turn is None else self.matter(turn, talk, most)

    def matter(self, turn: Turn, conversation: Conversation, most: int) -> Matter:
        context, talk, address = self._context, conversation.id, written_to(conversation.chat)
        with context.pipelined():
            whose = _WHOSE.run(context, talk=talk)
            taken = TAKEN.run(context, turn=turn.id)
            theirs = _BEFORE.run(context, talk=talk, most=most)
            ours = None if address is None else self._sent_to(conversation, address, most)
        return _matter(
            turn,
            conversation,
            [rows.received(row) for row in taken.fetchall()],
            rows.found(whose.fetchone(), "account", conversation.account_id),
            theirs.fetchall(),
            () if ours is None else ours.fetchall(),
        )

    def _begin_at_once(
        self, conversation_id: int, owner: str, lease_us: int, at: Instant, most: int
    ) -> Matter | None:
        context, named = self._context, {"talk": conversation_id}
        new = {**named, "owner": storable(owner), "lease_us": lease_us, "at": at}
        with context.pipelined():
            held = context.ask(_PG_HOLD, named)
            begun = context.ask(_PG_BEGIN, new)
            past = _PG_PAST.run(context, **named, most=most)
        (_, *row) = rows.found(held.fetchone(), "conversation", conversation_id)
        conversation, found = Conversation(*row), begun.fetchall()
        if not found:
            return None
        (*whose, theirs, ours) = rows.found(past.fetchone(), "account", conversation.account_id)
        address = written_to(conversation.chat)
        if address != conversation.chat:
            ours = () if address is None else self._sent_to(conversation, address, most).fetchall()
        taken = sorted((rows.received(row[_TURN:]) for row in found), key=_written)
        turn = turn_of(found[0][:_TURN])
        return _matter(turn, conversation, taken, whose, theirs or (), ours or ())

    def _sent_to(self, conversation: Conversation, address: str, most: int) -> Cursor:
        whom = {"account": conversation.account_id, "target": address}
        return SENT_TO.run(self._context, **whom, most=most)


def _matter(
    turn: Turn,
    conversation: Conversation,
    taken: Sequence[Received],
    whose: Row,
    theirs: Iterable[Row],
    ours: Iterable[Row],
) -> Matter:
    (*account, fields) = whose
    return Matter(
        turn,
        conversation,
        rows.account(account),
        taken,
        {} if fields is None else json.loads(fields),
        [rows.received(row) for row in theirs],
        [rows.delivery(row) for row in ours],
    )


def _written(message: Received) -> tuple[Instant, int]:
    """Reports may overtake each other: what counts is when it was written."""
    return message.at, message.id


def _column(name: str) -> Any:
    """One of the conversation's."""
    talk = conversations.c.id == bindparam("talk")
    return select(conversations.c[name]).where(talk).scalar_subquery()


def _whose(*more: Any) -> Select[Any]:
    """The account, and what is known of the person."""
    theirs = addresses.c.address == _column("chat")
    known = select(contacts.c.fields).join(addresses, addresses.c.contact_id == contacts.c.id)
    return select_accounts(known.where(theirs).scalar_subquery(), *more).where(
        accounts.c.id == _column("account_id")
    )


def _before() -> Select[Any]:
    """What they had written before."""
    talk: Any = bindparam("talk")
    active = select(turns.c.id).where(turns.c.conversation_id == talk, IS_ACTIVE).scalar_subquery()
    return (
        select(*inbound.c)
        .where(inbound.c.conversation_id == talk)
        .where(inbound.c.turn_id.is_not(None), inbound.c.turn_id != active)
        .order_by(inbound.c.id.desc())
        .limit(bindparam("most"))
    )


def _past(_: bool) -> Select[Any]:
    """All of that in one row, for PostgreSQL; and what was sent where they write from, which nearly
    always is where they are written to."""
    whose = deliveries.c.account_id == _column("account_id")
    ours = sent_to(deliveries.c.target == _column("chat"), whose)
    return _whose(_gathered(_before()), _gathered(ours))


def _gathered(statement: Select[Any]) -> Any:
    """Its rows as one value, in their order."""
    found = statement.subquery()
    return select(func.json_agg(func.json_build_array(*found.c))).scalar_subquery()


_WHOSE = Prepared(lambda _: _whose())
_BEFORE = Prepared(lambda _: _before())
_PG_PAST = Prepared(_past)

_PG_HOLD = f"""
SELECT {BY_KEY}, {", ".join(column.name for column in conversations.c)} FROM conversations
WHERE id = %(talk)s FOR UPDATE
"""
# The statement before it has waited for whoever held the conversation: this one sees what they did.
_PG_BEGIN = f"""
WITH begun AS (
    INSERT INTO turns (conversation_id, state, owner, generation, lease_until_at, attempts, reason,
        started_at)
    SELECT id, '{TURN.start}', %(owner)s, 1, {PG_NOW} + %(lease_us)s, 1, '', %(at)s
    FROM conversations WHERE id = %(talk)s AND mode = 'auto' AND due_at <= %(at)s
    AND EXISTS (SELECT 1 FROM inbound WHERE conversation_id = %(talk)s AND turn_id IS NULL)
    ON CONFLICT DO NOTHING RETURNING *
), taken AS (
    UPDATE inbound SET turn_id = begun.id FROM begun
    WHERE inbound.conversation_id = %(talk)s AND inbound.turn_id IS NULL RETURNING inbound.*
), calmed AS (
    UPDATE conversations SET first_at = NULL, last_at = NULL, due_at = NULL FROM begun
    WHERE conversations.id = %(talk)s
)
SELECT {", ".join(f"begun.{column.name}" for column in turns.c)},
    {", ".join(f"taken.{column.name}" for column in inbound.c)}
FROM begun CROSS JOIN taken
"""
