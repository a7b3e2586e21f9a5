"""How new deliveries are written: one row each, in one order of columns."""

from __future__ import annotations

from typing import Any

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports.records import NewDelivery
from paceline.store.base import dump

COLUMNS = (
    "run_id",
    "account_id",
    "contact_id",
    "step",
    "after_id",
    "awaited",
    "bidden",
    "bidden_by",
    "position",
    "target",
    "fields",
    "content",
    "action",
    "reply",
    "state",
    "scheduled_at",
    "due_at",
    "expires_at",
    "recipient_hours",
    "parts_done",
    "attempts",
    "retries",
    "reason",
    "moved_at",
)
COPY = f"COPY deliveries ({', '.join(COLUMNS)}) FROM STDIN"
INSERT = f"INSERT INTO deliveries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' for _ in COLUMNS)})"


def first_state(new: NewDelivery) -> DeliveryState:
    return DeliveryState.PLANNED if new.due_at is None else DeliveryState.READY


def values_of(new: NewDelivery, at: Instant) -> tuple[Any, ...]:
    """In the order of ``COLUMNS``."""
    return (
        new.run_id,
        new.account_id,
        new.contact_id,
        new.step,
        new.after_id,
        new.awaited,
        new.bidden,
        new.bidden_by,
        new.position,
        new.target,
        dump(dict(new.fields)) if new.fields else "{}",
        None if new.content is None else dump(new.content),
        new.action,
        new.reply,
        first_state(new).value,
        new.scheduled_at,
        new.due_at,
        new.expires_at,
        new.recipient_hours,
        0,
        0,
        0,
        "",
        at,
    )
