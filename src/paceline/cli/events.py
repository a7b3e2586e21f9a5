"""``paceline events``: what has happened, the latest last, and what can happen at all."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing
from paceline.core.events import EVENTS, Wanted
from paceline.core.instants import iso
from paceline.engine.ports import Event

MOST = 10_000


def events(
    ctx: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="Only these: run.finished, run.*; all else."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST, help="How many of the latest.")
    ] = 20,
    kinds: Annotated[bool, typer.Option("--kinds", help="List what can happen instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what has happened, the latest last."""
    wanted = Wanted.parse(patterns) if patterns else Wanted()
    if kinds:
        _list_kinds(wanted, as_json=as_json)
        return
    with existing(ctx) as house, house.store.read() as tx:
        chosen = [kind.value for kind in wanted.kinds] if patterns else []
        found = list(reversed(tx.events.latest(kinds=chosen, limit=limit)))
    if as_json:
        output.say_json([shape(event) for event in found])
        return
    rows = [(e.id, output.wall_text(e.at, "UTC"), e.kind, e.text) for e in found]
    output.show_table(
        ["ID", "AT (UTC)", "EVENT", "WHAT"],
        rows,
        right=("ID",),
        firm=("AT (UTC)", "EVENT"),
        empty="nothing has happened yet",
    )


def _list_kinds(wanted: Wanted, *, as_json: bool) -> None:
    if as_json:
        output.say_json(
            [
                {"kind": kind, "means": EVENTS[kind].means, "fields": list(EVENTS[kind].fields)}
                for kind in wanted.kinds
            ]
        )
        return
    rows = [(kind, EVENTS[kind].means, ", ".join(EVENTS[kind].fields)) for kind in wanted.kinds]
    output.show_table(["EVENT", "HAPPENS WHEN", "DATA"], rows, firm=("EVENT",), empty="")


def shape(event: Event) -> dict[str, Any]:
    """As a webhook is told of it."""
    return {
        "id": event.id,
        "kind": event.kind,
        "at": iso(event.at),
        "text": event.text,
        "data": dict(event.data),
    }
