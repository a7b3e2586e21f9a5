"""``paceline account answering``: how whoever writes to an account is answered."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AccountName
from paceline.cli.surroundings import existing
from paceline.core.answering import Way
from paceline.core.durations import print_duration
from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import Instant, iso, local_text
from paceline.engine import held_ways
from paceline.engine.commands import accounts
from paceline.engine.commands.answering import answer_by
from paceline.engine.ports.held_ways import HeldWay

PEOPLE = "none"


def answering(
    ctx: typer.Context,
    name: AccountName,
    way: Annotated[
        str | None,
        typer.Argument(metavar="WAY", help="A table [answering.WAY], or none: people answer."),
    ] = None,
    go_on: Annotated[
        bool, typer.Option("--go-on", help="Ask again at once, where its way is held.")
    ] = False,
) -> None:
    """Say or show how whoever writes to an account is answered.

    \b
        paceline account answering shop            how is it now?
        paceline account answering shop support    by [answering.support]
        paceline account answering shop none       by people
        paceline account answering shop --go-on    there is credit again
    """
    if go_on and way is not None:
        raise InputError("--go-on is for the way that an account is answered in already")
    with existing(ctx) as house:
        ways, now = house.settings.answering, house.clock.now()
        if go_on:
            with house.store.write() as tx:
                account = accounts.find(tx, name)
                if held_ways.release(tx, held_ways.way_of(account), now) is None:
                    raise ConflictError(f"nothing is held that {name} is answered by")
        elif way is None:
            with house.store.read() as tx:
                account = accounts.find(tx, name)
        else:
            wanted = None if way == PEOPLE else way
            with house.store.write() as tx:
                account = answer_by(tx, name, wanted, ways, now)
        with house.store.read() as tx:
            held = held_ways.of_account(tx, account)
    chosen = str(account.answering.get("way", ""))
    if not chosen:
        output.say(f"{name}: people answer; see: paceline conversations list --waiting")
        return
    known = ways.get(chosen)
    told = "which is in no settings here" if known is None else f"({_told(known)})"
    output.say(f"{name}: answered by {chosen}{',' if known is None else ''} {told}")
    if held is not None:
        output.say(held_text(held, now))
        output.say(f"to go on: {cure(name)}")


def _told(way: Way) -> str:
    quiet, longest = print_duration(way.quiet_us), print_duration(way.max_wait_us)
    return f"{way.responder}, after {quiet} of quiet, {longest} at the latest"


def held_text(held: HeldWay, now: Instant) -> str:
    """That nobody is answered in a way, since when, why, and until when."""
    since = local_text(held.since_at, "UTC")
    again = output.soon_text(held.try_at, now, "UTC")
    return f"nobody is answered by {held.way} since {since}: {held.reason}; tried again {again}"


def held_shape(held: HeldWay | None) -> dict[str, Any] | None:
    if held is None:
        return None
    return {
        "way": held.way,
        "reason": held.reason,
        "since": iso(held.since_at),
        "tries": held.tries,
        "try_at": iso(held.try_at),
    }


def cure(name: str) -> str:
    """The command that lets the way of an account go on."""
    return f"paceline account answering {shlex.quote(name)} --go-on"
