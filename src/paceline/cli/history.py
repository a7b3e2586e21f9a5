"""``paceline history``: what was sent before Paceline came, told to the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import output
from paceline.cli.csv_rows import open_csv
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing
from paceline.cli.taking_in import RejectsFile, Table, conclude, gathering_rejects, take_in
from paceline.core.errors import InputError
from paceline.engine.audience_columns import Reject
from paceline.engine.commands import history
from paceline.engine.commands.history import Past, PastRow

if TYPE_CHECKING:
    from paceline.app import App

app = typer.Typer(help="What others have sent from these accounts.", no_args_is_help=True)


@app.command("import")
def import_(
    ctx: typer.Context,
    file: Table,
    account: Annotated[
        str, typer.Option("--account", metavar="NAME", help="Who sent it, if no column says so.")
    ] = "",
    action: Annotated[
        str, typer.Option("--action", help="What it was, if no column says so.")
    ] = "message",
    rejects: RejectsFile = None,
    as_json: AsJson = False,
) -> None:
    """Count what was sent before Paceline came.

    A CSV file with a column "at" (an instant with its zone), and if you like account, action and
    target. Each message counts for daily and weekly caps, for spacing, and for how often its
    recipient may be written to. The same file imported twice counts once.

    \b
        paceline history import sent.csv --account sales --action email
    """
    with open_csv(file, str(file)) as table, existing(ctx) as house:
        if "at" not in [name.lower() for name in table.header]:
            seen = f"it has: {', '.join(table.header)}; it can have: {', '.join(history.COLUMNS)}"
            raise InputError(f"no column 'at' ({seen})", where=table.shown)
        intake = _Intake(house, account, action)
        with gathering_rejects(rejects, table) as not_taken:
            rows = take_in(table, not_taken, intake.parse, intake.write, size=history.CHUNK)
    known = rows - not_taken.count - intake.new
    again = f", {known} were known already" if known else ""
    conclude(
        table,
        rows,
        not_taken,
        told=[f"{output.plural(intake.new, 'message', 'messages')} counted{again}"],
        shape={"rows": rows, "new": intake.new},
        as_json=as_json,
    )


class _Intake:
    """Rows on their way into the ledger."""

    def __init__(self, house: App, account: str, action: str) -> None:
        self.new = 0
        self._house = house
        self._account = account
        self._action = action
        self._past = Past()
        self._now = house.clock.now()

    def parse(self, line: int, cells: Mapping[str, str]) -> PastRow:
        return history.past_row(
            line, cells, account=self._account, action=self._action, now=self._now
        )

    def write(self, chunk: list[PastRow]) -> Iterable[Reject]:
        house = self._house
        with house.store.write() as tx:
            new, rejects = history.take_in(
                tx, chunk, self._past, house.providers, house.clock.now()
            )
        self.new += new
        return rejects
