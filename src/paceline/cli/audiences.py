"""``paceline audience``: people taken in from tables, and gathered under a name."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from paceline.cli import output
from paceline.cli.campaign_export import writing_to
from paceline.cli.csv_rows import STANDARD, open_csv
from paceline.cli.options import AsJson, Yes
from paceline.cli.surroundings import database_of, existing, opened
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
from paceline.engine.audience_columns import AT, SOURCE, Columns, PersonRow, Reject
from paceline.engine.commands import audiences
from paceline.engine.commands.audiences import Taken
from paceline.engine.commands.reminders import sent_to
from paceline.engine.people import find_audience
from paceline.engine.ports import Audience, Contact, Tx

if TYPE_CHECKING:
    from paceline.app import App

FIRST = 10
"""Members that are shown of an audience."""

app = typer.Typer(
    help="Audiences: people to write to, gathered under a name.", no_args_is_help=True
)

AudienceName = Annotated[str, typer.Argument(metavar="AUDIENCE", help="The audience's name.")]


@app.command("import")
def import_(
    ctx: typer.Context,
    file: Table,
    name: Annotated[
        str | None, typer.Option("--name", help="The audience; the file's name unless given.")
    ] = None,
    mapped: Mapped = None,
    region: Region = None,
    opt_in: Annotated[
        str, typer.Option("--opt-in", metavar="TEXT", help="Where these people said yes.")
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Take erased people back who signed up anew.")
    ] = False,
    rejects: RejectsFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take in the people of a CSV file.

    Columns with the usual names (email, phone, mobile, linkedin, …) are recognised; all others are
    kept as variables for templates. Whoever is known already is not taken in twice: what the file
    says is filled in. Interrupted or not, the same file can always be imported again.

    \b
        paceline audience import people.csv --opt-in "form on the website"
        paceline audience import people.csv --map phone=Handy --region DE
    """
    with open_csv(file, str(file)) as table, opened(ctx) as house:
        title = _name_of(file, name)
        columns = Columns.of(
            table.header, mapping_of(mapped), region=region_of(region), opt_in=opt_in.strip()
        )
        with gathering_rejects(rejects, table) as not_taken:
            intake = _Trial(house, again) if dry_run else _Intake(house, title, again)
            rows = take_in(table, not_taken, columns.person, intake.write, size=audiences.CHUNK)
        found = intake.finish(title)
    conclude(
        table,
        rows,
        not_taken,
        told=_told(title, rows, rows - not_taken.count, intake.taken, found, dry_run=dry_run),
        shape=_imported(title, rows, intake.taken, found),
        as_json=as_json,
    )


def _name_of(file: Path, name: str | None) -> str:
    if name is None and file == STANDARD:
        reason = "is missing: standard input has no name that the audience could have"
        raise InputError(reason, key="--name")
    return audiences.known_name(file.stem if name is None else name)


class _Intake:
    """Rows on their way into an audience, a transaction for each chunk."""

    def __init__(self, house: App, name: str, again: bool) -> None:
        self.taken = Taken()
        self._house = house
        self._name = name
        self._again = again
        self._audience_id: int | None = None
        self._named = audiences.Named()

    def write(self, chunk: list[PersonRow]) -> Iterable[Reject]:
        at = self._house.clock.now()
        with self._house.store.write() as tx:
            tx.contacts.hold(alone=True)
            if self._audience_id is None:
                self._audience_id = tx.audiences.open(self._name, at).id
            taken, rejects = audiences.take_in(
                tx, self._audience_id, chunk, at, again=self._again, named=self._named
            )
        self.taken += taken
        return rejects

    def finish(self, name: str) -> Audience | None:
        if self.taken.new >= audiences.CHUNK:
            self._house.store.analyse()
        with self._house.store.read() as tx:
            return tx.audiences.find(name)


class _Trial:
    """The same without writing anything; who came in an earlier chunk is remembered here."""

    def __init__(self, house: App, again: bool) -> None:
        self.taken = Taken()
        self._house = house
        self._again = again
        self._seen: set[int] = set()

    def write(self, chunk: list[PersonRow]) -> Iterable[Reject]:
        with self._house.store.read() as tx:
            judged = audiences.judge(tx, chunk, self._house.clock.now(), again=self._again)
        merged = judged.taken
        for draft in judged.drafts:
            keys = {hash(e.address) for e in (*draft.contact.addresses, *draft.given)}
            if not keys & self._seen:
                self.taken += Taken(int(draft.is_new), int(draft.changed))
                merged -= 1
            self._seen |= keys
        self.taken += Taken(merged=merged)
        return judged.rejects

    def finish(self, name: str) -> Audience | None:
        return None


