"""What a mailbox brings, made into what is known: bounces, complaints, answers.

A letter that was accepted may come back hours later. It is known by the name that we gave it, which
nobody else can guess; what comes without it is about somebody else's letter, or made up, and is not
believed. Every report may come twice: what it says is then known already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from paceline.core.calendar import day_start_of
from paceline.core.discretion import discreet
from paceline.core.errors import NotFoundError
from paceline.core.events import EventKind
from paceline.core.health import bounces_too_many
from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.core.states import AccountState, DeliveryState
from paceline.engine import alerts, events
from paceline.engine.commands.receipts import named_by, resolve_by_receipt
from paceline.engine.pooling import give_back
from paceline.engine.ports import Account, Delivery, Inbound, News, Receipt, Returned, Tx
from paceline.engine.runs import end_if_done

BOUNCE = "bounce"
COMPLAINT = "complaint"
"""The sources of suppressions that follow from what came back."""

log = structlog.get_logger("paceline.inbox")


class TakenIn(NamedTuple):
    """What some news came to."""

    bounced: int = 0
    complaints: int = 0
    received: int = 0


def prepare(tx: Tx, news: Sequence[News]) -> None:
    """First in a transaction that takes news in: who is never to be written to again is suppressed
    behind the fence, and the fence comes before anything is written."""
    if any(isinstance(one, Returned) for one in news):
        tx.contacts.hold(alone=False)
        tx.settings.fence()


def take_in(tx: Tx, account: Account, news: Sequence[News], at: Instant) -> TakenIn:
    """Write down what came to this account's mailbox."""
    bounced = complaints = received = 0
    for one in news:
        if isinstance(one, Returned):
            bounced += one.kind in ("bounced", "failed") and _came_back(tx, account, one, at)
            complaints += one.kind == "complaint" and _complained(tx, one, at)
        elif isinstance(one, Inbound):
            received += _received(tx, account, one, at)
        elif isinstance(one, Receipt):
            resolve_by_receipt(tx, account.id, one, at)
    if bounced:
        _look_at_bounces(tx, account, at)
    return TakenIn(bounced, complaints, received)


def _came_back(tx: Tx, account: Account, returned: Returned, at: Instant) -> bool:
    """Whether that is news of one of this account's deliveries."""
    delivery = _delivery(tx, returned.key)
    if delivery is None or delivery.account_id != account.id:
        return False
    # Whoever is in doubt whether it went out knows now.
    if delivery.state in (DeliveryState.UNKNOWN, DeliveryState.SENDING):
        receipt = Receipt("", "sent", at, key=returned.key)
        resolve_by_receipt(tx, account.id, receipt, at)
        delivery = tx.deliveries.get(delivery.id)
    if delivery.state is not DeliveryState.SENT:
        return False
    reason = discreet(returned.reason or "it came back", delivery.target, delivery.fields)
    tx.lanes.touch(account.id, at)
    tx.deliveries.move(delivery.id, "bounce", at=at, reason=f"came back: {reason}")
    if returned.kind == "bounced":
        tx.suppressions.add(delivery.target, reason, BOUNCE, at)
    _tell(tx, EventKind.DELIVERY_RETURNED, delivery, at, suppressed=returned.kind == "bounced")
    end_if_done(tx, delivery.run_id, at)
    return True


def _complained(tx: Tx, returned: Returned, at: Instant) -> bool:
    """Whoever calls it spam is never written to again, from whichever account it came."""
    delivery = _delivery(tx, returned.key)
    if delivery is None:
        return False
    if not tx.suppressions.add(delivery.target, "complained of spam", COMPLAINT, at):
        return False
    _tell(tx, EventKind.RECIPIENT_COMPLAINED, delivery, at)
    alerts.complained(tx, delivery, at)
    return True


def _received(tx: Tx, account: Account, message: Inbound, at: Instant) -> bool:
    delivery = _delivery(tx, message.answers)
    number = tx.inbox.add(account.id, message, delivery.id if delivery else None, at)
    return number is not None


def _delivery(tx: Tx, key: str | None) -> Delivery | None:
    """The delivery that our own name of a message means."""
    named = named_by(tx, key)
    if named is None:
        return None
    try:
        return tx.deliveries.get(named.delivery_id)
    except NotFoundError:
        return None


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


def _look_at_bounces(tx: Tx, account: Account, at: Instant) -> None:
    """Pause an account of whose letters too many come back in a day, as its lane would."""
    policy = Policy.from_mapping(account.policy, where=account.name)
    since_at = day_start_of(at, policy.day_zone)
    at_once, later = tx.ledger.bounces(account.id, since_at)
    # A definite refusal has given its slot back, so those are counted on top.
    sends = sum(tx.ledger.counts(account.id, since_at).values()) + at_once
    if not bounces_too_many(policy, max(sends, later), at_once + later):
        return
    reason = f"bounce rate {at_once + later}/{sends} today is above {policy.bounce_pause}"
    if tx.accounts.get(account.id).state is not AccountState.ACTIVE:
        return
    state = tx.accounts.move(account.id, "pause", reason=reason)
    if state is None:
        return
    events.account_is(tx, account, state, at, reason=reason, until_at=None)
    tx.lanes.touch(account.id, at)
    give_back(tx, account.id, at)
    alerts.account_stopped(tx, account, state, reason, at, bounced=True)
    log.warning("account paused", account=account.name, reason=reason)
