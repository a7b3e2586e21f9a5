"""Opting out by a message: in force before the next one, for whichever campaign and account.

What waits for them is called off, and nothing of theirs is answered. Whoever asks for it is written
to again; but whoever was suppressed for another reason, a bounce, a complaint, by hand, is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from paceline.core.address import canonical
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.opting_out import OptOut, Wish
from paceline.engine.people import known_as
from paceline.engine.ports import Account, Inbound, News, Tx
from paceline.engine.runs import end_if_done
from paceline.engine.unsubscribing import SOURCE as UNSUBSCRIBED

SOURCE = "opt-out"

log = structlog.get_logger("paceline.inbox")


def wish_of(one: News, words: OptOut) -> Wish | None:
    """What a message asks for; nothing where no person wrote it to us alone."""
    if not isinstance(one, Inbound) or one.from_us or one.automatic or one.group:
        return None
    # In a letter it may stand where others write what it is about.
    return words.wish_in(one.text) or (words.wish_in(one.subject) if not one.text else None)


def is_asked(news: Sequence[News], words: OptOut) -> bool:
    """Whether somebody is to be suppressed, or not to be any more: then the fence comes first."""
    return any(wish_of(one, words) is not None for one in news)


def obey(tx: Tx, account: Account, one: News, words: OptOut, at: Instant) -> None:
    """Behind the fence, and holding people. What was obeyed before changes nothing."""
    if not isinstance(one, Inbound) or tx.inbox.has(account.id, one.provider_id):
        return
    # Where an answer goes need not be where they are written to: both are theirs.
    theirs = {known_as(tx, canonical(name)) for name in (one.chat, one.sender) if name}
    if wish_of(one, words) == "start":
        for address in sorted(theirs):
            _let_be_written_to(tx, account, address, at)
        return
    new = [
        address
        for address in sorted(theirs)
        if tx.suppressions.add(address, "asked not to be written to", SOURCE, at)
    ]
    if not new:
        return
    called_off = sum(_call_off(tx, address, at) for address in new)
    _tell(tx, EventKind.RECIPIENT_OPTED_OUT, account, at, "asked not to be written to any more")
    log.info("opted out", account=account.name, called_off=called_off)


def has_opted_out(tx: Tx, chat: str) -> bool:
    """Whether they are suppressed because they asked for it."""
    entry = tx.suppressions.find(known_as(tx, canonical(chat)))
    return entry is not None and entry.source in (SOURCE, UNSUBSCRIBED)


def _let_be_written_to(tx: Tx, account: Account, address: str, at: Instant) -> None:
    entry = tx.suppressions.find(address)
    if entry is None or entry.source not in (SOURCE, UNSUBSCRIBED):
        return
    tx.suppressions.remove(address)
    _tell(tx, EventKind.RECIPIENT_OPTED_IN, account, at, "asked to be written to again")
    log.info("opted in again", account=account.name)


def _call_off(tx: Tx, address: str, at: Instant) -> int:
    """What waits for them, from whichever account, goes out no more."""
    waiting = tx.waiting.of_target(address)
    for account_id in sorted({row.account_id for row in waiting if row.account_id is not None}):
        tx.lanes.touch(account_id, at)
    for row in waiting:
        tx.deliveries.move(row.id, "cancel", at=at, reason="asked not to be written to")
    for run_id in sorted({row.run_id for row in waiting}):
        end_if_done(tx, run_id, at)
    return len(waiting)


def _tell(tx: Tx, kind: EventKind, account: Account, at: Instant, what: str) -> None:
    # Without the address: events are read by many, and kept when a person is erased.
    text = f"somebody who writes with {account.name} {what}"
    data = {"account": account.name}
    tx.events.add(kind, text, at=at, account_id=account.id, data=data)
