"""Conversations: what somebody writes is kept until its turn, and every turn has one answer.

A turn takes all that waits, in order; while it is active there is no other in its conversation, so
an answer is never overtaken by the next. Its answer is a delivery of the account's lane, made in
the transaction that leaves the turn no way to make another: whoever crashes before that has said
nothing, and whoever takes the turn over after it finds the answer on its way.

Whoever changes a conversation holds people first where it writes to any, then the account's lane,
then the conversation, then its turn: all do so in this order, and nobody waits for somebody who
waits for him. Between lanes and conversations whoever hears of a message passes those who change
whom nobody answers, or how an account is answered (``tx.listening.hold_off``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import structlog

from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState, TurnState
from paceline.core.turns import Patience
from paceline.engine import alerts
from paceline.engine.calling_off import REASON as CALLED_OFF
from paceline.engine.opting_out import has_opted_out
from paceline.engine.ports import Account, Inbound, Providers, Tx
from paceline.engine.ports.conversations import Conversation, Mode, Replied, Turn
from paceline.engine.questions import Question, begun, question_of
from paceline.engine.replying import send_answer

PERSON = "a person"
TAKEN = "taken by a person"

log = structlog.get_logger("paceline.conversation")


# ---------------------------------------------------------------------- what comes in


def hear(
    tx: Tx,
    account: Account,
    message: Inbound,
    received_id: int,
    at: Instant,
    *,
    names: Collection[str] = (),
    answered: bool = True,
) -> Conversation | None:
    """Somebody has written: it waits for its turn, which begins once they have paused. Where it is
    not to be ``answered``, nothing that waits is, and nothing that is being made is sent. By all
    their ``names`` it is known whether nobody is to answer them anywhere. Where it was said, as
    that stood before; None where that is no conversation.

    What is said in groups is nobody's conversation; what no person wrote is not answered, or two
    machines would never stop.
    """
    if not is_theirs(message):
        return None
    conversation = tx.conversations.hear(account.id, message.chat, at, names)
    tx.inbox.put_into(received_id, conversation.id)
    if not answered:
        _leave_unanswered(tx, conversation, at)
        return conversation
    # How it is answered may have been changed since it was read, but not from here on.
    waiting = heard_in(conversation, tx.accounts.get(account.id), at)
    if waiting != conversation:
        times = {name: getattr(waiting, name) for name in ("first_at", "last_at", "due_at")}
        tx.conversations.change(conversation.id, **times)
    return conversation


def is_theirs(message: Inbound) -> bool:
    """Whether it is part of a conversation."""
    return not (message.group or message.automatic or message.from_us)


def heard_in(conversation: Conversation, account: Account, at: Instant) -> Conversation:
    """How a conversation stands once somebody has written in it, and is to be answered."""
    conversation = conversation._replace(heard_at=max(conversation.heard_at, at))
    if conversation.mode == "muted":
        return conversation
    first_at = at if conversation.first_at is None else min(conversation.first_at, at)
    # One that took long to be written down does not end the burst of those that came since.
    last_at = max(conversation.last_at or at, at)
    due_at = _due_at(account, first_at, last_at)
    return conversation._replace(first_at=first_at, last_at=last_at, due_at=due_at)


def _leave_unanswered(tx: Tx, conversation: Conversation, at: Instant) -> None:
    """All that waits is a turn of its own, in which nothing is said; and no person has to."""
    reason = "they said that they want no answer, or want one again"
    for active in tx.turns.active(conversation.id):
        if not tx.turns.move(active, "discard", at, reason=reason):
            tx.turns.add_waiting(active)  # its answer is on its way, or was just called off
    left = tx.turns.begin(conversation.id, "nobody", None, at)
    if left is not None:
        tx.turns.move(left, "say_nothing", at, reason=reason)
    alerts.a_person_saw_to(tx, conversation.id, at)


def typing(tx: Tx, account: Account, chat: str, at: Instant) -> None:
    """Somebody is about to write more: what waits, waits for that, though not for ever."""
    found = tx.conversations.find(account.id, chat)
    if found is None or found.first_at is None:
        return
    held = tx.conversations.hold(found.id)
    if held.first_at is not None:
        last_at = max(held.last_at or at, at)
        due_at = _due_at(tx.accounts.get(account.id), held.first_at, last_at)
        tx.conversations.change(held.id, last_at=last_at, due_at=due_at)


def _due_at(account: Account, first_at: Instant, last_at: Instant) -> Instant | None:
    """None where nobody was set up to answer: then people do."""
    if not account.answering:
        return None
    return Patience.stored(account.answering).due_at(first_at, last_at)


# ---------------------------------------------------------------------- turns


def begin(
    tx: Tx, conversation_id: int, owner: str, lease_us: int, at: Instant, history: int
) -> Question | None:
    """Start the turn of a conversation that is due; None where there is nothing to do any more, or
    somebody was faster."""
    return begun(tx, conversation_id, owner, lease_us, at, history)


class Holder(NamedTuple):
    """Who holds turns, for how long at a time, and how much of the past he wants to be told."""

    name: str
    lease_us: int
    history: int


def take_over(tx: Tx, turn: Turn, by: Holder, at: Instant, longest_us: int) -> Question | None:
    """Go on with a turn that its owner has left; nothing was said in it yet. One that is not to be
    answered any more ends here."""
    conversation = tx.conversations.hold(turn.conversation_id)
    if turn.lease_until_at is not None and turn.lease_until_at > tx.now + longest_us:
        # A clock was set back. Whoever lives renews it before it is over, and nobody else does.
        tx.turns.renew(turn, by.lease_us)
        return None
    ours = tx.turns.take_over(turn, by.name, by.lease_us, at, longest_us)
    if ours is None:
        return None
    question = question_of(tx, ours, conversation, by.history)
    if conversation.mode != "auto":
        put_back(tx, question, conversation, "nobody is to be answered here any more", at)
        return None
    return question


def redo(tx: Tx, turn: Turn, lease_us: int, history: int) -> Question | None:
    """Take what has come meanwhile into the turn; None where nothing has, or it is not ours."""
    conversation = tx.conversations.hold(turn.conversation_id)
    if conversation.first_at is None or conversation.mode != "auto":
        return None
    ours = tx.turns.again(turn, lease_us)
    if ours is None:
        return None
    tx.turns.add_waiting(ours)
    return question_of(tx, ours, conversation, history)


def answer(
    tx: Tx, question: Question, text: str, providers: Providers, at: Instant, *, note: str = ""
) -> bool:
    """Send the answer of a turn, which has none other then; False where the turn is not ours any
    more, or a person has taken the conversation meanwhile."""
    tx.contacts.hold(alone=False)
    tx.lanes.touch(question.account.id, at)
    conversation = tx.conversations.hold(question.turn.conversation_id)
    if conversation.mode != "auto":
        put_back(tx, question, conversation, "a person has it, or nobody", at)
        return False
    if not text:
        return tx.turns.move(question.turn, "say_nothing", at, reason=note)
    if not tx.turns.renew(question.turn, 0):
        return False
    account = tx.accounts.get(conversation.account_id)  # it may have been removed meanwhile
    delivery_id = send_answer(tx, account, conversation, text, providers, at, of=question.turn)
    return tx.turns.move(question.turn, "reply", at, delivery_id=delivery_id, reason=note)


def hand_over(tx: Tx, question: Question, reason: str, at: Instant) -> bool:
    """No answer can be made: a person has to. What was said stays in the turn, for them to see."""
    conversation = tx.conversations.hold(question.turn.conversation_id)
    if not tx.turns.move(question.turn, "hand_over", at, reason=reason):
        return False
    _to_a_person(tx, question.account, conversation, reason, at)
    return True


def put_back(
    tx: Tx, question: Question, conversation: Conversation, reason: str, at: Instant
) -> bool:
    """It is not to be answered after all, or not now, and what it took waits again; False where the
    turn is not ours any more."""
    ours = tx.turns.move(question.turn, "discard", at, reason=reason)
    if ours:
        _wait_again(tx, conversation, question.turn)
    return ours


def _wait_again(tx: Tx, conversation: Conversation, turn: Turn) -> None:
    taken = tx.turns.taken(turn.id)
    tx.turns.give_back(turn)
    if conversation.mode == "muted" or not taken:
        return
    first_at = min(one.received_at for one in taken)
    last_at = conversation.last_at or max(one.received_at for one in taken)
    # As it is answered now: the turn may have begun long ago.
    due_at = _due_at(tx.accounts.get(conversation.account_id), first_at, last_at)
    tx.conversations.change(conversation.id, first_at=first_at, last_at=last_at, due_at=due_at)


def end(tx: Tx, replied: Replied, at: Instant) -> bool:
    """A turn's answer is over at the provider: sent, or not. False where somebody was faster."""
    conversation = tx.conversations.hold(replied.turn.conversation_id)
    # Also where they have asked for the opposite since: what was called off stays so.
    unwanted = replied.reason == CALLED_OFF or has_opted_out(tx, conversation.chat)
    if replied.state is DeliveryState.SENT or unwanted:
        # Whoever asked not to be written to needs no person either.
        return tx.turns.move(replied.turn, "finish", at)
    reason = _is_over(replied.state, replied.reason)
    ended = tx.turns.move(replied.turn, "hand_over", at, reason=reason)
    if ended:
        account = tx.accounts.get(conversation.account_id)
        _to_a_person(tx, account, conversation, reason, at)
    return ended


