"""Where an account's limits come from, and what of them is used up.

Document B's "Limit Source Priority", for every limit: the account's own value, then the policy it
names in ``paceline.toml``, then the preset behind that, then what ``paceline.toml`` says for all,
then the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core.calendar import day_of
from paceline.core.instants import Instant
from paceline.core.policy import KEYS, OFF, Policy
from paceline.core.tables import toml_value
from paceline.core.usage import Usage
from paceline.engine.catalogue import Catalogue
from paceline.engine.commands.accounts import find
from paceline.engine.memory import take_snapshot
from paceline.engine.ports import Account, Tx

OWN = "the account's own"
DEFAULT = "default"
NO_LIMIT = "none"
CAPS = ("daily", "weekly")

Layer = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit in force."""

    limit: str
    value: str
    source: str
    used: int | None = None
    """How many of ``cap`` are used today or this week; None where nothing is counted."""
    cap: int | None = None
    """What holds today: a warm-up may allow less than the value."""


@dataclass(frozen=True, slots=True)
class LimitsView:
    """Every limit of an account, as it is in force now."""

    account: Account
    policy: Policy
    day_at: Instant
    week_at: Instant
    lines: tuple[LimitLine, ...]
    outdated: bool
    """Whether ``paceline.toml`` says otherwise by now: it holds when the service starts next."""


def limits_view(tx: Tx, catalogue: Catalogue, name: str, now: Instant) -> LimitsView:
    account = find(tx, name)
    snapshot = take_snapshot(tx, account.id, now)
    policy, usage = snapshot.policy, snapshot.usage()
    layers = [*_layers(catalogue, account), (OWN, account.overrides)]
    day_index = (day_of(now, policy.day_zone) - day_of(account.warm_since_at, policy.day_zone)).days
    return LimitsView(
        account=account,
        policy=policy,
        day_at=snapshot.day_at,
        week_at=snapshot.week_at,
        lines=tuple(_lines(policy, usage, layers, day_index)),
        outdated=_outdated(catalogue, account),
    )


def _layers(catalogue: Catalogue, account: Account) -> list[Layer]:
    name = account.policy_name
    if name is not None and name not in catalogue.names():
        return [(f"policy {name}, which paceline.toml no longer has", account.policy)]
    return catalogue.layers(name)


def _outdated(catalogue: Catalogue, account: Account) -> bool:
    name = account.policy_name
    if name is not None and name not in catalogue.names():
        return True
    now = catalogue.effective(name, account.overrides, where=account.name)
    return now.to_mapping() != dict(account.policy)


def _lines(
    policy: Policy, usage: Usage, layers: Sequence[Layer], day_index: int
) -> Iterator[LimitLine]:
    for key in KEYS:
        if key in CAPS:
            yield from _caps(key, policy, usage, layers, day_index)
        elif key == "zone" and policy.zone is None:
            whose = "its hours" if policy.hours is not None else DEFAULT
            yield LimitLine(key, policy.day_zone, whose)
        elif key == "warmup" and policy.warmup is not None:
            yield from _warmup(policy, usage, layers, day_index)
        else:
            yield LimitLine(key, _written(policy, key), _source(layers, key))


def _caps(
    key: str, policy: Policy, usage: Usage, layers: Sequence[Layer], day_index: int
) -> Iterator[LimitLine]:
    """One line for every action that has a cap: an account may have set only one of them."""
    caps: Mapping[str, int] = getattr(policy, key)
    if not caps:
        yield LimitLine(key, NO_LIMIT, _source(layers, key))
    for action, cap in sorted(caps.items()):
        source, limit = _source(layers, key, action), f"{key}.{action}"
        if key == "daily":
            used, today = usage.day.get(action, 0), policy.cap_on(action, day_index)
            yield LimitLine(limit, str(cap), source, used, today)
        else:
            yield LimitLine(limit, str(cap), source, usage.week.get(action, 0), cap)


def _warmup(
    policy: Policy, usage: Usage, layers: Sequence[Layer], day_index: int
) -> Iterator[LimitLine]:
    """The ramp holds for every action; those that a daily cap names are told of there."""
    value, source = _written(policy, "warmup"), _source(layers, "warmup")
    today = policy.warmup.cap_on(day_index) if policy.warmup is not None else None
    others = [action for action in sorted(usage.day) if action not in policy.daily]
    if not others:
        yield LimitLine("warmup", value, source, cap=today)
    for action in others:
        cap = policy.cap_on(action, day_index)
        if cap is not None:
            yield LimitLine(f"warmup ({action})", value, source, usage.day[action], cap)


def _written(policy: Policy, key: str) -> str:
    value = getattr(policy, KEYS[key].field)
    if value is None or value == ():
        return NO_LIMIT
    written = KEYS[key].write(value)
    return written if isinstance(written, str) else toml_value(written)


def _source(layers: Sequence[Layer], key: str, action: str | None = None) -> str:
    """The strongest of the layers that says anything about it."""
    for name, values in reversed(layers):
        value = values.get(key)
        if value is None:
            continue
        if action is None or value == OFF or action in value:
            return name
    return DEFAULT
