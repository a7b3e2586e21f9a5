"""What a provider reports of a message in doubt: the answer that was lost, by another way.

A receipt that carries our own key names the very part whose fate is unknown. That the provider has
it ends the doubt, and it is never sent again. Receipts for messages of which nobody is in doubt are
none of this module's business. Nothing here ever guesses.
"""

from __future__ import annotations

from typing import Literal

from paceline.core.discretion import discreet
from paceline.core.errors import NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.names import Named
from paceline.core.states import DeliveryState
from paceline.engine.doubts import record_presence, resolution_row
from paceline.engine.lane_writes import cancel_if_gone
from paceline.engine.naming import named_by
from paceline.engine.ports import Delivery, LedgerRow, Receipt, Tx
from paceline.engine.runs import end_if_done, reopen_for

Taken = Literal["resolved", "early", "nothing", "by itself"]
"""What a receipt came to: it ended a doubt; nobody knows yet that there is one, so whoever reports
should do so again in a while; there was nothing to be in doubt of; or it may stop the account, and
is to be taken in once more, alone."""


def resolve_by_receipt(
    tx: Tx, account_id: int, receipt: Receipt, at: Instant, *, in_company: bool = False
) -> Taken:
    """End the doubt that a receipt for this account answers, if there is one. It may be what pauses
    the account: held, and ``in_company``, as ``record_presence`` says."""
    key = named_by(tx, receipt.key)
    if key is None or _in_doubt(tx, account_id, key) is None:
        return "nothing"
    # From here on the lane cannot clear the doubt by itself, so what is read next stays true.
    tx.lanes.touch(account_id, at)
    delivery = _in_doubt(tx, account_id, key)
    if delivery is None:
        return "nothing"
    if delivery.state is DeliveryState.SENDING:
        # Its call may be under way this very moment, or its process has just died.
        return "early"
    tried = [row for row in tx.ledger.of_delivery(delivery.id) if _is_try(row, key.part)]
    if receipt.state != "failed":
        if not _arrived(tx, delivery, receipt, at, in_company=in_company):
            return "by itself"
        cancel_if_gone(tx, tx.accounts.get(account_id), delivery.id, at)
    elif len(tried) == 1:
        _failed(tx, delivery, tried[0], receipt, at)
    else:
        # An earlier attempt had the same key, and it may be that one which failed.
        return "nothing"
    reopen_for(tx, delivery.id, at)
    end_if_done(tx, delivery.run_id, at)
    verdict = "failed" if receipt.state == "failed" else "sent"
    text = f"delivery {delivery.id} resolved by a receipt: {verdict}"
    told = {"delivery": delivery.id, "run": delivery.run_id, "verdict": verdict}
    tx.events.add(EventKind.UNKNOWN_RESOLVED, text, at=at, delivery_id=delivery.id, data=told)
    return "resolved"


def _in_doubt(tx: Tx, account_id: int, key: Named) -> Delivery | None:
    """The delivery, if the part is the one that it hangs on, and this account tried it."""
    try:
        delivery = tx.deliveries.get(key.delivery_id)
    except NotFoundError:
        return None
    ours = (delivery.account_id, delivery.parts_done) == (account_id, key.part)
    hangs = delivery.state in (DeliveryState.UNKNOWN, DeliveryState.SENDING)
    return delivery if ours and hangs else None


def _is_try(row: LedgerRow, part: int) -> bool:
    return row.kind == "intent" and row.part == part


def _arrived(
    tx: Tx, delivery: Delivery, receipt: Receipt, at: Instant, *, in_company: bool
) -> bool:
    run = tx.runs.get(delivery.run_id)
    parts = len(delivery.content or run.parts_of(delivery.step))
    whole = delivery.parts_done + 1 >= parts
    name = receipt.provider_id or None
    return record_presence(tx, delivery, name, whole=whole, now=at, in_company=in_company)


def _failed(tx: Tx, delivery: Delivery, intent: LedgerRow, receipt: Receipt, at: Instant) -> None:
    """The provider had taken it, and could not deliver it. The slot stays used up, as it does for
    any message that was taken."""
    name = receipt.provider_id or None
    tx.ledger.append(resolution_row(intent, "rejected", 0, name, at))
    reason = receipt.reason or receipt.code or "the provider could not deliver it"
    said = discreet(reason, delivery.target, delivery.fields)
    tx.deliveries.move(delivery.id, "fail", at=at, reason=said)
