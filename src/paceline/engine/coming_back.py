"""An answer that came back: it was taken, and yet nobody has got it, so a person has to answer.

While its turn is active, whoever ends the turn finds out; afterwards it is told here.
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.core.address import ERASED
from paceline.core.instants import Instant
from paceline.engine import conversations
from paceline.engine.ports import Account, Delivery, Tx
from paceline.engine.ports.conversations import Conversation


def talks_of(tx: Tx, account: Account, returned: Iterable[Delivery]) -> dict[int, Conversation]:
    """By delivery, the conversation whose answer it was. Answers go where they were asked for, so
    an address is enough; and whoever was erased needs no person."""
    found = {
        one.id: tx.conversations.find(account.id, one.target)
        for one in returned
        if one.reply and not one.target.startswith(ERASED)
    }
    return {number: talk for number, talk in found.items() if talk is not None}


def hand_over(tx: Tx, account: Account, talks: dict[int, Conversation], at: Instant) -> None:
    """In the order in which everybody holds conversations, and after all lanes."""
    for number, talk in sorted(talks.items(), key=lambda one: (one[1].id, one[0])):
        reason = tx.deliveries.get(number).reason
        conversations.came_back(tx, account, talk.id, number, reason, at)
