"""How accounts answer: which way each has, as far as conversations have to know it.

The ways themselves are settings of the installation. What is kept with an account is the name of
its way and how long it listens before it answers, so that whoever takes a message in can say when
its turn begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.core.answering import Way
from paceline.core.errors import InputError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.nearest import did_you_mean
from paceline.core.turns import Patience
from paceline.engine.commands.accounts import find
from paceline.engine.ports import Account, Tx

MOST_WAITING = 10_000
"""Conversations whose turns are reckoned anew when an account is answered in another way."""


def answer_by(tx: Tx, name: str, way: str | None, ways: Mapping[str, Way], at: Instant) -> Account:
    """Have whoever writes to an account answered in this way; in none, people answer. What waits
    is answered in the new way."""
    account = find(tx, name)
    if way is not None and way not in ways:
        known = ", ".join(sorted(ways)) or "none"
        raise InputError(
            f"there is no way to answer called '{way}'{did_you_mean(way, ways)}",
            hint=f"Known: {known}. Describe it in paceline.toml: [answering.{way}]",
        )
    _keep(tx, account, {} if way is None else kept(ways[way]), at)
    told = {"account": account.name}
    text = (
        f"{account.name} is answered by {way}" if way else f"{account.name} is answered by people"
    )
    tx.events.add(EventKind.ACCOUNT_CHANGED, text, at=at, account_id=account.id, data=told)
    return tx.accounts.get(account.id)


def refresh(tx: Tx, ways: Mapping[str, Way], at: Instant) -> list[Account]:
    """Settings may have changed since: keep with every account what its way says now. The accounts
    that this changed; one whose way is gone keeps what it had, and people are told when it is
    asked for an answer."""
    changed = []
    for account in tx.accounts.list():
        way = ways.get(str(account.answering.get("way", "")))
        if way is not None and kept(way) != dict(account.answering):
            _keep(tx, account, kept(way), at)
            changed.append(account)
    return changed


def kept(way: Way) -> dict[str, Any]:
    """What of a way is kept with an account. One that nobody but people answers is none."""
    if way.responder == "none":
        return {}
    patience = Patience(way.quiet_us, way.max_wait_us, "redo" if way.on_newer == "redo" else "wait")
    return {"way": way.name, **patience._asdict()}


def _keep(tx: Tx, account: Account, answering: Mapping[str, Any], at: Instant) -> None:
    tx.accounts.update(account.id, answering=answering)
    waiting = tx.conversations.list(account_id=account.id, waiting=True, limit=MOST_WAITING)
    for number in sorted(one.id for one in waiting):  # the order in which everybody holds them
        held = tx.conversations.hold(number)
        if held.first_at is None:
            continue
        due_at = None
        if answering:
            due_at = Patience.stored(answering).due_at(held.first_at, held.last_at or at)
        tx.conversations.change(held.id, due_at=due_at)
