"""What waits for somebody who asked not to be written to goes out no more."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports import Delivery, Tx
from paceline.engine.runs import end_if_done

REASON = "asked not to be written to"

WAITS = (DeliveryState.PLANNED, DeliveryState.READY)


def call_off(tx: Tx, waiting: Sequence[Delivery], at: Instant, reason: str = REASON) -> int:
    """Cancel these, from whichever account they were to go; how many."""
    for account_id in sorted({row.account_id for row in waiting if row.account_id is not None}):
        tx.lanes.touch(account_id, at)
    # Behind the lanes: what has set out since it was read is on its way, and stays so.
    left = [row for row in waiting if tx.deliveries.get(row.id).state in WAITS]
    states = [tx.deliveries.move(row.id, "cancel", at=at, reason=reason) for row in left]
    for run_id in sorted({row.run_id for row in left}):
        end_if_done(tx, run_id, at)
    return states.count(DeliveryState.CANCELLED)
