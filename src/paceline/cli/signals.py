"""``paceline signals``: what a provider's answer leads to, as a table to read and change."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing, opened
from paceline.cli.values import parse_values
from paceline.core.errors import InputError
from paceline.core.signals import DEFAULT_SIGNALS, Rule, Signals
from paceline.core.tables import toml_key
from paceline.engine.commands import signals

app = typer.Typer(help="Signals: what a provider's answer leads to.", no_args_is_help=True)

SignalName = Annotated[
    str, typer.Argument(metavar="SIGNAL", help='Such as "* throttled" or "unipile limit_exceeded".')
]


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List every signal and what it leads to.

    Who waits, for how long, and how the pace comes back. Of those that fit an answer, the one
    holds that says most exactly what it means: a code before a kind, a provider before any, an
    action type before none.
    """
    with existing(ctx) as house, house.store.read() as tx:
        table = signals.table(tx)
    if as_json:
        output.say_json([_shape(name, rule, name in table.own) for name, rule in _all(table)])
        return
    rows = [
        (name, rule.scope, rule.lasts, rule.ramp, "yours" if name in table.own else "default")
        for name, rule in _all(table)
    ]
    headings = ("SIGNAL", "WHO WAITS", "FOR", "RAMP BACK", "FROM")
    output.show_table(headings, rows, firm=("SIGNAL", "WHO WAITS", "FOR", "FROM"), empty="none")


@app.command()
def show(ctx: typer.Context, signal: SignalName, as_json: AsJson = False) -> None:
    """Print one signal as it is set, and what it is by default."""
    with existing(ctx) as house, house.store.read() as tx:
        table = signals.table(tx)
    name, rule = signals.find(table, signal)
    if as_json:
        output.say_json(_shape(name, rule, name in table.own))
        return
    output.say(f"{toml_key(name)} = {rule}")
    default = DEFAULT_SIGNALS.rules.get(name)
    if default is not None and default != rule:
        output.say(f"# by default {default}")


@app.command("set")
def set_(
    ctx: typer.Context,
    signal: SignalName,
    values: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE", help="scope, for and ramp; some or all.")
    ],
) -> None:
    """Change a signal, or add one.

    It is in force before the next message of any account.

    \b
        paceline signals set "* throttled" for="2m doubling"
        paceline signals set "unipile limit_exceeded" scope=campaign for=6h
        paceline signals set "* 131048" for=2d ramp.slow_by=3 ramp.recover=2d

    scope: account, campaign or new contacts. for: 24h, 20s doubling, day end, until resumed or
    none. ramp: none, policy (the policy's own throttle), or how slow and until when. If the
    provider says how long to wait, that counts.
    """
    changes = _changes(values)
    with opened(ctx) as house, house.store.write() as tx:
        now = house.clock.now()
        name, rule = signals.set_rule(tx, signal, changes, house.providers.names(), now)
    output.say(f"{toml_key(name)} = {rule}")


@app.command()
def reset(
    ctx: typer.Context,
    signal: Annotated[
        str | None, typer.Argument(metavar="SIGNAL", help="One of the table.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every signal.")] = False,
) -> None:
    """Put a signal back to its default; one that has none is forgotten."""
    if (signal is None) is not everything:
        raise InputError("name one signal, or say --all")
    with existing(ctx) as house, house.store.write() as tx:
        changed = signals.reset(tx, signal, house.clock.now())
    for name in changed:
        default = DEFAULT_SIGNALS.rules.get(name)
        output.say(f"{toml_key(name)} = {default}" if default else f"{toml_key(name)} is forgotten")
    if not changed:
        output.say("nothing to put back: it is as by default")


def _changes(values: list[str]) -> dict[str, Any]:
    """What was typed; a bare number or a word needs no quotes."""
    changes = parse_values(values, "signals set")
    return {
        key: value if isinstance(value, dict | str) else str(value)
        for key, value in changes.items()
    }


def _all(table: Signals) -> list[tuple[str, Rule]]:
    return list(table.rules.items())


def _shape(name: str, rule: Rule, own: bool) -> dict[str, Any]:
    return {"signal": name, **rule.to_mapping(), "ramp": rule.ramp.to_value(), "own": own}
