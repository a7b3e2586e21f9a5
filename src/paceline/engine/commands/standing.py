"""How an account stands, as its provider reports it by itself: the same follows as if a message had
found it out, only sooner.

A provider that refuses the account for a while cools it down, one that refuses it for good suspends
it; and what was stopped by such a report goes on when the provider takes it back. What was stopped
by anything else waits for a person, whatever the provider says. That an account is offline changes
nothing: its messages wait by themselves, and it comes back by itself.
"""

from __future__ import annotations

import structlog

from paceline.core.instants import Instant
from paceline.core.states import AccountState
from paceline.engine import alerts, events
from paceline.engine.pooling import bring_forward, give_back
from paceline.engine.ports import Account, AccountNews, Tx

REPORTED = "the provider reports: "
"""How the reason begins of what was stopped by a report."""

log = structlog.get_logger("paceline.standing")


def stands(tx: Tx, account: Account, news: AccountNews, at: Instant) -> AccountState | None:
    """Behind the fence, with the lanes of an account that may be stopped (``hold_to_stop``): act
    upon a report; the account's new state, if it has one. Reports may overtake each other: one that
    is older than another that was acted upon says nothing."""
    told_at = min(news.at or at, at)
    if not _is_news(tx, account, news.state, told_at):
        return None
    reason = "" if news.state == "ready" else news.reason
    log.info("account reported", account=account.name, state=news.state, reason=reason)
    if news.state == "refused":
        return _stopped(tx, account, news, at)
    return _goes_on(tx, account, at) if news.state == "ready" else None


def _is_news(tx: Tx, account: Account, state: str, told_at: Instant) -> bool:
    """Whether it was told later than what is known: the same once more would undo what a person has
    done about it since."""
    place = f"standing.{account.id}"
    before_at, before = tx.settings.get(place) or (0, "")
    if told_at < before_at or (told_at, state) == (before_at, before):
        return False
    tx.settings.put(place, [told_at, state])
    return True


def _stopped(tx: Tx, account: Account, news: AccountNews, at: Instant) -> AccountState | None:
    passing = news.until_at is not None and news.until_at > at
    until_at = news.until_at if passing else None
    reason = f"{REPORTED}{news.reason or 'the account is refused'}"
    event = "cool_down" if passing else "suspend"
    if passing and (account.state, account.state_until_at) == (AccountState.COOLING_DOWN, until_at):
        return None
    state = tx.accounts.move(account.id, event, reason=reason, until_at=until_at)
    if state is None:
        return None
    events.account_is(tx, account, state, at, reason=reason, until_at=until_at)
    give_back(tx, account.id, at)
    tx.lanes.touch(account.id, at)
    alerts.account_stopped(tx, account, state, reason, at)
    return state


def _goes_on(tx: Tx, account: Account, at: Instant) -> AccountState | None:
    by_report = account.state_reason.startswith(REPORTED)
    event = {AccountState.SUSPENDED: "resume", AccountState.COOLING_DOWN: "reopen"}
    if not by_report or account.state not in event:
        return None
    tx.lanes.hold(account.id)
    state = tx.accounts.move(account.id, event[account.state])
    if state is not None:
        events.account_is(tx, tx.accounts.get(account.id), state, at)
        tx.lanes.touch(account.id, at)
        alerts.account_goes_on(tx, account.id, at)
        bring_forward(tx, tx.accounts.get(account.id), at)
    return state
