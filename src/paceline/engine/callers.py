"""Who wrote something that came in: by all that they are called, as targets are written.

Where an answer goes need not be where they are written to, and they may answer from another address
of theirs. What says which message of ours it answers is from whoever got that.
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.core.address import canonical, is_somebodys
from paceline.core.errors import NotFoundError
from paceline.engine.naming import named_by
from paceline.engine.people import known_as
from paceline.engine.ports import Account, Delivery, Inbound, Tx


def names_of(tx: Tx, account: Account, message: Inbound) -> frozenset[str]:
    return stored_names(tx, called(account, message, delivery_named(tx, message.answers)))


def called(account: Account, message: Inbound, answered: Delivery | None = None) -> frozenset[str]:
    """The same as they are spelled; ``answered`` is what it says that it answers."""
    theirs = [] if answered is None or answered.account_id != account.id else [answered.target]
    every = (message.chat, message.sender, *message.also, *theirs)
    return frozenset(canonical(name) for name in every if name) | {message.chat}


def muted_as(
    account: Account, message: Inbound, answered: Delivery | None = None
) -> frozenset[str]:
    """What of it a mute goes by. Where the chat is somebody's own address, that is who they are,
    and not what the message says that it is from: a form on a page sends the letters of all who
    fill it in from one address, and anybody can write down the address of somebody else."""
    if message.sender != message.chat and is_somebodys(message.chat):
        message = message._replace(sender="")
    return called(account, message, answered)


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
