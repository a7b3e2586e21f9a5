"""Stopping everything at once, and settling doubts by hand."""

from __future__ import annotations

from typing import Literal

from paceline.core.errors import ConflictError, InputError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.doubts import record_absence, record_presence
from paceline.engine.lane_writes import cancel_if_gone
from paceline.engine.pooling import hold_to_stop
from paceline.engine.ports import Delivery, Tx
from paceline.engine.runs import end_if_done, reopen_for
from paceline.engine.stopping import STOPPED_AT

Resolved = Literal["sent", "resend", "failed"]


def stop_all(tx: Tx, reason: str, at: Instant) -> None:
    """Nothing starts on any account, in any process, once this has committed."""
    tx.settings.fence()
    if tx.settings.stopped() is None:
        tx.settings.put(STOPPED_AT, at)
    tx.settings.stop(reason)
    tx.lanes.touch_all(at)
    text = f"everything stopped: {reason}"
    tx.events.add(EventKind.SENDING_STOPPED, text, at=at, data={"reason": reason})


def go_on(tx: Tx, at: Instant) -> None:
    if tx.settings.stopped() is None:
        raise ConflictError("nothing is stopped")
    tx.settings.fence()
    tx.settings.go_on()
    tx.lanes.touch_all(at)
    tx.events.add(EventKind.SENDING_RESUMED, "sending goes on", at=at)


def resolve_unknown(tx: Tx, delivery_id: int, verdict: Resolved, at: Instant) -> Delivery:
    """A person knows what became of a message; the ledger is told, and limits follow."""
    tries = [row for row in tx.ledger.of_delivery(delivery_id) if row.kind == "intent"]
    # One out of a pool may be nobody's any more, though somebody has tried it.
    account_id = tx.deliveries.get(delivery_id).account_id or (tries and tries[-1].account_id)
    if not account_id:
        raise ConflictError(f"delivery {delivery_id} was never tried, so nothing is unknown of it")
    if verdict == "sent":
        hold_to_stop(tx, account_id)
    # From here on the lane cannot clear the doubt by itself, so what is read next stays true.
    tx.lanes.touch(account_id, at)
    delivery = tx.deliveries.get(delivery_id)
    if delivery.state is not DeliveryState.UNKNOWN:
        raise ConflictError(f"delivery {delivery_id} is {delivery.state}, not unknown")
    account = tx.accounts.get(account_id)
    if verdict == "resend" and account.removed_at is not None:
        raise ConflictError(
            f"account {account.name} was removed, nobody can send delivery {delivery_id} again",
            hint="Resolve it as sent or failed",
        )
    if verdict == "sent":
        run = tx.runs.get(delivery.run_id)
        parts = len(delivery.content or run.parts_of(delivery.step))
        whole = delivery.parts_done + 1 >= parts
        record_presence(tx, delivery, None, whole=whole, now=at)
        cancel_if_gone(tx, account, delivery_id, at)
    elif verdict == "resend":
        record_absence(tx, delivery, at)
    elif verdict == "failed":
        tx.deliveries.move(delivery_id, "fail", at=at, reason="given up by an operator")
    else:
        raise InputError(f"cannot resolve as '{verdict}'", hint="Say sent, resend or failed")
    reopen_for(tx, delivery_id, at)
    end_if_done(tx, delivery.run_id, at)
    text = f"delivery {delivery_id} resolved by hand: {verdict}"
    told = {"delivery": delivery_id, "run": delivery.run_id, "verdict": verdict}
    tx.events.add(EventKind.UNKNOWN_RESOLVED, text, at=at, delivery_id=delivery_id, data=told)
    return tx.deliveries.get(delivery_id)
