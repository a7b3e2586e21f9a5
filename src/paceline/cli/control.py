"""``paceline verify``, ``stop-all`` and ``go-on``: judging everything, and stopping everything."""

from __future__ import annotations

import typer

from paceline.cli import output
from paceline.cli.options import AsJson, Reason
from paceline.cli.surroundings import existing
from paceline.engine.commands import control
from paceline.engine.verify import verify as judge


def verify(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Check the invariants over everything stored.

    Exit code 1 if one of them is broken.
    """
    with existing(ctx) as house, house.store.read() as tx:
        found = judge(tx, house.clock.now(), house.settings.opt_out.words)
    if as_json:
        violations = [{"invariant": v.invariant, "detail": v.detail} for v in found]
        output.say_json({"ok": not found, "violations": violations})
    elif not found:
        output.say("every invariant holds")
    else:
        rows = [(v.invariant, v.detail) for v in sorted(found, key=lambda v: v.invariant)]
        output.show_table(("INVARIANT", "VIOLATION"), rows, firm=("INVARIANT",), empty="")
    if found:
        raise typer.Exit(1)


def stop_all(ctx: typer.Context, reason: Reason = None) -> None:
    """Stop everything, before the next message."""
    with existing(ctx) as house, house.store.write() as tx:
        control.stop_all(tx, reason or "stopped by an operator", house.clock.now())
    output.say("everything is stopped; go on with: paceline go-on")


def go_on(ctx: typer.Context) -> None:
    """Go on after stop-all."""
    with existing(ctx) as house, house.store.write() as tx:
        control.go_on(tx, house.clock.now())
    output.say("sending goes on")
