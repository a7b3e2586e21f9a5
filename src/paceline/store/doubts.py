"""Deliveries that were sent again while in doubt: whatever ends them before they are sent, an
earlier try may have arrived, and nobody may be told that it has not.

The ledger knows: the part that is next was lost once, and nothing that was heard of that try since
says what became of it.
"""

from __future__ import annotations

from sqlalchemy import bindparam, select, text

from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.store.prepared import Prepared
from paceline.store.schema import deliveries

ENDED = frozenset({DeliveryState.CANCELLED, DeliveryState.SKIPPED, DeliveryState.FAILED})
"""What a delivery becomes that nobody will send."""
MAY_BE_IN_DOUBT = frozenset({DeliveryState.READY, DeliveryState.FAILED})
"""Where a try can be behind a delivery that nobody heard of. It is lost again only if there is."""

IN_DOUBT = f"""
deliveries.attempts > 0 AND (SELECT count(*) FROM ledger AS lost
    WHERE lost.delivery_id = deliveries.id AND lost.part = deliveries.parts_done
    AND lost.outcome = '{OutcomeKind.UNKNOWN.value}'
    AND NOT EXISTS (SELECT 1 FROM ledger AS heard
        WHERE heard.delivery_id = lost.delivery_id AND heard.part = lost.part
        AND heard.attempt = lost.attempt
        AND heard.outcome NOT IN ('{OutcomeKind.UNKNOWN.value}', '{OutcomeKind.ACCEPTED.value}'))
    ) > 0
"""
"""Whether an earlier try of a delivery that waits may have arrived. That it was accepted is no
reason to say that it was not: a part that was accepted in time is not the next any more.

Counted, and not asked whether there is any, because PostgreSQL would make that a join that begins
with all that was ever lost.
"""

IS_IN_DOUBT = Prepared(
    lambda _: select(deliveries.c.id).where(
        deliveries.c.id == bindparam("delivery_id"), text(IN_DOUBT)
    )
)

LEFT_OPEN = "; an earlier try may have arrived, held for a person"


def left_open(reason: str) -> str:
    """Why such a delivery is held, when it was to end for a reason."""
    return f"{reason or 'called off'}{LEFT_OPEN}"