def came_back(
    tx: Tx, account: Account, conversation_id: int, delivery_id: int, reason: str, at: Instant
) -> None:
    """An answer that was sent has come back. Whoever ends its turn finds out, if it is active."""
    conversation = tx.conversations.hold(conversation_id)
    active = {turn.delivery_id for turn in tx.turns.active(conversation.id)}
    if delivery_id not in active and not has_opted_out(tx, conversation.chat):
        said = _is_over(DeliveryState.BOUNCED, reason)
        _to_a_person(tx, account, conversation, said, at)


def _is_over(state: DeliveryState, reason: str) -> str:
    return f"the answer is {state}: {reason or 'no reason given'}"


def _to_a_person(
    tx: Tx, account: Account, conversation: Conversation, reason: str, at: Instant
) -> None:
    if conversation.mode == "auto":
        tx.conversations.change(conversation.id, mode="human", reason=reason)
    alerts.needs_a_person(tx, account, conversation.id, reason, at)


# ---------------------------------------------------------------------- people


def take(tx: Tx, conversation_id: int, at: Instant, reason: str = TAKEN) -> Turn | None:
    """A person answers from here on. What was being made is not sent; what is on its way is. The
    turn whose answer was called off, if there was one."""
    return _switch(tx, conversation_id, "human", reason, at)


