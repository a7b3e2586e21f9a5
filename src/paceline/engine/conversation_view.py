"""A conversation as people read it: what both sides said, in order, and what became of it."""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.core.model import Content
from paceline.core.template import render
from paceline.engine.ports import Delivery, Tx
from paceline.engine.ports.conversations import Conversation


class Line(NamedTuple):
    at: Instant
    by: str
    """``them``, or who answered: the name of a process, or a person."""
    text: str
    state: str


def conversation_view(tx: Tx, conversation: Conversation, limit: int) -> list[Line]:
    """The latest, the oldest first."""
    lines = []
    for one in reversed(tx.inbox.of_conversation(conversation.id, limit)):
        text = one.text or f"[{one.kind}]"
        lines.append(Line(one.at, "them", text, "" if one.turn_id is not None else "waits"))
    for turn in tx.turns.of_conversation(conversation.id, limit):
        if turn.delivery_id is not None:
            answer = tx.deliveries.get(turn.delivery_id)
            at = answer.sent_at or answer.scheduled_at
            lines.append(Line(at, turn.owner, words_of(answer), str(answer.state)))
    lines.sort(key=lambda line: line.at)
    return lines[-limit:]


def words_of(answer: Delivery) -> str:
    """What an answer says. It was written as a template that says exactly that."""
    parts = Content.from_list(answer.content or []).parts
    return "\n".join(render(part.text, {}) for part in parts)
