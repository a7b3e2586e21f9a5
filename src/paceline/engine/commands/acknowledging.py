"""What a provider reports of a message of ours: a doubt that ends, or how far the message got.

Receipts come twice, late and in any order, and only ever move a message forward: delivered, read.
That it could not be delivered after all takes it back, unless it was: then somebody else's report
is late. What is told of a message by its provider's name alone is found by that name.
"""

from __future__ import annotations

from typing import NamedTuple

import structlog

from paceline.core.address import guess_kind
from paceline.core.discretion import discreet
from paceline.core.errors import NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.bouncing import look_at_bounces
from paceline.engine.coming_back import hand_over, talks_of
from paceline.engine.commands.receipts import Taken, resolve_by_receipt
from paceline.engine.early_receipts import keep
from paceline.engine.naming import named_by
from paceline.engine.pooling import hold_to_stop
from paceline.engine.ports import Account, Delivery, Receipt, Tx
from paceline.engine.runs import end_if_done

log = structlog.get_logger("paceline.receipts")


class Acknowledged(NamedTuple):
    """What became of a receipt, and the message that it took back, if it did."""

    taken: Taken
    returned: Delivery | None = None


def acknowledge(tx: Tx, account: Account, receipt: Receipt, at: Instant) -> Taken:
    """Take in what is told of one message, and nothing else is taken in: of an answer that comes
    back a conversation is held, and all lanes come before that."""
    hold_to_stop(tx, account.id)
    taken, returned = note(tx, account, receipt, at)
    if returned is not None:
        hand_over(tx, account, talks_of(tx, account, [returned]), at)
    return taken


def note(
    tx: Tx, account: Account, receipt: Receipt, at: Instant, *, in_company: bool = False
) -> Acknowledged:
    """The same, where whoever asks sees to the conversation of what came back, and to the lanes:
    what ends a doubt or could not be delivered may stop the account (``returns.hold``).
    ``in_company`` says that they are not held, and none of these failed."""
    taken = resolve_by_receipt(tx, account.id, receipt, at, in_company=in_company)
    if taken in ("early", "by itself") or receipt.state == "sent":
        return Acknowledged(taken)
    if receipt.state == "failed":
        if taken == "resolved":
            return Acknowledged(taken)
        return _could_not_be_delivered(tx, account, receipt, at)
    found, told_at = _meant(tx, account, receipt), min(receipt.at or at, at)
    if found is None and not keep(tx, account, receipt, told_at):
        # Nothing is on its way any more: its name may have been written down between two looks.
        found = _meant(tx, account, receipt)
    if found is not None and found.parts_done - 1 == _part_of(tx, receipt, found):
        tx.receipts.note(found.id, told_at, read=receipt.state == "read")
    return Acknowledged(taken)


def _could_not_be_delivered(
    tx: Tx, account: Account, receipt: Receipt, at: Instant
) -> Acknowledged:
    # Before its name is looked for: whatever is settled from here on has one by then.
    on_its_way = receipt.key is None and tx.receipts.under_way(account.id)
    delivery = _failed_of(tx, account, receipt)
    if delivery is None:
        # Its name may be written down in a moment; then this has to be told again.
        early = on_its_way and _meant(tx, account, receipt) is None
        return Acknowledged("early" if early else "nothing")
    tx.lanes.touch(account.id, at)
    reason = receipt.reason or receipt.code or "the provider could not deliver it"
    said = discreet(reason, delivery.target, delivery.fields)
    if tx.deliveries.get(delivery.id).state is not DeliveryState.SENT:
        return Acknowledged("nothing")
    tx.deliveries.move(delivery.id, "bounce", at=at, reason=f"not delivered: {said}")
    # Without the address: events are read by many, and kept when a person is erased.
    tx.events.add(
        EventKind.DELIVERY_RETURNED,
        f"delivery {delivery.id} could not be delivered",
        at=at,
        account_id=account.id,
        run_id=delivery.run_id,
        delivery_id=delivery.id,
        data={"delivery": delivery.id, "suppressed": False},
    )
    log.info("not delivered", account=account.name, delivery=delivery.id, code=receipt.code)
    look_at_bounces(tx, account, at, late=True)
    end_if_done(tx, delivery.run_id, at)
    return Acknowledged("resolved", delivery)


def _failed_of(tx: Tx, account: Account, receipt: Receipt) -> Delivery | None:
    """The message that a failure takes back: one that was sent, and that nobody has got. Of a group
    somebody always has, and it is one member who has not."""
    found = _meant(tx, account, receipt)
    if found is None or found.state is not DeliveryState.SENT:
        return None
    if guess_kind(found.target) == "group" or found.delivered_at is not None:
        return None
    return found


def _meant(tx: Tx, account: Account, receipt: Receipt) -> Delivery | None:
    """The account's message that a receipt is about, by our own name of it or the provider's."""
    key = named_by(tx, receipt.key)
    number = key.delivery_id if key is not None else None
    if number is None and receipt.provider_id:
        number = tx.receipts.named(account.id, receipt.provider_id)
    if number is None:
        return None
    try:
        found = tx.deliveries.get(number)
    except NotFoundError:
        return None
    return found if found.account_id == account.id else None


def _part_of(tx: Tx, receipt: Receipt, delivery: Delivery) -> int:
    """Which part a receipt is about; by the provider's name only the last one is known."""
    key = named_by(tx, receipt.key)
    return delivery.parts_done - 1 if key is None else key.part
