"""Operators who mind the table of signals and the phone: what they change, and what they wait for.

They know of trouble only by being told: what stopped by itself goes on when somebody has heard of
it, and not before. So an alert that is lost leaves its campaign standing, for everybody to see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.engine import alerts
from paceline.engine.commands import signals
from paceline.engine.ports import Tx
from paceline.sim.signal_worlds import draw_rule, draw_signal

if TYPE_CHECKING:
    from paceline.sim.operators import Operators

PROVIDERS = ("sandbox",)


@dataclass(frozen=True, slots=True)
class Table:
    """What operators have put into the table of signals, from an instant on."""

    at: Instant
    own: Mapping[str, Mapping[str, Any]]


def orders(people: Operators) -> list[tuple[str, Callable[[], None]]]:
    """What can be ordered, by what it is called."""
    return [
        ("sets a signal", lambda: _set(people)),
        ("sets another signal", lambda: _set(people)),
        ("resets the signals", lambda: _reset(people)),
        ("clears an alert", lambda: _clear(people)),
    ]


def unheard(people: Operators, tx: Tx) -> set[str]:
    """Accounts and campaigns that have stopped by themselves, and nobody has been told; of what
    they stopped themselves people need no notice."""
    phone = people.around.phone
    if phone is None:
        return set()
    found: set[str] = set()
    for alert in tx.alerts.list():
        if alert.id in phone.heard:
            continue
        if alert.run_id is not None:
            found.add(tx.runs.get(alert.run_id).campaign)
        elif alert.account_id is not None:
            found.add(tx.accounts.get(alert.account_id).name)
    ours = [silence for silence in people.silences if silence.until_at is None]
    return found - {silence.account or silence.campaign for silence in ours}


def _set(people: Operators) -> None:
    signal, rule = draw_signal(people.rng), draw_rule(people.rng)
    at = people.say(lambda tx, now: signals.set_rule(tx, signal, rule, PROVIDERS, now))
    people.tables.append(Table(at, {**people.tables[-1].own, signal: rule}))


def _reset(people: Operators) -> None:
    at = people.say(lambda tx, now: signals.reset(tx, None, now))
    people.tables.append(Table(at, {}))


def _clear(people: Operators) -> None:
    """Somebody has seen to it, or thinks so; nothing goes on because of that."""
    with people.store.read() as tx:
        opened = tx.alerts.list()
    if not opened:
        raise InputError("nothing needs a person")
    alert = people.rng.choice(opened)
    people.say(lambda tx, now: alerts.clear(tx, alert.id, now))
