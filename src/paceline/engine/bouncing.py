"""An account of whose messages too many come back in a day is paused: going on would only make it
worse. What is refused at once and what comes back hours later count alike.
"""

from __future__ import annotations

import structlog

from paceline.core.calendar import day_start_of
from paceline.core.health import bounces_too_many
from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.engine import alerts, events
from paceline.engine.pooling import give_back
from paceline.engine.ports import Account, Tx

log = structlog.get_logger("paceline.bounces")


def look_at_bounces(tx: Tx, account: Account, at: Instant) -> None:
    """Count the day's bounces of both kinds, and pause the account where they are too many."""
    policy = Policy.from_mapping(account.policy, where=account.name)
    since_at = day_start_of(at, policy.day_zone)
    at_once, later = tx.ledger.bounces(account.id, since_at)
    # A definite refusal has given its slot back, so those are counted on top.
    sends = sum(tx.ledger.counts(account.id, since_at).values()) + at_once
    if not bounces_too_many(policy, max(sends, later), at_once + later):
        return
    reason = f"bounce rate {at_once + later}/{sends} today is above {policy.bounce_pause}"
    # Also where the day's cap is reached, as it mostly is by then: tomorrow it would go on.
    state = tx.accounts.move(account.id, "pause", reason=reason)
    if state is None:
        return
    events.account_is(tx, account, state, at, reason=reason, until_at=None)
    tx.lanes.touch(account.id, at)
    give_back(tx, account.id, at)
    alerts.account_stopped(tx, account, state, reason, at, bounced=True)
    log.warning("account paused", account=account.name, reason=reason)
