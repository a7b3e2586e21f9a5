"""What a mailbox brings, made into what is known: bounces, complaints, answers.

A letter that was accepted may come back hours later. It is known by the name that we gave it, which
nobody else can guess; what comes without it is about somebody else's letter, or made up, and is not
believed. Every report may come twice: what it says is then known already.

Behind an address there may be others, members of a list or where it is forwarded to, and a report
may name one of those. Whoever does not exist there is no reason to write no more to the address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import structlog

from paceline.core.address import canonical
from paceline.core.discretion import discreet
from paceline.core.events import EventKind
from paceline.core.instants import DAY, Instant
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.core.states import DeliveryState
from paceline.engine import alerts, conversations
from paceline.engine.bidding import Bid, take_up
from paceline.engine.bouncing import look_at_bounces
from paceline.engine.callers import delivery_named, muted_as, names_of, stored_names
from paceline.engine.coming_back import hand_over, talks_of
from paceline.engine.commands.acknowledging import note
from paceline.engine.commands.receipts import resolve_by_receipt
from paceline.engine.commands.standing import stands
from paceline.engine.muted import learn, take_back
from paceline.engine.opting_out import is_asked, obey, wish_of
from paceline.engine.people import known_as
from paceline.engine.pooling import hold_to_stop
from paceline.engine.ports import (
    Accepted,
    Account,
    AccountNews,
    Delivery,
    Inbound,
    News,
    Receipt,
    Returned,
    Tx,
    Typing,
    Withheld,
)
from paceline.engine.runs import end_if_done

BOUNCE = "bounce"
COMPLAINT = "complaint"
"""The sources of suppressions that follow from what came back."""
CAME_BACK = ("bounced", "failed")
"""What is told of letters that will not arrive any more."""
EARLY_FOR_US = DAY
"""For how long a letter may be on its way and yet have come back; longer than clocks are wrong."""

log = structlog.get_logger("paceline.inbox")


class TakenIn(NamedTuple):
    """What some news came to."""

    bounced: int = 0
    complaints: int = 0
    received: int = 0


class _Heard(NamedTuple):
    """A message that is in the inbox now."""

    message: Inbound
    number: int
    names: frozenset[str]
    """All that whoever wrote it is muted by."""
    bade: bool = False
    """Whether a follow-up is there because of it."""


def passes_the_fence(news: Sequence[News], words: OptOut = DEFAULT) -> bool:
    """Whether somebody may be suppressed for the sake of these, or let be written to again: then
    they need a transaction of their own."""
    fenced = any(isinstance(one, Returned | AccountNews) for one in news)
    return fenced or is_asked(news, words)


def goes_alone(news: Sequence[News], words: OptOut = DEFAULT) -> bool:
    """The same; or whether several conversations may be held for the sake of these."""
    return passes_the_fence(news, words) or any(
        isinstance(one, Inbound | Typing) or (isinstance(one, Receipt) and one.state == "failed")
        for one in news
    )


def prepare(tx: Tx, news: Sequence[News], words: OptOut = DEFAULT, *, writes: bool = False) -> None:
    """First in a transaction that takes news in: who is never to be written to again is suppressed
    behind the fence, and the fence comes before anything is written. ``writes``: something is,
    before the lanes are held of an account that may be stopped."""
    if passes_the_fence(news, words):
        tx.contacts.hold(alone=False)
        tx.settings.fence()
    elif writes and may_stop(news):
        tx.settings.fence()


def may_stop(news: Sequence[News]) -> bool:
    """Whether the account that these came to may be stopped by them: a letter came back, a message
    could not be delivered, or a doubt ends well after others did; or its provider says so."""
    return any(
        isinstance(one, Returned | AccountNews)
        or (isinstance(one, Receipt) and (one.state == "failed" or one.key is not None))
        for one in news
    )


def hold(tx: Tx, account: Account, news: Sequence[News]) -> None:
    """Second, in a transaction of its own: the lanes of an account that may be stopped, before any
    of it is taken in."""
    if may_stop(news):
        hold_to_stop(tx, account.id)


def take_in(
    tx: Tx,
    account: Account,
    news: Sequence[News],
    at: Instant,
    words: OptOut = DEFAULT,
    returned: Iterable[Delivery] = (),
) -> TakenIn:
    """Write down what came to this account's mailbox, behind ``hold``. What has ``returned`` of its
    messages, as is known already, also concerns conversations."""
    back = list(returned)
    bounced = complaints = 0
    inbound = [one for one in news if isinstance(one, Inbound)]
    stopped = [said for said in inbound if wish_of(said, words) is not None]
    for said in sorted(stopped, key=lambda said: said.at or at):
        # All of them before the first conversation is held: it may take lanes.
        obey(tx, account, said, words, at)
    # What moves deliveries first, for their lanes come before conversations; and of these, whatever
    # one person has written stays in order.
    heard: list[_Heard] = []
    typing: list[Typing] = []
    for one in sorted(news, key=lambda one: _whose(tx, one)):
        if isinstance(one, Returned):
            letter = _came_back(tx, account, one, at) if one.kind in CAME_BACK else None
            back += [] if letter is None else [letter]
            bounced += letter is not None
            complaints += one.kind == "complaint" and _complained(tx, one, at)
        elif isinstance(one, Inbound):
            answered = delivery_named(tx, one.answers)
            received = _received(tx, account, one, at, words, answered)
            heard += [] if received is None else [received]
        elif isinstance(one, Accepted):
            take_up(tx, account, Bid("accepted", stored_names(tx, one.names), one.at or at), at)
        elif isinstance(one, Receipt):
            undelivered = note(tx, account, one, at).returned
            back += [] if undelivered is None else [undelivered]
        elif isinstance(one, AccountNews):
            stands(tx, tx.accounts.get(account.id), one, at)
        elif isinstance(one, Typing):
            typing.append(one)
    if bounced:
        # It may take the account and the lanes of its pools, and these come before conversations.
        look_at_bounces(tx, account, at, late=True)
    # All of them in the order in which everybody holds them.
    talks = talks_of(tx, account, back)
    talking = [(one.message, one.names) for one in heard if conversations.is_theirs(one.message)]
    theirs = {(account.id, one.chat): at for one, _ in talking}
    theirs |= {(account.id, talk.chat): at for talk in talks.values()}
    if len(theirs) > 1:
        tx.listening.hold(theirs, {(account.id, one.chat): names for one, names in talking})
    _hear(tx, account, heard, words, at)
    hand_over(tx, account, talks, at)
    for chat in sorted({one.chat for one in typing}):
        conversations.typing(tx, account, chat, at)
    alerts.letters_withheld(tx, account, [one for one in news if isinstance(one, Withheld)], at)
    return TakenIn(bounced, complaints, len(heard))


def _hear(
    tx: Tx,
    account: Account,
    heard: Iterable[_Heard],
    words: OptOut,
    at: Instant,
) -> None:
    silent: dict[int, set[str]] = {}
    for message, number, names, bade in heard:
        wanted = wish_of(message, words) != "stop"
        talk = conversations.hear(tx, account, message, number, at, names=names, answered=wanted)
        if talk is not None and talk.mode == "muted":
            silent.setdefault(talk.id, set()).update(names)
            if bade:
                take_back(tx, talk, number, at)
    # Of all of them together: two who take the same people in write their names in one order.
    learn(tx, silent, at)


def come_early(tx: Tx, account: Account, news: Sequence[News], at: Instant) -> bool:
    """Whether some of it is about a letter that is being sent this very moment, as far as anybody
    knows: its answer is under way, or its process has just died. What became of it is not known
    before that is settled, so it has to be told again in a while."""
    keys = {one.key for one in news if isinstance(one, Returned) and one.kind in CAME_BACK}
    found = [_letter(tx, key) for key in sorted(key for key in keys if key is not None)]
    return any(_is_being_sent(tx, account, one, at) for one in found if one is not None)


def _is_being_sent(tx: Tx, account: Account, delivery: Delivery, at: Instant) -> bool:
    if delivery.account_id != account.id or delivery.state is not DeliveryState.SENDING:
        return False
    intents = [row.at for row in tx.ledger.of_delivery(delivery.id) if row.kind == "intent"]
    # A letter that is stuck must not keep all others from being read for ever.
    return max(intents, default=0) > at - EARLY_FOR_US


def _came_back(tx: Tx, account: Account, returned: Returned, at: Instant) -> Delivery | None:
    """The delivery of this account's of which that is news."""
    delivery = _letter(tx, returned.key)
    if delivery is None or delivery.account_id != account.id:
        return None
    # Whoever is in doubt whether it went out knows now.
    if delivery.state in (DeliveryState.UNKNOWN, DeliveryState.SENDING):
        receipt = Receipt("", "sent", at, key=returned.key)
        resolve_by_receipt(tx, account.id, receipt, at)
        delivery = tx.deliveries.get(delivery.id)
    theirs = not returned.address or _is_about(tx, delivery, returned.address)
    if any(_is_about(tx, delivery, address) for address in returned.reached):
        # It did arrive where it was sent to; only somebody behind that address was not reached.
        return None
    reason = discreet(returned.reason or "it came back", delivery.target, delivery.fields)
    reason = discreet(reason, returned.address, {})
    gone = theirs and returned.kind == "bounced"
    if gone:
        # Whatever becomes of this letter: there is nobody at that address.
        tx.suppressions.add(delivery.target, reason, BOUNCE, at)
    if delivery.state is not DeliveryState.SENT:
        return None
    tx.lanes.touch(account.id, at)
    tx.deliveries.move(delivery.id, "bounce", at=at, reason=f"came back: {reason}")
    _tell(tx, EventKind.DELIVERY_RETURNED, delivery, at, suppressed=gone)
    end_if_done(tx, delivery.run_id, at)
    return delivery


