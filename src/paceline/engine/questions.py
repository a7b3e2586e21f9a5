"""What whoever answers is asked: all that waits in a conversation, and what was said before."""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.states import DeliveryState
from paceline.engine.conversation_view import Runs, sent_there, words_of
from paceline.engine.ports import Account, Tx
from paceline.engine.ports.answering import Burst, Said
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.inbox import Received

MOST_HISTORY = 200


class Question(NamedTuple):
    """A turn to be answered, with all that is needed to do so."""

    turn: Turn
    account: Account
    chat: str
    burst: Burst


def question_of(tx: Tx, turn: Turn, conversation: Conversation, history: int) -> Question:
    account = tx.accounts.get(conversation.account_id)
    taken = tx.turns.taken(turn.id)
    said = tuple(_said(one) for one in taken)
    person = tx.contacts.find(conversation.chat)
    burst = Burst(
        key=f"turn-{turn.id}",
        account=account.name,
        chat=conversation.chat,
        said=said,
        before=_before(tx, conversation, {one.id for one in taken}, history),
        fields=person.fields if person is not None else {},
    )
    return Question(turn, account, conversation.chat, burst)


def _said(message: Received) -> Said:
    return Said("them", message.text, message.at, message.kind, message.files)


def _before(tx: Tx, conversation: Conversation, without: set[int], limit: int) -> tuple[Said, ...]:
    """The latest of what both have said, the oldest first."""
    limit = min(limit, MOST_HISTORY)
    if not limit:
        return ()
    theirs = tx.inbox.of_conversation(conversation.id, limit + len(without))[::-1]
    said = [_said(one) for one in theirs if one.id not in without and one.turn_id is not None]
    runs = Runs(tx)
    for ours in sent_there(tx, conversation, limit).values():
        if ours.state is DeliveryState.SENT and ours.sent_at is not None:
            words = words_of(ours, runs.of(ours))
            said += [Said("us", words, ours.sent_at)] if words else []
    said.sort(key=lambda one: one.at)
    return tuple(said[-limit:])
