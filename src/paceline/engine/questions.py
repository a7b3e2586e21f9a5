"""What whoever answers is asked: all that waits in a conversation, and what was said before."""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.conversation_view import Runs, words_of
from paceline.engine.ports import Account, Tx
from paceline.engine.ports.answering import Burst, Said
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.held_ways import HeldWay
from paceline.engine.ports.inbox import Received
from paceline.engine.ports.questions import Matter

MOST_HISTORY = 200


class Question(NamedTuple):
    """A turn to be answered, with all that is needed to do so."""

    turn: Turn
    account: Account
    chat: str
    burst: Burst
    tries: HeldWay | None = None
    """What is held, where it is asked to find out if that answers again."""


def begun(
    tx: Tx, conversation_id: int, owner: str, lease_us: int, at: Instant, history: int
) -> Question | None:
    """What is asked in a turn that begins with this; None where none does."""
    most = min(history, MOST_HISTORY)
    matter = tx.questions.begin(conversation_id, owner, lease_us, at, most)
    return None if matter is None else _question(tx, matter, most)


def question_of(tx: Tx, turn: Turn, conversation: Conversation, history: int) -> Question:
    most = min(history, MOST_HISTORY)
    return _question(tx, tx.questions.matter(turn, conversation, most), most)


def _question(tx: Tx, matter: Matter, most: int) -> Question:
    turn, chat = matter.turn, matter.conversation.chat
    burst = Burst(
        key=f"turn-{turn.id}",
        account=matter.account.name,
        chat=chat,
        said=tuple(_said(one) for one in matter.taken),
        before=_before(tx, matter, most),
        fields=matter.fields,
    )
    return Question(turn, matter.account, chat, burst)


def _said(message: Received) -> Said:
    return Said("them", message.text, message.at, message.kind, message.files)


def _before(tx: Tx, matter: Matter, most: int) -> tuple[Said, ...]:
    """The latest of what both have said, the oldest first."""
    said, runs = [_said(one) for one in matter.theirs[::-1]], Runs(tx)
    for ours in matter.ours:
        if ours.state is DeliveryState.SENT and ours.sent_at is not None:
            words = words_of(ours, None if ours.content else runs.of(ours))
            said += [Said("us", words, ours.sent_at)] if words else []
    said.sort(key=lambda one: one.at)
    return tuple(said[-most:]) if most else ()