def _is_about(tx: Tx, delivery: Delivery, address: str) -> bool:
    """Whether an address is the one that was written to, however either is spelled."""
    same = canonical(address) == canonical(delivery.target)
    return same or known_as(tx, address) == delivery.target


def _complained(tx: Tx, returned: Returned, at: Instant) -> bool:
    """Whoever calls it spam is never written to again, from whichever account it came."""
    delivery = _letter(tx, returned.key)
    if delivery is None:
        return False
    known = tx.suppressions.find(delivery.target)
    if known is not None and known.source == COMPLAINT:
        return False
    # Also where they are not written to any more: they could have taken that back.
    tx.suppressions.add(delivery.target, "complained of spam", COMPLAINT, at)
    _tell(tx, EventKind.RECIPIENT_COMPLAINED, delivery, at)
    alerts.complained(tx, delivery, at)
    return True


def _whose(tx: Tx, one: News) -> tuple[bool, str]:
    """In which order they are taken in. What a report says of whom we wrote to comes before what it
    says of others, which then tells nothing more."""
    if isinstance(one, Inbound):
        return (True, one.chat)
    if not isinstance(one, Returned) or one.kind not in CAME_BACK or not one.address:
        return (False, "")
    delivery = _letter(tx, one.key)
    others = delivery is not None and not _is_about(tx, delivery, one.address)
    return (False, "others" if others else "")


