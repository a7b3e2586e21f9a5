"""The table of signals: read, change, put back; in force on every lane before its next message.

It is kept in the database alone, and in no settings file: what a provider's answer leads to must be
the same for every process of a fleet, and must be changeable in the middle of the trouble that
makes somebody look it up, without a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.core.errors import InputError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.nearest import did_you_mean
from paceline.core.signals import ANY, DEFAULT_TABLE, Rule, Signal, Signals
from paceline.engine.ports import Tx

KEY = "signals"
"""The setting under which what operators have said is kept."""


def table(tx: Tx) -> Signals:
    return Signals(tx.settings.get(KEY))


def find(signals: Signals, text: str) -> tuple[str, Rule]:
    """One signal of the table, however its words are spaced."""
    name = str(Signal.parse(text))
    rule = signals.rules.get(name)
    if rule is None:
        known = did_you_mean(name, signals.rules)
        raise NotFoundError(
            f"there is no signal {name!r}{known}", hint="See: paceline signals list"
        )
    return name, rule


def set_rule(
    tx: Tx, text: str, changes: Mapping[str, Any], providers: Iterable[str], at: Instant
) -> tuple[str, Rule]:
    """Change a signal, or add one; what is not said stays as it is."""
    signal = Signal.parse(text)
    _check_provider(signal, providers)
    name = str(signal)
    _fence(tx, at)
    signals = table(tx)
    rule = Rule.from_mapping(changes, onto=signals.rules.get(name))
    tx.settings.put(KEY, {**signals.to_mapping(), name: rule.to_mapping()})
    text = f"signal {name} is {rule} now"
    tx.events.add(EventKind.SIGNALS_CHANGED, text, at=at, data={"signals": [name]})
    return name, rule


def reset(tx: Tx, text: str | None, at: Instant) -> list[str]:
    """Put one signal back to its default, or all; those that were changed."""
    _fence(tx, at)
    signals = table(tx)
    names = list(signals.own) if text is None else [find(signals, text)[0]]
    changed = [name for name in names if name in signals.own]
    left = {name: rule for name, rule in signals.to_mapping().items() if name not in changed}
    if changed:
        tx.settings.put(KEY, left)
        text = f"as by default: {', '.join(changed)}"
        tx.events.add(EventKind.SIGNALS_CHANGED, text, at=at, data={"signals": changed})
    return changed


def _fence(tx: Tx, at: Instant) -> None:
    """Nobody sends by the old table once this has committed: every lane reads it again first."""
    tx.settings.fence()
    tx.lanes.touch_all(at)


def _check_provider(signal: Signal, providers: Iterable[str]) -> None:
    known = {*providers, *(Signal.parse(text).provider for text in DEFAULT_TABLE), ANY}
    if signal.provider not in known:
        nearest = did_you_mean(signal.provider, known)
        hint = None if nearest else f"Known are {', '.join(sorted(known - {ANY}))}, or * for any"
        raise InputError(f"unknown provider {signal.provider!r}{nearest}", hint=hint)