def _told(
    name: str, rows: int, good: int, taken: Taken, found: Audience | None, *, dry_run: bool
) -> Iterator[str]:
    people = output.plural(taken.new, "new person", "new people")
    told = f"{output.plural(good, 'row', 'rows')} of {rows}: {people}, {taken.changed} changed"
    if taken.merged:
        told += f", {output.plural(taken.merged, 'row', 'rows')} merged with an earlier one"
    if dry_run:
        yield f"would take {told}; nothing was written"
        return
    yield f"audience {name}: took {told}; {taken.joined} joined it"
    if found is not None:
        yield f"it has {output.plural(found.members, 'member', 'members')} now"


def _imported(name: str, rows: int, taken: Taken, found: Audience | None) -> dict[str, Any]:
    return {
        "audience": name,
        "rows": rows,
        "new": taken.new,
        "changed": taken.changed,
        "merged": taken.merged,
        "joined": taken.joined,
        "members": None if found is None else found.members,
        "revision": None if found is None else found.revision,
    }


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the audiences."""
    with existing(ctx) as house, house.store.read() as tx:
        found, database = tx.audiences.list(), database_of(house)
    if as_json:
        output.say_json([_shape(audience) for audience in found])
        return
    rows = [(a.name, a.members, a.revision, iso(a.changed_at)[:10]) for a in found]
    output.show_table(
        ("NAME", "MEMBERS", "REVISION", "CHANGED"),
        rows,
        right=("MEMBERS", "REVISION"),
        empty=f"no audiences yet in {database}; take one in with: paceline audience import FILE",
    )


@app.command()
def show(
    ctx: typer.Context,
    name: AudienceName,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print every member, in a form that can be imported.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file; - prints it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show an audience: who is in it and how they are reached."""
    with existing(ctx) as house, house.store.read() as tx:
        audience = find_audience(tx, name)
        kinds, fields, first = _looked_through(tx, audience)
        if as_csv or out is not None:
            with writing_to(out) as target:
                _write_csv(target, tx, audience, fields)
            return
    if as_json:
        output.say_json(_shape(audience) | {"reached": dict(kinds), "fields": fields})
        return
    output.say(f"{name}: {output.plural(audience.members, 'member', 'members')}")
    output.say(f"  reached by {', '.join(f'{kind} {n}' for kind, n in kinds.items()) or 'nothing'}")
    output.say(f"  fields: {', '.join(fields) or 'none'}")
    rows = [(reached_text(contact), fields_text(contact.fields)) for contact in first]
    output.show_table(("REACHED AT", "FIELDS"), rows, empty="  nobody is in it")
    if audience.members > len(first):
        output.say(f"and {audience.members - len(first)} more; --csv prints them all")


def _looked_through(tx: Tx, audience: Audience) -> tuple[Counter[str], list[str], list[Contact]]:
    """How many are reached by what, the names of all fields, and the first few members."""
    kinds: Counter[str] = Counter()
    fields: dict[str, None] = {}
    first: list[Contact] = []
    for _, contact in tx.audiences.members(audience.id):
        kinds.update(entry.kind for entry in contact.addresses)
        fields |= dict.fromkeys(contact.fields)
        if len(first) < FIRST:
            first.append(contact)
    return kinds, list(fields), first


def _write_csv(target: TextIO, tx: Tx, audience: Audience, fields: list[str]) -> None:
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow([*KINDS, SOURCE, AT, *fields])
    for _, contact in tx.audiences.members(audience.id):
        reached = {entry.kind: entry.address for entry in contact.addresses}
        opted_in = "" if contact.opt_in_at is None else iso(contact.opt_in_at)
        writer.writerow(
            [
                *(reached.get(kind, "") for kind in KINDS),
                contact.opt_in_source,
                opted_in,
                *(contact.fields.get(name, "") for name in fields),
            ]
        )


def reached_text(contact: Contact) -> str:
    return ", ".join(entry.address for entry in contact.addresses)


def fields_text(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())


@app.command()
def remove(ctx: typer.Context, name: AudienceName, yes: Yes = False) -> None:
    """Forget an audience.

    Its people stay known, and so does what they were sent.
    """
    output.confirm(f"Remove audience {name}?", yes=yes)
    with existing(ctx) as house, house.store.write() as tx:
        removed = audiences.remove(tx, name, house.clock.now())
        concerned = sent_to(tx, name)
    members = output.plural(removed.members, "member", "members")
    output.say(f"audience {name} removed; its {members} are still known")
    for one in concerned:
        output.note(f"reminder {one} goes to it: it will fail until it is given another one")


def _shape(audience: Audience) -> dict[str, Any]:
    return {
        "name": audience.name,
        "members": audience.members,
        "revision": audience.revision,
        "created_at": iso(audience.created_at),
        "changed_at": iso(audience.changed_at),
    }