def mute(tx: Tx, conversation_id: int, at: Instant) -> Turn | None:
    """Nobody answers any more, and what comes in waits for nobody."""
    return _switch(tx, conversation_id, "muted", "muted by a person", at)


def unmute(tx: Tx, conversation_id: int, at: Instant) -> Conversation:
    """Whoever had it has it again: a person, with what came in meanwhile; or whoever was set up to
    answer, who answers that."""
    conversation = tx.conversations.hold(conversation_id)
    if conversation.mode != "muted":
        raise ConflictError(f"conversation {conversation_id} is not muted")
    reason = conversation.before_mute
    if reason is None:
        return hand_back(tx, conversation_id, at)
    account = tx.accounts.get(conversation.account_id)
    tx.conversations.change(conversation.id, mode="human", reason=reason)
    _let_wait(tx, account, conversation)
    if reason != TAKEN:
        alerts.needs_a_person(tx, account, conversation.id, reason, at)
    return tx.conversations.hold(conversation_id)


def hand_back(tx: Tx, conversation_id: int, at: Instant) -> Conversation:
    """Whoever was set up to answer does so again, also what waits."""
    conversation = tx.conversations.hold(conversation_id)
    if conversation.mode == "auto":
        raise ConflictError(f"conversation {conversation_id} is in nobody's hands already")
    account = tx.accounts.get(conversation.account_id)
    tx.conversations.change(conversation.id, mode="auto", reason="")
    _let_unanswered_wait(tx, account, conversation)
    alerts.a_person_saw_to(tx, conversation.id, at)
    return tx.conversations.hold(conversation_id)


