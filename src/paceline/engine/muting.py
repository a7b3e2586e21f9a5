"""Muting people everywhere: on every account, under every address they are known by, and also in
conversations that begin later.
"""

from __future__ import annotations

from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.instants import Instant
from paceline.engine import conversations
from paceline.engine.ports import Tx
from paceline.engine.ports.conversations import Conversation


def mute_everywhere(tx: Tx, conversation_id: int, at: Instant) -> list[Conversation]:
    """Nobody answers whoever this conversation is with, wherever they write; the conversations
    that were not muted yet."""
    names = _names_in(tx, conversation_id)
    tx.muting.add(names, at)
    changed = [one for one in tx.muting.conversations(names) if one.mode != "muted"]
    for one in changed:
        conversations.mute(tx, one.id, at)
    return changed


def unmute(tx: Tx, conversation_id: int, at: Instant) -> Conversation:
    """One of them is answered again, whatever becomes of the others."""
    if tx.conversations.hold(conversation_id).mode != "muted":
        raise ConflictError(f"conversation {conversation_id} is not muted")
    return conversations.hand_back(tx, conversation_id, at)


def unmute_everywhere(tx: Tx, conversation_id: int, at: Instant) -> list[Conversation]:
    """All that mutes them ends; the conversations that are answered again."""
    names = _names_in(tx, conversation_id)
    muted = [one for one in tx.muting.conversations(names) if one.mode == "muted"]
    if not tx.muting.remove(names) and not muted:
        raise ConflictError(f"whoever conversation {conversation_id} is with is not muted")
    return [conversations.hand_back(tx, one.id, at) for one in muted]


def _names_in(tx: Tx, conversation_id: int) -> set[str]:
    """All that whoever a conversation is with is known under. It is not held for that: all of
    theirs are, in the order in which everybody holds them."""
    found = tx.conversations.get(conversation_id)
    if found is None:
        raise NotFoundError(f"there is no conversation {conversation_id}")
    chat = found.chat
    person = tx.contacts.find(chat)
    known = () if person is None else person.addresses
    return {chat, *(one.address for one in known)}
