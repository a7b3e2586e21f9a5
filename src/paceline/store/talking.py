"""Conversations and their turns.

Whoever changes a conversation holds its row: what comes in and what is taken into a turn happen one
after the other, on SQLite because there is one writer. That there is one active turn at a time is
the partial unique index's affair, whatever anybody has forgotten to look at.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, exists, func, or_, select, text, update

from paceline.core.instants import Instant
from paceline.core.states import TURN, DeliveryState, TurnState
from paceline.engine.ports.conversations import Conversation, Mode, Replied, Turn
from paceline.engine.ports.inbox import Received
from paceline.store import rows
from paceline.store.base import Subject, storable
from paceline.store.schema import conversations, deliveries, inbound, turns

ACTIVE = (TurnState.THINKING, TurnState.REPLYING)
OPEN = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)
"""States of an answer that may yet go out by itself."""


_IS_ACTIVE = text("turns.state IN ('thinking', 'replying')")
"""Spelled as the index has it: SQLite would not see that it is the same."""


class Conversations(Subject):
    def hear(self, account_id: int, chat: str, at: Instant, mode: Mode = "auto") -> Conversation:
        known = conversations.c.heard_at
        fresh = self._context.insert(conversations).values(
            account_id=account_id,
            chat=storable(chat),
            mode=mode,
            reason="",
            heard_at=at,
            created_at=at,
        )
        later = func.max(known, at) if not self._context.postgresql else func.greatest(known, at)
        statement = fresh.on_conflict_do_update(
            index_elements=["account_id", "chat"], set_={"heard_at": later}
        ).returning(*conversations.c)
        return Conversation(*self._connection.execute(statement).one())

    def hold(self, conversation_id: int) -> Conversation:
        statement = select(*conversations.c).where(conversations.c.id == conversation_id)
        row = self._connection.execute(statement.with_for_update()).first()
        return Conversation(*rows.found(row, "conversation", conversation_id))

    def get(self, conversation_id: int) -> Conversation | None:
        statement = select(*conversations.c).where(conversations.c.id == conversation_id)
        row = self._connection.execute(statement).first()
        return None if row is None else Conversation(*row)

    def find(self, account_id: int, chat: str) -> Conversation | None:
        statement = select(*conversations.c).where(
            conversations.c.account_id == account_id, conversations.c.chat == storable(chat)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else Conversation(*row)

    def change(self, conversation_id: int, **changes: Any) -> None:
        if "reason" in changes:
            changes["reason"] = storable(changes["reason"])
        statement = update(conversations).where(conversations.c.id == conversation_id)
        self._connection.execute(statement.values(changes))

    def due(self, at: Instant, limit: int) -> list_of[Conversation]:
        statement = (
            select(*conversations.c)
            .where(*_UNATTENDED, conversations.c.due_at <= at)
            .order_by(conversations.c.due_at, conversations.c.id)
            .limit(limit)
        )
        return [Conversation(*row) for row in self._connection.execute(statement)]

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

    def blot_out(self, renamed: Mapping[str, str]) -> None:
        for before, after in renamed.items():
            theirs = update(conversations).where(conversations.c.chat == before)
            # A person whom they were handed to needs no reason any more to answer nobody.
            self._connection.execute(theirs.values(chat=after, mode="muted", reason=""))


_UNATTENDED = (
    conversations.c.mode == "auto",
    conversations.c.due_at.is_not(None),
    ~exists()
    .where(turns.c.conversation_id == conversations.c.id)
    .where(turns.c.state.in_([str(state) for state in ACTIVE])),
)


class Turns(Subject):
    def begin(
        self, conversation_id: int, owner: str, lease_us: int | None, at: Instant
    ) -> Turn | None:
        until_at = None if lease_us is None else self._context.now + lease_us
        statement = (
            self._context.insert(turns)
            .values(
                conversation_id=conversation_id,
                state=str(TURN.start),
                owner=storable(owner),
                generation=1,
                lease_until_at=until_at,
                attempts=1,
                reason="",
                started_at=at,
            )
            .on_conflict_do_nothing()
            .returning(*turns.c)
        )
        turn = self._one(statement)
        if turn is None:
            return None
        if not self.add_waiting(turn):
            # Nothing to be answered: as if nobody had begun.
            self._connection.execute(turns.delete().where(turns.c.id == turn.id))
            return None
        return turn

    def add_waiting(self, turn: Turn) -> int:
        waiting = (
            inbound.c.conversation_id == turn.conversation_id,
            inbound.c.turn_id.is_(None),
        )
        taken = update(inbound).where(*waiting).values(turn_id=turn.id)
        count = self._connection.execute(taken).rowcount
        nothing = {"first_at": None, "last_at": None, "due_at": None}
        ours = conversations.c.id == turn.conversation_id
        self._connection.execute(update(conversations).where(ours).values(nothing))
        return count

    def give_back(self, turn: Turn) -> None:
        theirs = inbound.c.conversation_id == turn.conversation_id
        taken = update(inbound).where(theirs, inbound.c.turn_id == turn.id)
        self._connection.execute(taken.values(turn_id=None))

    def stale(self, older_at: Instant, limit: int) -> list_of[Turn]:
        statement = (
            select(*turns.c)
            .where(_IS_ACTIVE, turns.c.state == str(TurnState.THINKING))
            .where(self._left_alone(older_at))
            .order_by(turns.c.id)
            .limit(limit)
        )
        return [_turn(row) for row in self._connection.execute(statement)]

    def _left_alone(self, older_at: Instant) -> Any:
        return or_(turns.c.lease_until_at <= self._context.now, turns.c.started_at < older_at)

    def take_over(
        self, turn: Turn, owner: str, lease_us: int, at: Instant, older_at: Instant
    ) -> Turn | None:
        values = {
            "started_at": at,
            "owner": storable(owner),
            "generation": turn.generation + 1,
            "lease_until_at": self._context.now + lease_us,
            "attempts": turn.attempts + 1,
        }
        left = (turns.c.state == str(TurnState.THINKING), self._left_alone(older_at))
        statement = update(turns).where(*_held(turn), *left)
        return self._one(statement.values(values).returning(*turns.c))

    def again(self, turn: Turn, lease_us: int) -> Turn | None:
        values = {"attempts": turn.attempts + 1, "lease_until_at": self._context.now + lease_us}
        thinking = turns.c.state == str(TurnState.THINKING)
        statement = update(turns).where(*_held(turn), thinking).values(values)
        return self._one(statement.returning(*turns.c))

    def renew(self, turn: Turn, lease_us: int) -> bool:
        values = {"lease_until_at": self._context.now + lease_us}
        thinking = turns.c.state == str(TurnState.THINKING)
        statement = update(turns).where(*_held(turn), thinking).values(values)
        return bool(self._connection.execute(statement).rowcount)

    def move(self, turn: Turn, event: str, at: Instant, **changes: Any) -> bool:
        sources = TURN.sources(event)
        state = TURN.next(sources[0], event)
        values: dict[str, Any] = {"state": str(state), "lease_until_at": None, **changes}
        if "reason" in values:
            values["reason"] = storable(values["reason"])
        if state in TURN.resting:
            values["ended_at"] = at
        allowed = turns.c.state.in_([str(source) for source in sources])
        statement = update(turns).where(*_held(turn), allowed).values(values)
        return bool(self._connection.execute(statement).rowcount)

    def get(self, turn_id: int) -> Turn:
        row = self._connection.execute(select(*turns.c).where(turns.c.id == turn_id)).first()
        return _turn(rows.found(row, "turn", turn_id))

    def active(self, conversation_id: int | None = None) -> list_of[Turn]:
        statement = select(*turns.c).where(_IS_ACTIVE)
        if conversation_id is not None:
            statement = statement.where(turns.c.conversation_id == conversation_id)
        return [_turn(row) for row in self._connection.execute(statement.order_by(turns.c.id))]

    def replied(self, limit: int) -> list_of[Replied]:
        # One that is in doubt is open as long as the lane looks into it by itself.
        over = and_(
            deliveries.c.state.not_in([str(state) for state in OPEN]),
            or_(deliveries.c.state != str(DeliveryState.UNKNOWN), deliveries.c.due_at.is_(None)),
        )
        statement = (
            select(*turns.c, deliveries.c.state, deliveries.c.reason)
            .join(deliveries, and_(deliveries.c.id == turns.c.delivery_id, over))
            .where(_IS_ACTIVE, turns.c.state == str(TurnState.REPLYING))
            .order_by(turns.c.id)
            .limit(limit)
        )
        found = self._connection.execute(statement)
        return [Replied(_turn(row[:-2]), DeliveryState(row[-2]), row[-1] or "") for row in found]

    def of_conversation(self, conversation_id: int, limit: int) -> list_of[Turn]:
        theirs = select(*turns.c).where(turns.c.conversation_id == conversation_id)
        statement = theirs.order_by(turns.c.id.desc()).limit(limit)
        return [_turn(row) for row in self._connection.execute(statement)]

    def taken(self, turn_id: int) -> list_of[Received]:
        # By its conversation, which is what the index begins with.
        whose = select(turns.c.conversation_id).where(turns.c.id == turn_id).scalar_subquery()
        statement: Select[Any] = select(*inbound.c).where(
            inbound.c.conversation_id == whose, inbound.c.turn_id == turn_id
        )
        # Reports may overtake each other: what counts is when it was written.
        in_order = statement.order_by(inbound.c.at, inbound.c.id)
        return [Received(*row) for row in self._connection.execute(in_order)]

    def _one(self, statement: Any) -> Turn | None:
        row = self._connection.execute(statement).first()
        return None if row is None else _turn(row)


def _held(turn: Turn) -> tuple[Any, ...]:
    return turns.c.id == turn.id, turns.c.generation == turn.generation


def _turn(row: Any) -> Turn:
    turn = Turn(*row)
    return turn._replace(state=TurnState(turn.state))
