"""What was found out about a message in doubt, written down: it arrived, or it did not."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.core.instants import Instant
from paceline.core.outcome import OutcomeKind
from paceline.core.retry import after_retries
from paceline.engine.bouncing import look_at_bounces, may_give_back
from paceline.engine.ports import Delivery, LedgerRow, Tx


def unheard(rows: Iterable[LedgerRow], part: int) -> list[LedgerRow]:
    """The tries of a part of which nobody knows what became, oldest first. With ``on_unknown =
    "resend"`` there may be several, and the last one need not be among them."""
    ours = [row for row in rows if row.part == part]
    heard = {row.attempt for row in ours if row.outcome not in (None, OutcomeKind.UNKNOWN)}
    tries = [row for row in ours if row.kind == "intent" and row.attempt not in heard]
    return sorted(tries, key=lambda row: row.attempt)


def record_presence(
    tx: Tx,
    delivery: Delivery,
    provider_id: str | None,
    *,
    whole: bool,
    now: Instant,
    in_company: bool = False,
) -> bool:
    """The message is with the provider: count it as sent, or go on with its next part.

    It may be what pauses its account, whose lane is held with those of its pools
    (``hold_to_stop``). ``in_company``: only its own is; then nothing is written where it could come
    to the others, and False says that all of it has to be done again alone.

    One of its tries got there; where there were several, the last may be taken for it. The others
    keep their slots, for they may be there as well.
    """
    tries = unheard(tx.ledger.of_delivery(delivery.id), delivery.parts_done)
    for intent in tries[-1:]:
        account = tx.accounts.get(intent.account_id)
        if in_company and may_give_back(tx, account, now):
            return False
        tx.ledger.append(resolution_row(intent, "accepted", 0, provider_id, now))
        # Nobody has counted it as long as it was in doubt.
        look_at_bounces(tx, account, now, arrived=1)
    if whole:
        # Whoever asks may have a clock that is behind that of whoever sent it: by that it was not
        # sent before it was intended, and how long ago it was decides when anybody writes again.
        tx.deliveries.move(
            delivery.id,
            "accept",
            at=max([now, *(intent.intent_at for intent in tries[-1:])]),
            parts_done=delivery.parts_done + 1,
            provider_id=provider_id,
        )
    else:
        tx.deliveries.move(
            delivery.id,
            "retry",
            at=now,
            due_at=now,
            reason="going on after a found part",
            parts_done=delivery.parts_done + 1,
        )
    return True


def record_absence(tx: Tx, delivery: Delivery, now: Instant, *, again: bool = True) -> None:
    """The provider never had it: the slots come back, and the delivery is sent again or given up.
    All tries bear the same name there, so what is said holds for all of them.

    Sending again counts as a retry: a provider that loses every message must not be tried for ever.
    """
    for intent in unheard(tx.ledger.of_delivery(delivery.id), delivery.parts_done):
        tx.ledger.append(resolution_row(intent, "absent", -1, None, now))
    if not again:
        reason = f"never reached the provider ({after_retries(delivery.retries)})"
        tx.deliveries.move(delivery.id, "fail", at=now, reason=reason)
        return
    tx.deliveries.move(
        delivery.id,
        "retry",
        at=now,
        due_at=now,
        reason="proved absent",
        retries=delivery.retries + 1,
    )


def resolution_row(
    intent: LedgerRow, outcome: str, slots: int, provider_id: str | None, now: Instant
) -> LedgerRow:
    return LedgerRow(
        delivery_id=intent.delivery_id,
        part=intent.part,
        attempt=intent.attempt,
        kind="resolution",
        account_id=intent.account_id,
        run_id=intent.run_id,
        action=intent.action,
        at=now,
        intent_at=intent.intent_at,
        started_at=None,
        slots=slots,
        policy_id=intent.policy_id,
        generation=intent.generation,
        outcome=outcome,
        provider_id=provider_id,
    )
