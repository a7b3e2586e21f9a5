"""Receipts that come before the name of their message: a provider may tell how far it got sooner
than its own answer is written down. They are kept, and acted upon once the message is known.

Not by telling the provider to come again, as where a doubt hangs on it: phones that an account
shares tell of messages that are none of ours all day long, and would be told so for ever.
"""

from __future__ import annotations

import structlog

from paceline.core.instants import HOUR, Instant
from paceline.engine.ports import Account, Journal, Receipt, Tx

TOGETHER = 500
KEPT_US = HOUR
"""For longer than any answer is on its way. What is unknown by then was never ours."""

log = structlog.get_logger("paceline.receipts")


def keep(tx: Tx, account: Account, receipt: Receipt, told_at: Instant) -> bool:
    """Where anything of the account's is with its provider just now, and nobody else is meant;
    whether it was."""
    may_be_ours = receipt.key is None and bool(receipt.provider_id)
    if not may_be_ours or not tx.receipts.under_way(account.id):
        return False
    read = receipt.state == "read"
    tx.receipts.keep(account.id, receipt.provider_id or "", told_at, read=read)
    return True


async def look_after_receipts(journal: Journal) -> None:
    """Once in a while, where any are kept."""
    while await journal.write(_act):
        pass
    await journal.write(lambda tx: tx.receipts.forget_older(KEPT_US))


def _act(tx: Tx) -> bool:
    """Whether there may be more of them."""
    found = tx.receipts.known(TOGETHER)
    for one in found:
        tx.receipts.note(one.delivery_id, one.delivered_at, read=False)
        if one.read_at is not None:
            tx.receipts.note(one.delivery_id, one.read_at, read=True)
        tx.receipts.forget(one.account_id, one.provider_id)
    if found:
        log.info("receipts found their messages", count=len(found))
    return len(found) == TOGETHER
