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
from paceline.engine.callers import names_of
from paceline.engine.calling_off import REASON, call_off
from paceline.engine.confirming import Confirming
from paceline.engine.people import known_as
from paceline.engine.ports import Account, Delivery, Inbound, News, Tx
from paceline.engine.unsubscribing import SOURCE as UNSUBSCRIBED

SOURCE = "opt-out"

log = structlog.get_logger("paceline.inbox")


def wish_of(one: News, words: OptOut) -> Wish | None:
    """What a message asks for; nothing where no person wrote it to us alone."""
    if not isinstance(one, Inbound) or one.from_us or one.automatic or one.group:
        return None
    return words.wish_in_letter(one.text, one.subject)


def is_asked(news: Sequence[News], words: OptOut) -> bool:
    """Whether somebody is to be suppressed, or not to be any more: then the fence comes first."""
    return any(wish_of(one, words) is not None for one in news)


def obey(tx: Tx, account: Account, one: News, words: OptOut, at: Instant) -> None:
    """Behind the fence, and holding people. What was obeyed before changes nothing."""
    if not isinstance(one, Inbound) or tx.inbox.has(account.id, one.provider_id):
        return
    theirs = names_of(tx, account, one)
    if wish_of(one, words) == "start":
        if _wrote_stop_since(tx, one, words):
            return
        told = [_let_be_written_to(tx, account, address, at) for address in sorted(theirs)]
        # Not heard of yet, it would not be true any more.
        untrue = [tx.deliveries.get(number) for number in told if number is not None]
        call_off(tx, untrue, at, "asked to be written to again")
        return
    new = [
        address for address in sorted(theirs) if tx.suppressions.add(address, REASON, SOURCE, at)
    ]
    # Also for who was suppressed before: an answer may have been made since, and would be missed by
    # nobody as long as they are; but what confirms their wish is none.
    waiting = [row for address in sorted(theirs) for row in _waiting_for(tx, address)]
    called_off = call_off(tx, waiting, at)
    if not new:
        return
    if isinstance(words, Confirming) and known_as(tx, canonical(one.chat)) in new:
        words.after_message(tx, account, one, at)
    _tell(tx, EventKind.RECIPIENT_OPTED_OUT, account, at, "asked not to be written to any more")
    log.info("opted out", account=account.name, called_off=called_off)


def _waiting_for(tx: Tx, address: str) -> list[Delivery]:
    passes = tx.suppressions.confirmation_of(address)
    return [row for row in tx.waiting.of_target(address) if row.id != passes]


def _wrote_stop_since(tx: Tx, one: Inbound, words: OptOut) -> bool:
    """Whether it only comes late: what counts is what they wrote last, and not what was told
    last."""
    if not one.at:
        return False
    since = tx.inbox.written_since({one.sender, one.chat}, one.at)
    return any(words.wish_in_letter(said.text, said.subject) == "stop" for said in since)


def has_opted_out(tx: Tx, chat: str) -> bool:
    """Whether they are suppressed because they asked for it."""
    entry = tx.suppressions.find(known_as(tx, canonical(chat)))
    return entry is not None and entry.source in (SOURCE, UNSUBSCRIBED)


def _let_be_written_to(tx: Tx, account: Account, address: str, at: Instant) -> int | None:
    """The delivery that confirms the opposite to them, where there is one."""
    entry = tx.suppressions.find(address)
    if entry is None or entry.source not in (SOURCE, UNSUBSCRIBED):
        return None
    confirmation_id = tx.suppressions.confirmation_of(address)
    tx.suppressions.remove(address)
    _tell(tx, EventKind.RECIPIENT_OPTED_IN, account, at, "asked to be written to again")
    log.info("opted in again", account=account.name)
    return confirmation_id


def _tell(tx: Tx, kind: EventKind, account: Account, at: Instant, what: str) -> None:
    # Without the address: events are read by many, and kept when a person is erased.
    text = f"somebody who writes with {account.name} {what}"
    data = {"account": account.name}
    tx.events.add(kind, text, at=at, account_id=account.id, data=data)
