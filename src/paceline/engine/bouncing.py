"""An account of whose messages too many come back in a day is paused: going on would only make it
worse. What is refused at once and what comes back hours later count alike.

Looked at whenever the answer may have changed: when one more comes back, and when the day has for
the first time enough letters to judge them by. Everything else that arrives makes the share of
those that came back smaller. So whoever lets a paused account go on is not contradicted by the
next letter that arrives, only by the next one that does not.

Where the cause is a doubt that has ended well, in the very transaction of that: after a crash
between the two nobody would look before the next that comes back. An account that is paused gives
back what it has of its pools, so their lanes are held before its own is
(``pooling.hold_to_stop``), in a transaction of its own. Nearly always nothing has come back, or
there is no pool; so doubts end in company, each with no lane but its account's, and only whoever
finds there that the account has something to give back begins anew, alone.
"""

from __future__ import annotations

from typing import NamedTuple

import structlog

from paceline.core.calendar import day_start_of
from paceline.core.health import bounces_too_many, enough_to_judge
from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.engine import alerts, events
from paceline.engine.memory import policy_of
from paceline.engine.pooling import give_back
from paceline.engine.ports import Account, Tx

log = structlog.get_logger("paceline.bounces")


class Letters(NamedTuple):
    """An account's letters of a day of which it is known what became."""

    sends: int
    bounces: int


def letters_of_the_day(
    tx: Tx, account: Account, policy: Policy, at: Instant, *, all_out: bool = False
) -> Letters:
    """Or of ``all_out`` there, what is in doubt and on its way included."""
    since_at = day_start_of(at, policy.day_zone)
    at_once, later = tx.ledger.bounces(account.id, since_at)
    if all_out:
        sends = sum(tx.ledger.counts(account.id, since_at).values())
    else:
        sends = tx.ledger.accepted(account.id, since_at)
    # What came back at once was never accepted; what did so later may be from the days before.
    return Letters(max(sends + at_once, later), at_once + later)


def any_came_back(tx: Tx, account: Account, at: Instant) -> bool:
    """Whether anything of the day did: mostly nothing, and then there is nothing to judge."""
    policy = policy_of(account)
    return any(tx.ledger.bounces(account.id, day_start_of(at, policy.day_zone)))


def may_give_back(tx: Tx, account: Account, at: Instant) -> bool:
    """Whether a look at the day's bounces may end with lanes of others: something came back, and
    the account has pools. Asked with its lane held, so that it stays true: whoever brings something
    back holds that as well."""
    if policy_of(account).bounce_pause is None or not any_came_back(tx, account, at):
        return False
    return bool(tx.pools.of_account(account.id))


def look_at_bounces(
    tx: Tx, account: Account, at: Instant, *, arrived: int = 0, late: bool = False
) -> None:
    """Count the day's bounces of both kinds, and pause the account where they are too many: of
    those of which it is known what became, or of all that went out.

    ``arrived`` is said where so many have only just turned out to be with the provider, and none
    came back; ``late`` where one did hours after, and what is on its way by now counts as well. The
    account's lane is held, with those of its pools if it has any.
    """
    policy = policy_of(account)
    if policy.bounce_pause is None or not any_came_back(tx, account, at):
        return
    sends, bounces = letters_of_the_day(tx, account, policy, at)
    if arrived and not enough_to_judge(policy, sends - arrived, sends):
        return
    if late or not bounces_too_many(policy, sends, bounces):
        sends, bounces = letters_of_the_day(tx, account, policy, at, all_out=True)
    if not bounces_too_many(policy, sends, bounces):
        return
    reason = f"bounce rate {bounces}/{sends} today is above {policy.bounce_pause}"
    # Also where the day's cap is reached, as it mostly is by then: tomorrow it would go on.
    state = tx.accounts.move(account.id, "pause", reason=reason)
    if state is None:
        return
    events.account_is(tx, account, state, at, reason=reason, until_at=None)
    tx.lanes.touch(account.id, at)
    give_back(tx, account.id, at)
    alerts.account_stopped(tx, account, state, reason, at, bounced=True)
    log.warning("account paused", account=account.name, reason=reason)
