"""Accounts: add, change, pause, resume, remove."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.nearest import did_you_mean
from paceline.core.policy import merge
from paceline.core.states import ACCOUNT, DeliveryState
from paceline.engine import events
from paceline.engine.alerts import account_goes_on, mailbox_is_gone
from paceline.engine.catalogue import Catalogue, limits_changed
from paceline.engine.pooling import bring_forward, give_back, hold_to_stop, left_alone
from paceline.engine.ports import Account, Addressed, Providers, Run, Tx
from paceline.engine.ports.pools import NOBODY
from paceline.engine.runs import end_if_done

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")


def find(tx: Tx, name: str) -> Account:
    account = tx.accounts.find(name)
    if account is None:
        names = [known.name for known in tx.accounts.list()]
        raise NotFoundError(f"no account named '{name}'{did_you_mean(name, names)}")
    return account


@dataclass(frozen=True, slots=True)
class House:
    """What an account's wishes are checked against: the providers and the policies there are."""

    providers: Providers
    catalogue: Catalogue


@dataclass(frozen=True, slots=True)
class NewAccount:
    name: str
    provider: str
    address: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    policy: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What is to be different; what is left out stays."""

    policy: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    address: str | None = None


def add(tx: Tx, new: NewAccount, house: House, at: Instant) -> Account:
    if not NAME.fullmatch(new.name):
        raise InputError(
            f"{new.name!r} cannot be an account's name",
            key="name",
            hint="Use letters, digits and . _ @ + - (64 at most, not starting with a sign)",
        )
    if tx.accounts.find(new.name) is not None:
        raise ConflictError(f"an account named '{new.name}' exists already", key="name")
    provider = house.providers.get(new.provider)
    checked = provider.check(new.settings)
    if isinstance(provider, Addressed):
        # Where letters are from follows from both, so it is looked at when both are known.
        provider.check_address(checked, new.address or new.name)
    policy_id = house.catalogue.version(tx, new.policy, new.overrides, at, where=new.name)
    account = tx.accounts.add(
        name=new.name,
        provider=new.provider,
        address=new.address or new.name,
        settings=house.providers.sealed(new.provider, new.name, checked),
        policy_name=new.policy,
        overrides=new.overrides,
        policy_id=policy_id,
        at=at,
    )
    _tell(tx, EventKind.ACCOUNT_ADDED, account, at)
    return account


def change(tx: Tx, name: str, wish: AccountChange, house: House, at: Instant) -> Account:
    """New limits or settings, in force from the next message."""
    tx.settings.fence()
    account = find(tx, name)
    tx.lanes.hold(account.id)
    policy_name = wish.policy if wish.policy is not None else account.policy_name
    own = merge(_without(account.overrides, wish.unset), wish.overrides)
    changes: dict[str, Any] = {
        "policy_name": policy_name,
        "overrides": own,
        "policy_id": house.catalogue.version(tx, policy_name, own, at, where=name),
    }
    if wish.settings or wish.address is not None:
        provider = house.providers.get(account.provider)
        checked: Mapping[str, Any] = {}
        if wish.settings or isinstance(provider, Addressed):
            checked = provider.check(
                {**house.providers.unsealed(account).settings, **wish.settings}
            )
        if isinstance(provider, Addressed):
            address = account.address if wish.address is None else wish.address
            provider.check_address(checked, address)
        if wish.settings:
            changes["settings"] = house.providers.sealed(account.provider, name, checked)
    if wish.address is not None:
        changes["address"] = wish.address
    tx.accounts.update(account.id, **changes)
    limits_changed(tx, account, at)
    _tell(tx, EventKind.ACCOUNT_CHANGED, account, at)
    return tx.accounts.get(account.id)


def _without(own: Mapping[str, Any], unset: tuple[str, ...]) -> dict[str, Any]:
    """The account's own values without those named; ``daily.email`` reaches into a table."""
    left = {key: dict(value) if isinstance(value, Mapping) else value for key, value in own.items()}
    for name in unset:
        key, dot, inner = name.partition(".")
        table = left.get(key) if dot else left
        if not isinstance(table, dict) or (inner or key) not in table:
            known = ", ".join(own) or "none"
            raise InputError(f"the account has no '{name}' of its own (it has: {known})")
        del table[inner or key]
        if dot and not table:
            del left[key]
    return left


