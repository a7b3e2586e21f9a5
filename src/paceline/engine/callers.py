"""Who wrote something that came in: by all that they are called, as targets are written.

Where an answer goes need not be where they are written to, and they may answer from another address
of theirs. What says which message of ours it answers is from whoever got that.
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.core.errors import NotFoundError
from paceline.engine.naming import named_by
from paceline.engine.people import known_as
from paceline.engine.ports import Account, Delivery, Inbound, Tx


def names_of(tx: Tx, account: Account, message: Inbound) -> frozenset[str]:
    answered = delivery_named(tx, message.answers)
    theirs = [] if answered is None or answered.account_id != account.id else [answered.target]
    return stored_names(tx, (message.chat, message.sender, *message.also, *theirs))


def stored_names(tx: Tx, names: Iterable[str]) -> frozenset[str]:
    """Names as they are kept: as they are spelled, or as the hash of whoever was erased."""
    return frozenset(known_as(tx, name) for name in names if name)


def delivery_named(tx: Tx, key: str | None) -> Delivery | None:
    """The delivery that our own name of a message means."""
    named = named_by(tx, key)
    if named is None:
        return None
    try:
        return tx.deliveries.get(named.delivery_id)
    except NotFoundError:
        return None
