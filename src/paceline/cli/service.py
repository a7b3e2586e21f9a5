"""``paceline up``, its workers, and ``paceline demo``: the service, and a look at what it does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.options import AsJson
from paceline.cli.surroundings import settings_of
from paceline.config import override
from paceline.core.errors import InputError


def up(
    ctx: typer.Context,
    host: Annotated[str | None, typer.Option("--host", help="Where to listen.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="0 picks a free one.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What this process is called in the fleet.")
    ] = None,
) -> None:
    """Run the service: send whatever is due.

    It also serves /healthz, /readyz and /metrics. It ends on SIGTERM or Ctrl-C, when the messages
    under way have settled; a second Ctrl-C ends it at once. Any number of them may run on one
    database.
    """
    settings = override(settings_of(ctx), host=host, port=port, name=name)
    from paceline import logs
    from paceline.service import run_service

    logs.configure(settings.log_level, settings.chosen_log_format)
    raise typer.Exit(run_service(settings))


def worker(
    accounts: Annotated[
        str, typer.Option("--accounts", metavar="ID,ID", help="Whose lanes it runs.")
    ],
) -> None:
    """Run the lanes of some accounts.

    For a service that is told to isolate them, which starts it, hands down its settings and speaks
    with it.
    """
    from paceline.worker import run_worker

    if not all(number.isdecimal() for number in accounts.split(",")):
        raise InputError(f"{accounts!r} are no numbers of accounts", key="--accounts")
    if sys.stdin.isatty():
        raise InputError("a worker is started by a service; see: paceline up")
    run_worker(map(int, accounts.split(",")))


def demo(
    targets: Annotated[int, typer.Option("--targets", min=1, help="How many.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="What chance follows from.")] = 1,
    as_json: AsJson = False,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", file_okay=False, help="Leave the database here."),
    ] = None,
) -> None:
    """Watch three imaginary accounts send a campaign.

    With failures, a throttle and a crash, under a clock that jumps: it takes less than a minute.
    """
    from paceline import logs
    from paceline.demo import main

    # The demo breaks things on purpose; their warnings would only tear its progress bars.
    logs.configure("critical", "console")
    raise typer.Exit(main(targets, as_json, seed, keep))