def _let_unanswered_wait(tx: Tx, account: Account, conversation: Conversation) -> None:
    """All that nobody has answered waits: what came in since, and what the last turn took that was
    handed to a person, or whose answer came back."""
    for last in tx.turns.of_conversation(conversation.id, 1):
        if _is_unanswered(tx, last):
            tx.turns.give_back(last)
    _let_wait(tx, account, conversation)


def _let_wait(tx: Tx, account: Account, conversation: Conversation) -> None:
    waiting = tx.inbox.waiting(conversation.id)
    if waiting:
        came = [one.received_at for one in waiting]  # what came first may be written down last
        first_at, last_at = min(came), max(came)
        due_at = _due_at(account, first_at, last_at)
        tx.conversations.change(conversation.id, first_at=first_at, last_at=last_at, due_at=due_at)


def _is_unanswered(tx: Tx, turn: Turn) -> bool:
    state = None if turn.delivery_id is None else tx.deliveries.get(turn.delivery_id).state
    if turn.state is TurnState.DONE:
        return state is DeliveryState.BOUNCED
    sent = state in (DeliveryState.SENT, DeliveryState.UNKNOWN)
    return turn.state is TurnState.HANDED and not sent


def _switch(tx: Tx, conversation_id: int, mode: Mode, reason: str, at: Instant) -> Turn | None:
    conversation = tx.conversations.hold(conversation_id)
    if conversation.mode == mode:
        raise ConflictError(f"conversation {conversation_id} is {_IS[mode]} already")
    changed = conversation._replace(mode=mode)
    had = conversation.reason if (conversation.mode, mode) == ("human", "muted") else None
    tx.conversations.change(conversation.id, mode=mode, reason=reason, before_mute=had)
    alerts.a_person_saw_to(tx, conversation.id, at)
    for turn in tx.turns.active(conversation.id):
        if tx.turns.move(turn, "discard", at, reason=reason):
            _wait_again(tx, changed, turn)
            return turn
    return None


_IS: dict[Mode, str] = {"human": "with a person", "muted": "muted", "auto": "in nobody's hands"}


def reply(tx: Tx, conversation_id: int, text: str, providers: Providers, at: Instant) -> int:
    """Answer by hand all that waits; the delivery's number. It is a turn like any other, and has
    to wait for one that is active."""
    if not text.strip():
        raise InputError("an answer needs a text", key="text")
    tx.contacts.hold(alone=False)
    seen = tx.conversations.get(conversation_id)
    if seen is not None:
        tx.lanes.touch(seen.account_id, at)
    known = tx.conversations.hold(conversation_id)
    account = tx.accounts.get(known.account_id)
    for active in tx.turns.active(conversation_id):
        if active.delivery_id is not None:
            raise ConflictError(
                f"another answer is on its way in conversation {conversation_id}",
                hint=f"Wait until it has gone; see: paceline why {active.delivery_id}",
            )
        raise ConflictError(
            f"another answer is being made in conversation {conversation_id}",
            hint=f"Take it first: paceline conversations take {conversation_id}",
        )
    _let_unanswered_wait(tx, account, known)
    if known.mode == "human":
        # Whoever answers has taken it, for whatever reason it came to people.
        tx.conversations.change(conversation_id, reason=TAKEN)
    elif known.before_mute is not None:
        # The same once it is not muted any more.
        tx.conversations.change(conversation_id, before_mute=TAKEN)
    turn = tx.turns.begin(conversation_id, PERSON, None, at)
    delivery_id = send_answer(tx, account, known, text, providers, at, of=turn)
    if turn is not None:
        tx.turns.move(turn, "reply", at, delivery_id=delivery_id)
    alerts.a_person_saw_to(tx, conversation_id, at)
    return delivery_id