def pause(tx: Tx, name: str, at: Instant, reason: str = "paused by an operator") -> Account:
    return _move(tx, name, "pause", at, reason)


def resume(tx: Tx, name: str, at: Instant) -> Account:
    return _move(tx, name, "resume", at, "")


def _move(tx: Tx, name: str, event: str, at: Instant, reason: str) -> Account:
    tx.settings.fence()
    account = find(tx, name)
    if event == "pause":
        hold_to_stop(tx, account.id)
    else:
        tx.lanes.hold(account.id)
    state = tx.accounts.move(account.id, event, reason=reason)
    if state is None:
        possible = sorted({e for s, e in ACCOUNT.table if s is account.state} & {"pause", "resume"})
        hint = f"Possible now: {', '.join(possible)}" if possible else None
        raise ConflictError(
            f"account {name} is {account.state.replace('_', ' ')}: cannot {event}", hint=hint
        )
    if event == "pause":
        give_back(tx, account.id, at)
    tx.lanes.touch(account.id, at)
    events.account_is(tx, account, state, at, reason=reason)
    if event == "resume":
        account_goes_on(tx, account.id, at)
        bring_forward(tx, tx.accounts.get(account.id), at)
    return tx.accounts.get(account.id)


def remove(tx: Tx, name: str, at: Instant, *, cancel: bool = False) -> Account:
    """Take an account out of service. Its ledger stays: limits and history are not forgotten."""
    tx.settings.fence()
    account = find(tx, name)
    hold_to_stop(tx, account.id)
    give_back(tx, account.id, at)
    restored = tx.path.restore(account.id)
    alone = left_alone(tx, account)
    waiting = 0
    for run in restored.runs if restored is not None else ():
        by_account = tx.runs.accounts(run.id)
        counts = Counter(by_account.get(account.id, {}))
        if run.id in alone:
            counts.update(by_account.get(NOBODY, {}))
        waiting += counts.get(DeliveryState.PLANNED, 0) + counts.get(DeliveryState.READY, 0)
        if counts.get(DeliveryState.SENDING, 0):
            raise ConflictError(
                f"account {name} is sending right now", hint="Pause it first, then remove it"
            )
    if waiting and not cancel:
        raise ConflictError(
            f"account {name} has {waiting} deliveries waiting",
            hint=_way_out(name, restored.runs if restored is not None else ()),
        )
    for run in restored.runs if restored is not None else ():
        _leave_doubts_to_a_person(tx, run.id, account)
        tx.deliveries.move_all(
            run.id,
            "cancel",
            at=at,
            reason=f"account {name} removed",
            account_id=account.id,
            pooled=run.id in alone,
        )
    tx.accounts.update(account.id, removed_at=at)
    for run in restored.runs if restored is not None else ():
        end_if_done(tx, run.id, at)
    tx.lanes.touch(account.id, at)
    _tell(tx, EventKind.ACCOUNT_REMOVED, account, at)
    account_goes_on(tx, account.id, at)
    mailbox_is_gone(tx, account, at)
    return account


def _way_out(name: str, runs: Sequence[Run]) -> str:
    """What can be done about what waits on an account that is to be removed."""
    cancel = "Add --cancel to cancel them with the account"
    theirs = dict.fromkeys(run.campaign for run in runs if run.kind == "reminder")
    others = [f"paceline reminder reassign {quote(one)} --from {name}" for one in theirs]
    return f"{cancel}, or let others send them: {'; '.join(others)}" if others else cancel


def _tell(tx: Tx, kind: EventKind, account: Account, at: Instant) -> None:
    text = f"{account.name} {kind.partition('.')[2]}"
    tx.events.add(kind, text, at=at, account_id=account.id, data={"account": account.name})


def _leave_doubts_to_a_person(tx: Tx, run_id: int, account: Account) -> None:
    """Nobody will ask the provider any more on behalf of an account that is gone."""
    after_id, state = 0, DeliveryState.UNKNOWN
    while page := tx.deliveries.page(
        run_id=run_id, account_id=account.id, state=state, after_id=after_id
    ):
        for delivery in page:
            reason = f"{delivery.reason}; account {account.name} was removed, held for a person"
            tx.deliveries.postpone(delivery.id, None, reason)
        after_id = page[-1].id
