"""Never out of turn, read from the tables: what no sequence of steps of conversations leads to.

Each look is one statement over whole tables, and empty when all is well.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, and_, exists, func, or_, select

from paceline.core.instants import SECOND
from paceline.core.states import TURN, TurnState
from paceline.store.schema import accounts, conversations, deliveries, inbound, turns

SHOWN = 1_000
CLOCKS_US = 15 * SECOND
"""By how much the clocks of processes may differ that wrote two instants."""

ACTIVE = (TurnState.THINKING.value, TurnState.REPLYING.value)
RESTING = tuple(state.value for state in TURN.resting)

_WAITS = (
    exists()
    .where(inbound.c.conversation_id == conversations.c.id, inbound.c.turn_id.is_(None))
    .correlate(conversations)
)


def faults(connection: Connection) -> list[str]:
    """Everything that is wrong, in words."""
    found = []
    for words, statement in _looks():
        found += [words.format(*row) for row in connection.execute(statement)]
    return found


@cache
def _looks() -> list[tuple[str, Select[Any]]]:
    """Put together once, which takes longer than looking where nothing is wrong."""
    looks = [*_of_turns(), *_of_messages(), *_of_conversations()]
    return [(words, statement.limit(SHOWN)) for words, statement in looks]


def _of_turns() -> list[tuple[str, Select[Any]]]:
    several = (
        select(turns.c.conversation_id, func.count())
        .where(turns.c.state.in_(ACTIVE))
        .group_by(turns.c.conversation_id)
        .having(func.count() > 1)
    )
    shared = (
        select(turns.c.delivery_id, func.count())
        .where(turns.c.delivery_id.is_not(None))
        .group_by(turns.c.delivery_id)
        .having(func.count() > 1)
    )
    unanswered = select(turns.c.id).where(
        turns.c.state == TurnState.REPLYING.value, turns.c.delivery_id.is_(None)
    )
    elsewhere = (
        select(turns.c.id, turns.c.delivery_id)
        .join(conversations, conversations.c.id == turns.c.conversation_id)
        .join(deliveries, deliveries.c.id == turns.c.delivery_id)
        .where(
            or_(
                ~deliveries.c.reply,
                deliveries.c.account_id.is_(None),
                deliveries.c.account_id != conversations.c.account_id,
            )
        )
    )
    half_over = select(turns.c.id, turns.c.state).where(
        or_(
            and_(turns.c.state.in_(ACTIVE), turns.c.ended_at.is_not(None)),
            and_(turns.c.state.in_(RESTING), turns.c.ended_at.is_(None)),
        )
    )
    # In one pass, however long a conversation is: what is compared with all that came before.
    earlier = func.max(turns.c.ended_at).over(
        partition_by=turns.c.conversation_id, order_by=turns.c.id, rows=(None, -1)
    )
    in_order = select(turns.c.id, turns.c.started_at, earlier.label("ended_at")).subquery()
    overtaking = select(in_order.c.id).where(
        in_order.c.ended_at > in_order.c.started_at + CLOCKS_US
    )
    return [
        ("conversation {0} has {1} active turns", several),
        ("delivery {0} is the answer of {1} turns", shared),
        ("turn {0} is replying without an answer", unanswered),
        ("turn {0} has an answer of somebody else's: delivery {1}", elsewhere),
        ("turn {0} is {1}, and its end says otherwise", half_over),
        ("turn {0} began before the one ahead of it had ended", overtaking),
    ]


def _of_messages() -> list[tuple[str, Select[Any]]]:
    lost = select(inbound.c.id, inbound.c.turn_id).where(
        inbound.c.turn_id.is_not(None), ~exists().where(turns.c.id == inbound.c.turn_id)
    )
    strange = (
        select(inbound.c.id, inbound.c.turn_id)
        .join(turns, turns.c.id == inbound.c.turn_id)
        .where(
            or_(
                inbound.c.conversation_id.is_(None),
                inbound.c.conversation_id != turns.c.conversation_id,
            )
        )
    )
    nowhere = select(inbound.c.id, inbound.c.conversation_id).where(
        inbound.c.conversation_id.is_not(None),
        ~exists().where(conversations.c.id == inbound.c.conversation_id),
    )
    # A turn takes all that waits: what came before something in it cannot be in a later one.
    before = func.max(inbound.c.received_at).over(
        partition_by=inbound.c.conversation_id, order_by=inbound.c.turn_id, range_=(None, -1)
    )
    in_turns = (
        select(inbound.c.id, inbound.c.turn_id, inbound.c.received_at, before.label("before_at"))
        .where(inbound.c.conversation_id.is_not(None), inbound.c.turn_id.is_not(None))
        .subquery()
    )
    overtaken = select(in_turns.c.id, in_turns.c.turn_id).where(
        in_turns.c.before_at > in_turns.c.received_at + CLOCKS_US
    )
    return [
        ("message {0} is in turn {1}, which there is not", lost),
        ("message {0} is in turn {1} of another conversation", strange),
        ("message {0} is in conversation {1}, which there is not", nowhere),
        ("message {0} is in turn {1}, and one that came later in an earlier turn", overtaken),
    ]


def _of_conversations() -> list[tuple[str, Select[Any]]]:
    waits = conversations.c.first_at.is_not(None)
    forgotten = select(conversations.c.id).where(conversations.c.mode != "muted", ~waits, _WAITS)
    in_vain = select(conversations.c.id).where(waits, ~_WAITS)
    undated = select(conversations.c.id).where(
        or_(
            and_(waits, conversations.c.last_at.is_(None)),
            and_(~waits, conversations.c.last_at.is_not(None)),
            and_(~waits, conversations.c.due_at.is_not(None)),
        )
    )
    never_due = (
        select(conversations.c.id)
        .join(accounts, accounts.c.id == conversations.c.account_id)
        .where(
            waits,
            conversations.c.mode == "auto",
            conversations.c.due_at.is_(None),
            accounts.c.answering != "{}",
            accounts.c.removed_at.is_(None),
        )
    )
    return [
        ("something waits in conversation {0}, and it does not know", forgotten),
        ("nothing waits in conversation {0}, though it says so", in_vain),
        ("what waits in conversation {0}, and since when, disagree", undated),
        ("what waits in conversation {0} is never due", never_due),
    ]
