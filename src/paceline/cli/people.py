"""``paceline contact`` and ``paceline suppress``: one person, and who must not be written to."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.audiences import reached_text
from paceline.cli.campaign_export import is_file, writing_to
from paceline.cli.csv_rows import open_csv
from paceline.cli.options import AsJson, Reason, Yes
from paceline.cli.surroundings import existing, opened
from paceline.cli.taking_in import (
    Mapped,
    Region,
    RejectsFile,
    Table,
    conclude,
    gathering_rejects,
    mapping_of,
    region_of,
    take_in,
)
from paceline.core.address import KINDS
from paceline.core.errors import InputError
from paceline.core.instants import iso
from paceline.engine.audience_columns import ADDRESS, Columns, Reject
from paceline.engine.commands import erasing, suppressions
from paceline.engine.commands.erasing import Known
from paceline.engine.commands.suppressions import Unwanted
from paceline.engine.ports import Suppression

if TYPE_CHECKING:
    from paceline.app import App

CHUNK = 2_000
LISTED = 100
"""Suppressions that are shown; there may be very many."""
UNSAID = "asked not to be written to"

contact = typer.Typer(help="One person: what is known, and forgetting it.", no_args_is_help=True)
suppress = typer.Typer(help="Addresses that are never written to.", no_args_is_help=True)

OneAddress = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="An e-mail address, a phone number, …")
]
OneKind = Annotated[
    str | None, typer.Option("--kind", help=f"What it is: {', '.join(KINDS)}; guessed otherwise.")
]


@contact.command()
def show(ctx: typer.Context, address: OneAddress, as_json: AsJson = False) -> None:
    """Show what is known of a person, by any of their addresses."""
    with existing(ctx) as house, house.store.read() as tx:
        known = erasing.look_up(tx, address)
    if as_json:
        output.say_json(_shape(known))
        return
    output.say(f"{known.address}{' (erased)' if known.erased else ''}")
    found = known.contact
    if found is not None and not known.erased:
        output.say(f"  reached at {reached_text(found)}")
        for name, value in found.fields.items():
            output.say(f"  {name}: {value}")
        since = f" on {iso(found.opt_in_at)}" if found.opt_in_at is not None else ""
        output.say(f"  opt-in: {found.opt_in_source or 'not known'}{since}")
        output.say(f"  audiences: {', '.join(known.audiences) or 'none'}")
    for entry in known.suppressions:
        output.say(f"  never written to since {iso(entry.at)}: {entry.reason}")


def _shape(known: Known) -> dict[str, Any]:
    found = None if known.erased else known.contact
    opted_in_at = found.opt_in_at if found is not None else None
    return {
        "address": known.address,
        "erased": known.erased,
        "addresses": [entry._asdict() for entry in found.addresses] if found else [],
        "fields": dict(found.fields) if found else {},
        "opt_in_source": found.opt_in_source if found else "",
        "opt_in_at": None if opted_in_at is None else iso(opted_in_at),
        "audiences": known.audiences,
        "suppressions": [_suppression(entry) for entry in known.suppressions],
    }


@contact.command()
def erase(ctx: typer.Context, address: OneAddress, yes: Yes = False) -> None:
    """Forget who somebody is, for good.

    Their addresses become hashes everywhere, what is planned for them is cancelled, and nothing is
    ever sent to them again. Limits and opt-outs still hold.
    """
    output.confirm(f"Erase whoever has {address}, for good?", yes=yes)
    with existing(ctx) as house:
        with house.store.write() as tx:
            done = erasing.erase(tx, address, house.clock.now())
        wiped = house.store.wipe()
    if done.before:
        output.say("that person was erased before")
        return
    deliveries = output.plural(done.deliveries, "delivery", "deliveries")
    audiences = output.plural(done.audiences, "audience", "audiences")
    output.say(
        f"erased: {deliveries} made anonymous, {done.cancelled} of them cancelled; left {audiences}"
    )
    if not wiped:
        output.say("somebody was reading: the database's log lets go of them when it is next reset")


# ---------------------------------------------------------------------- suppressions


@suppress.command()
def add(
    ctx: typer.Context, address: OneAddress, reason: Reason = None, kind: OneKind = None
) -> None:
    """Never write to an address again.

    From no account, in no campaign, from the next message on.
    """
    spelled = _spelled(address, kind)
    with opened(ctx) as house, house.store.write() as tx:
        is_new = suppressions.add(tx, spelled, reason or UNSAID, house.clock.now())
    output.say(f"{spelled} is {'' if is_new else 'already '}suppressed")


def _spelled(address: str, kind: str | None) -> str:
    try:
        return suppressions.spelled(address, kind)
    except InputError as error:
        if kind is not None or not address.strip():
            raise
        hint = error.hint or (
            "If a provider calls somebody so, add --kind other; --kind linkedin is for their name "
            "at LinkedIn"
        )
        raise InputError(error.reason, hint=hint) from None


@suppress.command()
def remove(ctx: typer.Context, address: OneAddress, kind: OneKind = None) -> None:
    """Let an address be written to again.

    What was skipped stays skipped.
    """
    spelled = suppressions.spelled_as_it_is(address, kind)
    with existing(ctx) as house, house.store.write() as tx:
        was = suppressions.remove(tx, spelled)
    output.say(f"{spelled} {'may be written to again' if was else 'was not suppressed'}")


@suppress.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the addresses that are never written to."""
    with existing(ctx) as house, house.store.read() as tx:
        count = tx.suppressions.count()
        if as_json:
            output.say_json([_suppression(entry) for entry in tx.suppressions.walk()])
            return
        found = list(islice(tx.suppressions.walk(), LISTED))
    rows = [(entry.address, entry.reason, entry.source, iso(entry.at)) for entry in found]
    output.show_table(("ADDRESS", "REASON", "SOURCE", "SINCE"), rows, empty="nobody is suppressed")
    if count > len(found):
        output.say(f"and {count - len(found)} more; paceline suppress export prints them all")


