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
from paceline.engine import held_ways
from paceline.engine.commands.accounts import find
from paceline.engine.ports import Account, Tx
from paceline.engine.ports.conversations import Conversation
from paceline.engine.ports.listening import Waiting

AT_ONCE = 1_000
"""Conversations whose turns are reckoned anew in one go, however many there are."""


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
    _keep(tx, {account.id: {} if way is None else kept(ways[way])}, at)
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
    changed: dict[int, Mapping[str, Any]] = {}
    accounts = tx.accounts.list()
    for account in accounts:
        way = ways.get(str(account.answering.get("way", "")))
        if way is not None and kept(way) != dict(account.answering):
            changed[account.id] = kept(way)
    _keep(tx, changed, at)
    return [account for account in accounts if account.id in changed]


def kept(way: Way) -> dict[str, Any]:
    """What of a way is kept with an account. One that nobody but people answers is none."""
    if way.responder == "none":
        return {}
    patience = Patience(way.quiet_us, way.max_wait_us, "redo" if way.on_newer == "redo" else "wait")
    return {"way": way.name, **patience._asdict()}


def _keep(tx: Tx, answering: Mapping[int, Mapping[str, Any]], at: Instant) -> None:
    """How each of these accounts answers from now on."""
    for account_id in sorted(answering):
        tx.accounts.update(account_id, answering=answering[account_id])
    # Accounts first, as whoever takes in what is told of one does it. Those who hear by the old
    # settings are waited for here, and what they heard is reckoned anew with all the rest.
    tx.listening.hold_off()
    after = 0
    while some := tx.listening.hold_waiting(answering, after, AT_ONCE):
        tx.listening.let_wait([_reckoned(one, answering[one.account_id]) for one in some])
        after = some[-1].id
    held_ways.tidy(tx, at)


def _reckoned(one: Conversation, answering: Mapping[str, Any]) -> Waiting:
    due_at = None
    if answering and one.first_at is not None:
        due_at = Patience.stored(answering).due_at(one.first_at, one.last_at or one.first_at)
    return Waiting(one.id, one.heard_at, one.first_at, one.last_at, due_at)
