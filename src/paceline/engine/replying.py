"""An answer on its way: as a message of the account's lane, which it is sent like any other from.

Of a letter that also means which one it answers, so that people find both together.
"""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.errors import ConflictError
from paceline.core.instants import DAY, Instant
from paceline.core.model import Content, Part
from paceline.core.template import literal
from paceline.engine.commands.campaigns import DirectMessage, send_message
from paceline.engine.ports import Account, Providers, Tx
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.providers import Capabilities

WINDOW_US = DAY
"""For how long after somebody has written they may be answered in words of one's own, on channels
that want a template otherwise."""
LOOKED_BACK = 20
"""Messages among which the subject of a letter is looked for, and the one written last."""


class Letter(NamedTuple):
    """One of theirs, as far as an answer to it has to know it."""

    name: str
    """What it is called; empty where it is called nothing."""
    subject: str
    delivery_id: int | None
    """What of ours it answers."""


def send_answer(
    tx: Tx,
    account: Account,
    to: Conversation,
    text: str,
    providers: Providers,
    at: Instant,
    *,
    of: Turn | None,
) -> int:
    """The delivery's number. An answer of no turn answers what they wrote last."""
    if account.removed_at is not None:
        raise ConflictError(f"account {account.name} was removed")
    able = providers.get(account.provider).capabilities_of(account.settings)
    action = action_of(able)
    part = Part("text", literal(text))
    if action == "email":
        latest = tx.inbox.of_conversation(to.id, LOOKED_BACK)
        taken = [] if of is None else tx.turns.taken(of.id)
        theirs = [
            Letter(one.provider_id, one.subject, one.delivery_id)
            for one in (*reversed(taken), *latest)
        ]
        part = as_letter(tx, text, theirs)
    expires_at = _spoke_at(tx, to) + WINDOW_US if able.needs_templates else None
    message = DirectMessage(
        account.name, to.chat, Content((part,)), action, reply=True, expires_at=expires_at
    )
    return send_message(tx, message, at, providers)


def _spoke_at(tx: Tx, them: Conversation) -> Instant:
    """When they wrote last, as their provider says: it counts from there, however late we heard of
    it. Nobody has written what is yet to come, whatever a clock says."""
    latest = tx.inbox.of_conversation(them.id, LOOKED_BACK)
    return max((min(one.at, one.received_at) for one in latest), default=them.heard_at)


def action_of(able: Capabilities) -> str:
    """What an answer is to whoever sends it: letters only where nothing else is."""
    return "message" if "message" in able.actions or "email" not in able.actions else "email"


def as_letter(tx: Tx, text: str, theirs: list[Letter], subject: str = "Your message") -> Part:
    """An answer to the first of these letters, under the subject of the first that has one."""
    said = next((one.subject for one in theirs if one.subject), "")
    if said:
        subject = said if said.casefold().startswith("re:") else f"Re: {said}"
    answers = _thread(tx, theirs[0]) if theirs else ()
    return Part("text", literal(text), literal(subject), answers=answers)


def _thread(tx: Tx, letter: Letter) -> tuple[str, ...]:
    """What a letter goes on with, the oldest first, and itself: their letters by the names that
    they gave them, ours by the numbers of their deliveries."""
    before: tuple[str, ...] = ()
    if letter.delivery_id is not None:
        ours = tx.deliveries.get(letter.delivery_id)
        if ours.content:
            before = Content.from_list(ours.content, ours.step).parts[0].answers
        before = (*before, str(ours.id))
    # Some have no name, and are known here by one that we made: nobody else knows that.
    return (*before, f"<{letter.name}>") if "@" in letter.name else before