@suppress.command("import")
def import_(
    ctx: typer.Context,
    file: Table,
    reason: Reason = None,
    mapped: Mapped = None,
    region: Region = None,
    rejects: RejectsFile = None,
    as_json: AsJson = False,
) -> None:
    """Take in a CSV file of addresses that must not be written to.

    Columns with the usual names (address, email, phone, linkedin, …) are recognised; a column
    reason is kept, and a column kind says what is under address, as suppress export writes it.
    Everything else is left alone.

    \b
        paceline suppress import optouts.csv --reason "unsubscribed"
        paceline suppress import optouts.csv --map phone=Handy --region DE
    """
    with open_csv(file, str(file)) as table, opened(ctx) as house:
        columns = Columns.of(table.header, mapping_of(mapped), region=region_of(region))
        intake = _Intake(house, columns, reason or UNSAID)
        with gathering_rejects(rejects, table) as not_taken:
            rows = take_in(table, not_taken, intake.parse, intake.write, size=CHUNK)
    known = intake.named - intake.new
    again = f", {known} had been already" if known else ""
    conclude(
        table,
        rows,
        not_taken,
        told=[f"{output.plural(intake.new, 'address', 'addresses')} newly suppressed{again}"],
        shape={"rows": rows, "new": intake.new},
        as_json=as_json,
    )


class _Intake:
    """Rows on their way into the suppressions; a row may name several addresses."""

    def __init__(self, house: App, columns: Columns, reason: str) -> None:
        self.new = 0
        self.named = 0
        self._house = house
        self._columns = columns
        self._reason = reason

    def parse(self, line: int, cells: Mapping[str, str]) -> list[Unwanted]:
        meaning, region = self._columns.meaning, self._columns.region
        said = {meaning[heading].lower(): cell.strip() for heading, cell in cells.items()}
        # Other lists have columns of that name that say something else.
        kind = said["kind"] if said.get("kind") in KINDS else None
        reason = said.get("reason", "")
        named = [
            suppressions.spelled(
                cell, kind if meaning[heading] == ADDRESS else meaning[heading], region
            )
            for heading, cell in cells.items()
            if meaning[heading] in (*KINDS, ADDRESS) and cell.strip()
        ]
        if not named:
            raise InputError("has no address")
        return [Unwanted(address, reason or self._reason) for address in named]

    def write(self, chunk: list[list[Unwanted]]) -> Iterable[Reject]:
        rows = [entry for several in chunk for entry in several]
        with self._house.store.write() as tx:
            self.new += suppressions.take_in(tx, rows, self._house.clock.now())
        self.named += len(rows)
        return ()


@suppress.command()
def export(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Write to this file; - prints it.")
    ] = None,
) -> None:
    """Print every suppression as CSV, which can be imported."""
    with existing(ctx) as house, house.store.read() as tx, writing_to(file) as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow([*Suppression._fields, "kind"])
        count = 0
        for entry in tx.suppressions.walk():
            kind = suppressions.kind_to_say(entry.address)
            writer.writerow([*entry[:3], iso(entry.at), kind])
            count += 1
    if is_file(file):
        output.note(f"{output.plural(count, 'address', 'addresses')} written to {file}")


def _suppression(entry: Suppression) -> dict[str, str]:
    return entry._asdict() | {"at": iso(entry.at)}
