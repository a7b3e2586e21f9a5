"""Conversations and their turns.

Whoever changes a conversation holds its row: what comes in and what is taken into a turn happen one
after the other, on SQLite because there is one writer. That there is one active turn at a time is
the partial unique index's affair, whatever anybody has forgotten to look at.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    update,
)

from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.core.states import TURN, DeliveryState, TurnState
from paceline.engine.ports.conversations import Conversation, Met, Mode, Replied, Turn, Waiting
from paceline.engine.ports.inbox import Received
from paceline.store import rows, standing
from paceline.store.base import Subject, insert_into, storable
from paceline.store.held_ways import IS_ACTIVE as _IS_ACTIVE
from paceline.store.held_ways import UNATTENDED as _UNATTENDED
from paceline.store.held_ways import is_held, way_of_account
from paceline.store.muting import hears, is_muted
from paceline.store.prepared import Prepared, among_words, worded
from paceline.store.schema import (
    accounts,
    conversations,
    deliveries,
    inbound,
    turns,
)

OPEN = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)
"""States of an answer that may yet go out by itself."""


class Conversations(Subject):
    def hear(
        self, account_id: int, chat: str, at: Instant, names: Collection[str] = ()
    ) -> Conversation:
        hears(self._context)
        called = worded(self._context, {keepable_name(name) for name in (chat, *names)})
        values = {"account_id": account_id, "chat": keepable_name(chat), "at": at, "names": called}
        return Conversation(*_HEAR.run(self._context, **values).fetchone())

    def hold(self, conversation_id: int) -> Conversation:
        row = _HOLD.run(self._context, number=conversation_id).fetchone()
        return Conversation(*rows.found(row, "conversation", conversation_id))

    def get(self, conversation_id: int) -> Conversation | None:
        statement = select(*conversations.c).where(conversations.c.id == conversation_id)
        row = self._connection.execute(statement).first()
        return None if row is None else Conversation(*row)

    def find(self, account_id: int, chat: str) -> Conversation | None:
        statement = select(*conversations.c).where(
            conversations.c.account_id == account_id, conversations.c.chat == keepable_name(chat)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else Conversation(*row)

    def change(self, conversation_id: int, **changes: Any) -> None:
        if "reason" in changes:
            changes["reason"] = storable(changes["reason"])
        if "mode" in changes:
            # What was is remembered by who mutes, and by nobody else.
            changes.setdefault("before_mute", None)
        statement = update(conversations).where(conversations.c.id == conversation_id)
        self._connection.execute(statement.values(changes))

    def due(
        self, at: Instant, limit: int, ways: Collection[str], anyway_at: Instant
    ) -> list_of[Conversation]:
        asked = {"now": at, "most": limit, "anyway_at": anyway_at}
        found = _DUE.run(self._context, **asked, ways=worded(self._context, ways))
        return [Conversation(*row) for row in found.fetchall()]

    def next_due_at(self) -> Instant | None:
        statement = select(func.min(conversations.c.due_at)).where(*_UNATTENDED)
        found: Instant | None = self._connection.execute(statement).scalar_one()
        return found

    def list(
        self,
        *,
        account_id: int | None = None,
        modes: Sequence[Mode] = (),
        waiting: bool = False,
        limit: int = 50,
    ) -> list_of[Conversation]:
        statement = select(*conversations.c)
        if account_id is not None:
            statement = statement.where(conversations.c.account_id == account_id)
        if modes:
            statement = statement.where(conversations.c.mode.in_(modes))
        if waiting:
            statement = statement.where(conversations.c.first_at.is_not(None))
        newest = statement.order_by(conversations.c.heard_at.desc(), conversations.c.id.desc())
        return [Conversation(*row) for row in self._connection.execute(newest.limit(limit))]

    def waiting(self) -> list_of[Waiting]:
        return standing.waiting(self._connection)

    def blot_out(self, renamed: Mapping[str, str]) -> None:
        for before, after in renamed.items():
            theirs = update(conversations).where(conversations.c.chat == before)
            # Whoever was erased once, and has written again, has another one of that name.
            older = conversations.alias("older")
            taken = exists().where(
                older.c.account_id == conversations.c.account_id, older.c.chat == after
            )
            numbered = literal(f"{after}#") + cast(conversations.c.id, Text)
            name = case((taken, numbered), else_=after)
            # A person whom they were handed to needs no reason any more to answer nobody.
            blank = {"mode": "muted", "reason": "", "before_mute": None}
            self._connection.execute(theirs.values(chat=name, **blank))


def _hear(on_postgresql: bool) -> Any:
    at: Any = bindparam("at")
    muted = is_muted("names", on_postgresql=on_postgresql)
    known = conversations.c.heard_at
    fresh = insert_into(conversations, on_postgresql=on_postgresql).values(
        account_id=bindparam("account_id"),
        chat=bindparam("chat"),
        mode=case((muted, "muted"), else_="auto"),
        reason="",
        heard_at=at,
        created_at=at,
    )
    later = func.greatest(known, at) if on_postgresql else func.max(known, at)
    return fresh.on_conflict_do_update(
        index_elements=["account_id", "chat"], set_={"heard_at": later}
    ).returning(*conversations.c)


_HEAR = Prepared(_hear)


def _due(on_postgresql: bool) -> Select[Any]:
    way = way_of_account(on_postgresql=on_postgresql)
    # Here, and not where they are read: those that nobody here can answer would fill the page.
    known = exists().where(
        accounts.c.id == conversations.c.account_id,
        among_words(way, "ways", on_postgresql=on_postgresql),
    )
    return (
        select(*conversations.c)
        .where(*_UNATTENDED, conversations.c.due_at <= bindparam("now"))
        .where(or_(conversations.c.due_at < bindparam("anyway_at"), known))
        .where(~is_held(bindparam("anyway_at"), on_postgresql=on_postgresql))
        .order_by(conversations.c.due_at, conversations.c.id)
        .limit(bindparam("most"))
    )


_DUE = Prepared(_due)


class Turns(Subject):
    def begin(
        self, conversation_id: int, owner: str, lease_us: int | None, at: Instant
    ) -> Turn | None:
        until_at = None if lease_us is None else self._context.now + lease_us
        values = {"conversation": conversation_id, "owner": storable(owner), "until_at": until_at}
        row = _BEGIN.run(self._context, **values, at=at).fetchone()
        if row is None:
            return None
        turn = turn_of(row)
        if not self.add_waiting(turn):
            # Nothing to be answered: as if nobody had begun.
            self._connection.execute(turns.delete().where(turns.c.id == turn.id))
            return None
        return turn

    def add_waiting(self, turn: Turn) -> int:
        named = {"conversation": turn.conversation_id, "turn": turn.id}
        count: int = _TAKE_WAITING.run(self._context, **named).rowcount
        _NOTHING_WAITS.run(self._context, conversation=turn.conversation_id)
        return count

    def give_back(self, turn: Turn) -> None:
        theirs = inbound.c.conversation_id == turn.conversation_id
        taken = update(inbound).where(theirs, inbound.c.turn_id == turn.id)
        self._connection.execute(taken.values(turn_id=None))

    def stale(self, longest_us: int, limit: int) -> list_of[Turn]:
        now = self._context.now
        asked = {"now": now, "beyond_at": now + longest_us, "most": limit}
        return [turn_of(row) for row in _STALE.run(self._context, **asked).fetchall()]

    def take_over(
        self, turn: Turn, owner: str, lease_us: int, at: Instant, longest_us: int
    ) -> Turn | None:
        now = self._context.now
        values = {
            "started_at": at,
            "owner": storable(owner),
            "generation": turn.generation + 1,
            "lease_until_at": now + lease_us,
            "attempts": turn.attempts + 1,
        }
        left = (turns.c.state == str(TurnState.THINKING), _left_alone(now, now + longest_us))
        statement = update(turns).where(*_held(turn), *left)
        return self._one(statement.values(values).returning(*turns.c))

    def again(self, turn: Turn, lease_us: int) -> Turn | None:
        values = {"attempts": turn.attempts + 1, "lease_until_at": self._context.now + lease_us}
        thinking = turns.c.state == str(TurnState.THINKING)
        statement = update(turns).where(*_held(turn), thinking).values(values)
        return self._one(statement.returning(*turns.c))

    def renew(self, turn: Turn, lease_us: int) -> bool:
        values = {"lease_until_at": self._context.now + lease_us}
        return self._changed(turn, (TurnState.THINKING,), values)

    def move(self, turn: Turn, event: str, at: Instant, **changes: Any) -> bool:
        sources = TURN.sources(event)
        state = TURN.next(sources[0], event)
        values: dict[str, Any] = {"state": str(state), "lease_until_at": None, **changes}
        if "reason" in values:
            values["reason"] = storable(values["reason"])
        if state in TURN.resting:
            values["ended_at"] = at
        return self._changed(turn, tuple(sources), values)

    def _changed(self, turn: Turn, states: tuple[TurnState, ...], values: dict[str, Any]) -> bool:
        """Whether it was ours, and in one of these states."""
        change = _change(states, tuple(values))
        held = {"held_id": turn.id, "held_generation": turn.generation}
        return bool(change.run(self._context, **held, **values).rowcount)

    def get(self, turn_id: int) -> Turn:
        row = self._connection.execute(select(*turns.c).where(turns.c.id == turn_id)).first()
        return turn_of(rows.found(row, "turn", turn_id))

    def active(self, conversation_id: int | None = None) -> list_of[Turn]:
        statement = select(*turns.c).where(_IS_ACTIVE)
        if conversation_id is not None:
            statement = statement.where(turns.c.conversation_id == conversation_id)
        return [turn_of(row) for row in self._connection.execute(statement.order_by(turns.c.id))]

    def replied(self, limit: int) -> list_of[Replied]:
        found = _REPLIED.run(self._context, most=limit).fetchall()
        return [Replied(turn_of(row[:-2]), DeliveryState(row[-2]), row[-1] or "") for row in found]

    def met(self, since_at: Instant, latest: int) -> Met:
        return standing.met(self._connection, since_at, latest)

    def of_conversation(self, conversation_id: int, limit: int) -> list_of[Turn]:
        found = _LATEST.run(self._context, conversation=conversation_id, most=limit)
        return [turn_of(row) for row in found.fetchall()]

    def taken(self, turn_id: int) -> list_of[Received]:
        found = TAKEN.run(self._context, turn=turn_id)
        return [rows.received(row) for row in found.fetchall()]

    def _one(self, statement: Any) -> Turn | None:
        row = self._connection.execute(statement).first()
        return None if row is None else turn_of(row)


@cache
def _change(states: tuple[TurnState, ...], names: tuple[str, ...]) -> Prepared:
    """New values of a turn, of which there are few."""
    ours = (turns.c.id == bindparam("held_id"), turns.c.generation == bindparam("held_generation"))
    allowed = or_(*(turns.c.state == str(state) for state in states))
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return Prepared(lambda _: update(turns).where(*ours, allowed).values(values))


_HOLD = Prepared(
    lambda _: (
        select(*conversations.c).where(conversations.c.id == bindparam("number")).with_for_update()
    )
)
_BEGIN = Prepared(
    lambda on_postgresql: (
        insert_into(turns, on_postgresql=on_postgresql)
        .values(
            conversation_id=bindparam("conversation"),
            state=str(TURN.start),
            owner=bindparam("owner"),
            generation=1,
            lease_until_at=bindparam("until_at"),
            attempts=1,
            reason="",
            started_at=bindparam("at"),
        )
        .on_conflict_do_nothing()
        .returning(*turns.c)
    )
)
_TAKE_WAITING = Prepared(
    lambda _: (
        update(inbound)
        .where(inbound.c.conversation_id == bindparam("conversation"), inbound.c.turn_id.is_(None))
        .values(turn_id=bindparam("turn"))
    )
)
_NOTHING_WAITS = Prepared(
    lambda _: (
        update(conversations)
        .where(conversations.c.id == bindparam("conversation"))
        .values(first_at=null(), last_at=null(), due_at=null())
    )
)
_LATEST = Prepared(
    lambda _: (
        select(*turns.c)
        .where(turns.c.conversation_id == bindparam("conversation"))
        .order_by(turns.c.id.desc())
        .limit(bindparam("most"))
    )
)


def _taken(_: bool) -> Select[Any]:
    number: Any = bindparam("turn")
    # By its conversation, which is what the index begins with.
    whose = select(turns.c.conversation_id).where(turns.c.id == number).scalar_subquery()
    theirs = (inbound.c.conversation_id == whose, inbound.c.turn_id == number)
    # Reports may overtake each other: what counts is when it was written.
    return select(*inbound.c).where(*theirs).order_by(inbound.c.at, inbound.c.id)


TAKEN = Prepared(_taken)


def _held(turn: Turn) -> tuple[Any, ...]:
    return turns.c.id == turn.id, turns.c.generation == turn.generation


def turn_of(row: Any) -> Turn:
    turn = Turn(*row)
    return turn._replace(state=TurnState(turn.state))


def _left_alone(now: Any, beyond_at: Any) -> Any:
    return or_(turns.c.lease_until_at <= now, turns.c.lease_until_at > beyond_at)


# Every process looks for these twice a second.
_STALE = Prepared(
    lambda _: (
        select(*turns.c)
        .where(_IS_ACTIVE, turns.c.state == str(TurnState.THINKING))
        .where(_left_alone(bindparam("now"), bindparam("beyond_at")))
        .order_by(turns.c.id)
        .limit(bindparam("most"))
    )
)
# One that is in doubt is open as long as the lane looks into it by itself.
_OVER = and_(
    *(deliveries.c.state != str(state) for state in OPEN),
    or_(deliveries.c.state != str(DeliveryState.UNKNOWN), deliveries.c.due_at.is_(None)),
)
_REPLIED = Prepared(
    lambda _: (
        select(*turns.c, deliveries.c.state, deliveries.c.reason)
        .join(deliveries, and_(deliveries.c.id == turns.c.delivery_id, _OVER))
        .where(_IS_ACTIVE, turns.c.state == str(TurnState.REPLYING))
        .order_by(turns.c.id)
        .limit(bindparam("most"))
    )
)
