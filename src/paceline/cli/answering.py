"""``paceline account answering``: how whoever writes to an account is answered."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import output
from paceline.cli.options import AccountName
from paceline.cli.surroundings import existing
from paceline.core.answering import Way
from paceline.core.durations import print_duration
from paceline.engine.commands import accounts
from paceline.engine.commands.answering import answer_by

PEOPLE = "none"


def answering(
    ctx: typer.Context,
    name: AccountName,
    way: Annotated[
        str | None,
        typer.Argument(metavar="WAY", help="A table [answering.WAY], or none: people answer."),
    ] = None,
) -> None:
    """Say or show how whoever writes to an account is answered.

    \b
        paceline account answering shop            how is it now?
        paceline account answering shop support    by [answering.support]
        paceline account answering shop none       by people
    """
    with existing(ctx) as house:
        ways = house.settings.answering
        if way is None:
            with house.store.read() as tx:
                account = accounts.find(tx, name)
        else:
            wanted = None if way == PEOPLE else way
            with house.store.write() as tx:
                account = answer_by(tx, name, wanted, ways, house.clock.now())
    chosen = str(account.answering.get("way", ""))
    if not chosen:
        output.say(f"{name}: people answer; see: paceline conversations list --waiting")
        return
    known = ways.get(chosen)
    if known is None:
        output.say(f"{name}: answered by {chosen}, which is in no settings here")
        return
    output.say(f"{name}: answered by {chosen} ({_told(known)})")


def _told(way: Way) -> str:
    quiet, longest = print_duration(way.quiet_us), print_duration(way.max_wait_us)
    return f"{way.responder}, after {quiet} of quiet, {longest} at the latest"
