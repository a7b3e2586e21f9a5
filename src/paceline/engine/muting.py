"""Muting people, and answering them again: in one conversation, or everywhere: on every account,
under every name they are known by, and also in conversations that begin later.

First what waits for them is called off, for that takes lanes; then nobody hears of anything until
this is written down; then conversations are held, in the order in which everybody holds them.
"""

from __future__ import annotations

from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.instants import Instant
from paceline.engine import conversations, muted
from paceline.engine.ports import Tx
from paceline.engine.ports.conversations import Conversation, Turn


def mute(tx: Tx, conversation_id: int, at: Instant) -> Turn | None:
    """Nobody answers in this one; the turn whose answer was called off, if there was one."""
    found = _find(tx, conversation_id)
    names = muted.names_in(tx, found.id, found.chat)
    muted.call_off(tx, [found], names, at, everywhere=False)
    return conversations.mute(tx, conversation_id, at)


def mute_everywhere(tx: Tx, conversation_id: int, at: Instant) -> list[Conversation]:
    """Nobody answers whoever this conversation is with, wherever they write; the conversations
    that were not muted yet."""
    found = _find(tx, conversation_id)
    names = muted.names_in(tx, found.id, found.chat)
    muted.call_off(tx, [found, *tx.muting.conversations(names)], names, at, everywhere=True)
    tx.listening.hold_off()
    names = muted.names_in(tx, found.id, found.chat)
    theirs = tx.muting.conversations(names)
    tx.muting.add(names | {one.chat for one in theirs}, at, conversation_id)
    changed = [one for one in theirs if one.mode != "muted"]
    for one in changed:
        conversations.mute(tx, one.id, at)
    return changed


def unmute(tx: Tx, conversation_id: int, at: Instant) -> Conversation:
    """One of them is answered again by whoever did, whatever becomes of the others."""
    return conversations.unmute(tx, conversation_id, at)


def unmute_everywhere(tx: Tx, conversation_id: int, at: Instant) -> list[Conversation]:
    """All that mutes them ends; the conversations that are answered again."""
    found = _find(tx, conversation_id)
    tx.listening.hold_off()
    names = muted.names_in(tx, found.id, found.chat)
    names |= tx.muting.of(names).keys()
    silent = [one for one in tx.muting.conversations(names) if one.mode == "muted"]
    if not tx.muting.remove(names) and not silent:
        raise ConflictError(f"whoever conversation {conversation_id} is with is not muted")
    return [conversations.unmute(tx, one.id, at) for one in silent]


def _find(tx: Tx, conversation_id: int) -> Conversation:
    """It is not held: all of theirs are, later, in one order."""
    found = tx.conversations.get(conversation_id)
    if found is None:
        raise NotFoundError(f"there is no conversation {conversation_id}")
    return found
