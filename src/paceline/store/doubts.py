"""Deliveries that were sent again while in doubt: whatever ends them before they are sent, an
earlier try may have arrived, and nobody may be told that it has not.

The ledger knows: the part that is next was lost once, and nothing that was heard of that try since
says what became of it.
"""

from __future__ import annotations

from sqlalchemy import and_, exists, literal

from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.store.schema import deliveries, ledger

ENDED = frozenset({DeliveryState.CANCELLED, DeliveryState.SKIPPED, DeliveryState.FAILED})
"""What a delivery becomes that nobody will send."""
MAY_BE_IN_DOUBT = frozenset({DeliveryState.READY, DeliveryState.FAILED})
"""Where a try can be behind a delivery that nobody heard of. It is lost again only if there is."""

_lost, _heard = ledger.alias("lost"), ledger.alias("heard")
_SAID_SINCE = exists(literal(1)).where(
    _heard.c.delivery_id == _lost.c.delivery_id,
    _heard.c.part == _lost.c.part,
    _heard.c.attempt == _lost.c.attempt,
    _heard.c.outcome.is_not(None),
    _heard.c.outcome != OutcomeKind.UNKNOWN.value,
)
IN_DOUBT = and_(
    deliveries.c.attempts > 0,
    exists(literal(1)).where(
        _lost.c.delivery_id == deliveries.c.id,
        _lost.c.part == deliveries.c.parts_done,
        _lost.c.outcome == OutcomeKind.UNKNOWN.value,
        ~_SAID_SINCE,
    ),
)
"""Whether an earlier try of a delivery that waits may have arrived."""


def left_open(reason: str) -> str:
    """Why such a delivery is held, when it was to end for a reason."""
    return f"{reason or 'called off'}; an earlier try may have arrived, held for a person"
