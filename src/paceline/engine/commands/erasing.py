"""Erasing a person: what names them goes, what limits and opt-outs are counted from stays.

Their addresses become keyed hashes wherever they are stored: with the contact, in the deliveries of
every campaign, and among the suppressions. What providers answered about them and what was said to
them is emptied, and other texts lose the mention. Nothing is sent to a hash, and whoever creates
deliveries looks for hashes too (``engine/people.py``), so a list that still names them does not
bring them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from paceline.core.address import canonical, entries_for, guess_kind
from paceline.core.discretion import without
from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.commands.audiences import ERASED_BY
from paceline.engine.people import ensure_erasure_key, erasure_key, hashed
from paceline.engine.ports import Address, Contact, Delivery, Suppression, Tx
from paceline.engine.ports.people import BECAUSE_ERASED
from paceline.engine.runs import end_if_done

REASON = BECAUSE_ERASED

CALLED_OFF = (DeliveryState.PLANNED, DeliveryState.READY)


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure has done; nothing, if it had been done before."""

    deliveries: int = 0
    cancelled: int = 0
    audiences: int = 0
    before: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody as ``contact show`` tells of them."""

    contact: Contact | None
    address: str
    audiences: list[str]
    suppressions: list[Suppression]
    erased: bool


def look_up(tx: Tx, address: str) -> Known:
    """Everything that is kept about whoever has this address; ``NotFoundError`` if nothing is."""
    spelled, key = canonical(address), erasure_key(tx)
    erased = None if key is None else tx.contacts.find(hashed(key, spelled))
    contact = erased or tx.contacts.find(spelled)
    asked = [spelled] if key is None else [spelled, hashed(key, spelled)]
    if contact is not None and erased is None:
        asked += [entry.address for entry in contact.addresses]
    entries = [entry for address in asked for entry in entries_for(address)]
    suppressions = list(tx.suppressions.among(entries).values())
    if contact is None and not suppressions and not tx.inbox.knows([spelled]):
        raise NotFoundError(f"nobody is known under '{spelled}'")
    audiences = [] if contact is None else tx.audiences.of_contact(contact.id)
    return Known(contact, spelled, audiences, suppressions, erased is not None)


def erase(tx: Tx, address: str, at: Instant) -> Erased:
    """Forget who somebody is; in force before the next message.

    Locks are taken in the order in which everybody takes them: people, then the fence, then lanes.
    Looking for their deliveries takes a while where there are many, and comes before the fence.
    """
    tx.contacts.hold(alone=True)
    spelled, key = canonical(address), erasure_key(tx)
    if key is not None and tx.contacts.find(hashed(key, spelled)) is not None:
        return _erased_again(tx, spelled, hashed(key, spelled), at)
    contact = tx.contacts.find(spelled)
    known = {spelled: Address(guess_kind(spelled), spelled)}
    if contact is not None:
        known = {entry.address: entry for entry in contact.addresses}
    found = tx.contacts.traces(0 if contact is None else contact.id, list(known))
    known_here = found or tx.suppressions.has(spelled) or tx.inbox.knows(list(known))
    if contact is None and not known_here:
        raise NotFoundError(f"nobody is known under '{spelled}'")
    tx.settings.fence()
    deliveries = [tx.deliveries.get(number) for number in found]
    _refuse_midway(deliveries)
    key = ensure_erasure_key(tx)
    targets = {delivery.target for delivery in deliveries}
    renamed = {text: hashed(key, canonical(text)) for text in (*known, *sorted(targets - {*known}))}
    cancelled = _call_off(tx, deliveries, at)
    contact_id = _blot_out_contact(tx, contact, list(known.values()), renamed, at)
    tx.contacts.blot_out(found, contact_id, renamed)
    names = () if contact is None else contact.fields.values()
    for before, after in renamed.items():
        _keep_suppressed(tx, before, after, partial(without, addresses=renamed, names=names), at)
    left = tx.audiences.leave(contact_id, at)
    for run_id in sorted({delivery.run_id for delivery in deliveries}):
        end_if_done(tx, run_id, at)
    # Runs first, as whoever takes in what bids a follow-up holds them.
    _forget_what_was_said(tx, renamed)
    text = f"a contact was erased: {len(found)} deliveries, {cancelled} of them cancelled"
    told = {"deliveries": len(found), "cancelled": cancelled}
    tx.events.add(EventKind.CONTACT_ERASED, text, at=at, data=told)
    return Erased(len(found), cancelled, left)


def _erased_again(tx: Tx, spelled: str, after: str, at: Instant) -> Erased:
    """Somebody who was erased may write to us all the same: then that is forgotten as well."""
    if not tx.inbox.knows([spelled]):
        return Erased(before=True)
    tx.settings.fence()
    _forget_what_was_said(tx, {spelled: after})
    text = "a contact who had written again was erased"
    told = {"deliveries": 0, "cancelled": 0}
    tx.events.add(EventKind.CONTACT_ERASED, text, at=at, data=told)
    return Erased()


def _forget_what_was_said(tx: Tx, renamed: dict[str, str]) -> None:
    # Nobody learns meanwhile what else somebody is called who is muted.
    tx.listening.hold_off()
    # Their conversations are muted as they are; whoever writes again is nobody who was ever muted.
    tx.muting.remove(renamed)
    tx.conversations.blot_out(renamed)
    tx.inbox.blot_out(renamed)


def _refuse_midway(deliveries: Iterable[Delivery]) -> None:
    for delivery in deliveries:
        if delivery.state is DeliveryState.SENDING:
            raise ConflictError(
                "a message to them is on its way right now", hint="Try again in a moment"
            )


def _call_off(tx: Tx, deliveries: list[Delivery], at: Instant) -> int:
    """What waits is cancelled; what is in doubt cannot be asked about any more."""
    waiting = [d for d in deliveries if d.state in CALLED_OFF or d.due_at is not None]
    for account_id in sorted({d.account_id for d in waiting if d.account_id is not None}):
        tx.lanes.touch(account_id, at)
    cancelled = 0
    for delivery in waiting:
        if delivery.state in CALLED_OFF:
            after = tx.deliveries.move(delivery.id, "cancel", at=at, reason=REASON)
            cancelled += after is DeliveryState.CANCELLED
        else:
            tx.deliveries.postpone(delivery.id, None, f"{REASON}, held for a person")
    return cancelled


def _blot_out_contact(
    tx: Tx,
    contact: Contact | None,
    known: list[Address],
    renamed: dict[str, str],
    at: Instant,
) -> int:
    """The row stays, because deliveries speak of it; it is made where there was none."""
    nobody = Contact(0, (), erased_at=at)
    if contact is None:
        (contact_id,) = tx.contacts.add([nobody], at)
        tx.contacts.give([(contact_id, Address(e.kind, renamed[e.address])) for e in known])
        return contact_id
    tx.contacts.change([replace(nobody, id=contact.id)], at)
    tx.contacts.rename({entry.address: renamed[entry.address] for entry in known})
    return contact.id


def _keep_suppressed(
    tx: Tx, before: str, after: str, discreet: Callable[..., str], at: Instant
) -> None:
    """Whoever asked not to be written to has still asked; everybody else is not, from now on."""
    asked = tx.suppressions.find(before)
    if asked is None:
        tx.suppressions.add(after, REASON, ERASED_BY, at)
        return
    tx.suppressions.remove(before)
    tx.suppressions.add(after, discreet(asked.reason, instead="(erased)"), asked.source, asked.at)
