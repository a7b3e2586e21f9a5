"""``paceline unknown``: messages of which nobody knows whether they went out."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import output, shapes
from paceline.cli.options import AsJson, Yes
from paceline.cli.surroundings import existing
from paceline.core.errors import InputError
from paceline.core.instants import SECOND, iso
from paceline.engine import queries
from paceline.engine.commands import control
from paceline.engine.commands.control import Resolved

app = typer.Typer(help="Messages that may or may not have gone out.", no_args_is_help=True)


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the deliveries whose fate is unknown.

    Each with the instant at which its provider was called: that is what to look for in an outbox.
    """
    with existing(ctx) as house, house.store.read() as tx:
        found = list(queries.named(tx, queries.unknown_deliveries(tx)))
        called = [queries.called_at(tx, delivery) for delivery, _, _ in found]
    if as_json:
        shown = zip(found, called, strict=True)
        told = [shapes.delivery(*one) | {"called_at": shapes.instant(at)} for one, at in shown]
        output.say_json(told)
        return
    rows = [
        (
            delivery.id,
            account,
            campaign,
            delivery.target,
            "" if at is None else iso(at // SECOND * SECOND).removesuffix("Z"),
            delivery.attempts,
            "a person" if delivery.due_at is None else iso(delivery.due_at)[:16],
            delivery.reason,
        )
        for (delivery, account, campaign), at in zip(found, called, strict=True)
    ]
    output.show_table(
        (
            "ID",
            "ACCOUNT",
            "CAMPAIGN",
            "TARGET",
            "CALLED (UTC)",
            "TRIES",
            "NEXT LOOK (UTC)",
            "REASON",
        ),
        rows,
        right=("ID", "TRIES"),
        empty="nothing is in doubt",
    )


@app.command()
def resolve(
    ctx: typer.Context,
    number: Annotated[str, typer.Argument(metavar="ID", help="The delivery's number.")],
    sent: Annotated[bool, typer.Option("--sent", help="It did go out.")] = False,
    resend: Annotated[bool, typer.Option("--resend", help="It did not; send it again.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Give it up.")] = False,
    yes: Yes = False,
) -> None:
    """Say what became of a message in doubt; limits and counts follow.

    \b
        paceline unknown resolve 4711 --sent
    """
    delivery_id = queries.delivery_number(number)
    if delivery_id is None:
        raise InputError(f"'{number}' is not a delivery's number")
    said: list[Resolved] = []
    said += ["sent"] if sent else []
    said += ["resend"] if resend else []
    said += ["failed"] if failed else []
    if len(said) != 1:
        raise InputError("say one of --sent, --resend and --failed")
    if resend:
        output.confirm("If it did go out, its recipient gets it twice. Send it again?", yes=yes)
    with existing(ctx) as house, house.store.write() as tx:
        settled = control.resolve_unknown(tx, delivery_id, said[0], house.clock.now())
    output.say(f"delivery {delivery_id} is {settled.state} now")