def _received(
    tx: Tx,
    account: Account,
    message: Inbound,
    at: Instant,
    words: OptOut,
    delivery: Delivery | None,
) -> _Heard | None:
    """None where it was here before. What it bids is there with it."""
    number = tx.inbox.add(account.id, message, delivery.id if delivery else None, at)
    if number is None:
        return None
    heard = _Heard(message, number, muted_as(account, message, delivery))
    if not conversations.is_theirs(message):
        return heard
    if wish_of(message, words) != "stop":
        names = names_of(tx, account, message)
        mutes = stored_names(tx, heard.names)
        # Nobody has written anything that is yet to come, whatever their clock says.
        said_at = min(message.at or at, at)
        bid = Bid("reply", names, said_at, number, delivery, mutes)
        return heard._replace(bade=take_up(tx, account, bid, at) > 0)
    return heard


def _letter(tx: Tx, key: str | None) -> Delivery | None:
    """The same of what was sent, or tried to be: what never left cannot have come back, nor can
    anybody complain of it, whoever says so."""
    delivery = delivery_named(tx, key)
    return delivery if delivery is not None and delivery.attempts else None


def _tell(tx: Tx, kind: EventKind, delivery: Delivery, at: Instant, **more: bool) -> None:
    # Without the address: events are read by many, and kept when a person is erased.
    what = "came back" if kind is EventKind.DELIVERY_RETURNED else "was called spam"
    tx.events.add(
        kind,
        f"delivery {delivery.id} {what}",
        at=at,
        account_id=delivery.account_id,
        run_id=delivery.run_id,
        delivery_id=delivery.id,
        data={"delivery": delivery.id, **more},
    )
