"""A conversation as people read it: what both sides said, in order, and what became of it.

What an account has said to somebody is more than its answers: campaigns have written to them, and
people by hand. All of it went to the same address, each under a number of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.address import written_to
from paceline.core.enclosures import in_words
from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.model import Content, Part
from paceline.core.template import render_part
from paceline.engine.ports import Delivery, Run, Tx
from paceline.engine.ports.conversations import Conversation

US = "us"
CONFIRMATION = "opt-out"
"""Who tells somebody that their wish to hear no more was heard."""


class Line(NamedTuple):
    at: Instant
    by: str
    """``them``, or who answered: the name of a process, or a person. The name of the campaign that
    wrote to them; ``opt-out`` for what confirms that they want no more, ``us`` for whatever else
    was written."""
    text: str
    state: str


def conversation_view(tx: Tx, conversation: Conversation, limit: int) -> list[Line]:
    """The latest, the oldest first."""
    lines = []
    for one in reversed(tx.inbox.of_conversation(conversation.id, limit)):
        text = in_words(one.kind, one.text, one.files)
        lines.append(Line(one.at, "them", text, "" if one.turn_id is not None else "waits"))
    ours, runs = sent_there(tx, conversation, limit), Runs(tx)
    owners = {}
    for turn in tx.turns.of_conversation(conversation.id, limit):
        if turn.delivery_id is not None:
            owners[turn.delivery_id] = turn.owner
            ours.setdefault(turn.delivery_id, tx.deliveries.get(turn.delivery_id))
    confirmed = _confirmation(tx, conversation)
    if confirmed is not None:
        owners[confirmed.id] = CONFIRMATION
        ours.setdefault(confirmed.id, confirmed)
    for message in ours.values():
        run = runs.of(message)
        at = message.sent_at or message.scheduled_at
        by = owners.get(message.id) or (US if run.kind == "direct" else run.campaign)
        lines.append(Line(at, by, words_of(message, run), str(message.state)))
    lines.sort(key=lambda line: line.at)
    return lines[-limit:]


def _confirmation(tx: Tx, conversation: Conversation) -> Delivery | None:
    """What tells them that they opted out, whether it has gone out or not."""
    address = written_to(conversation.chat)
    number = None if address is None else tx.suppressions.confirmation_of(address)
    found = None if number is None else tx.deliveries.get(number)
    ours = found is not None and found.account_id == conversation.account_id
    return found if ours else None


def sent_there(tx: Tx, conversation: Conversation, limit: int) -> dict[int, Delivery]:
    """The latest that its account has sent to its address, by number, for whatever reason. Of
    whoever was erased nothing but a conversation is left."""
    address = written_to(conversation.chat)
    if address is None:
        return {}
    return {one.id: one for one in tx.deliveries.sent_to(conversation.account_id, address, limit)}


class Runs:
    """Each is asked for once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[int, Run] = {}

    def of(self, message: Delivery) -> Run:
        run = self._known.get(message.run_id)
        if run is None:
            run = self._known[message.run_id] = self._tx.runs.get(message.run_id)
        return run


def words_of(message: Delivery, run: Run | None) -> str:
    """What a message of ours says; empty where only that it was sent is known. What it does not say
    itself, its run does."""
    content = message.content or (run.parts_of(message.step) if run is not None else ())
    if not content:
        return ""
    parts = Content.from_list(content, message.step).parts
    return "\n".join(_in_words(part, message) for part in parts)


def _in_words(part: Part, message: Delivery) -> str:
    try:
        part = render_part(part, message.target, message.fields)
    except InputError:
        # Its campaign was changed since, and says what this one had nothing for.
        return part.text
    if part.kind == "template":
        return " ".join([f"[{part.template}]", *(text for _, text in part.values)])
    return in_words(part.kind, part.text or part.subject)
