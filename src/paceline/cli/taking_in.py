"""Long tables on their way into the database: a chunk at a time, with progress and a report.

What a row means, and what becomes of it, is said by whoever calls; here rows are gathered, those
that cannot be taken are told by line and reason, and the exit code says whether any was taken.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar

import typer

from paceline.cli import output
from paceline.cli.campaign_export import writing_to
from paceline.cli.csv_rows import MARKS, STANDARD, CsvRow, CsvTable
from paceline.core.address import known_region
from paceline.core.errors import InputError, StoreError
from paceline.engine.audience_columns import MEANT, Reject

SHOWN = 5
"""Rejected rows that are told on the screen; all of them go into the file, if one is named."""

Table = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        readable=False,  # what cannot be read is told in our words
        help="A CSV file whose first line names the columns; - is standard input.",
    ),
]
RejectsFile = Annotated[
    Path | None,
    typer.Option("--rejects", metavar="FILE", help="Write the rows that were not taken here."),
]
Mapped = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="WHAT=COLUMN", help="Which column is what; may be repeated."),
]
Region = Annotated[
    str | None,
    typer.Option(
        "--region", metavar="COUNTRY", help="Where phone numbers without +… are from, as in DE."
    ),
]

T = TypeVar("T")


def mapping_of(pairs: Sequence[str] | None) -> dict[str, str]:
    """Which column is what, as ``--map`` says it."""
    mapped: dict[str, str] = {}
    for pair in pairs or ():
        what, equals, column = (part.strip() for part in pair.partition("="))
        if not equals or not what or not column:
            raise InputError(
                f"'{pair}' does not say which column is what",
                key="--map",
                hint=f"Write --map email=E-Mail; it can be {', '.join(MEANT)} or any other name",
            )
        if what in mapped:
            raise InputError(f"{what} is said twice", key="--map")
        mapped[what] = column
    return mapped


def region_of(text: str | None) -> str | None:
    """The country of ``--region``."""
    try:
        return None if text is None else known_region(text)
    except InputError as error:
        raise InputError(error.reason, key="--region", hint=error.hint) from None


@dataclass(slots=True)
class Rejects:
    """Rows that were not taken: counted, the first few kept, all written where they are wanted."""

    path: Path | None
    header: Sequence[str]
    count: int = 0
    first: list[Reject] = field(default_factory=list)
    _writer: Any = None

    def add(self, line: int, reason: str, written: Sequence[str]) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(Reject(line, reason))
        if self._writer is not None:
            self._writer.writerow([line, reason, *written])

    def write_to(self, target: TextIO) -> None:
        self._writer = csv.writer(target, lineterminator="\n")
        self._writer.writerow([*MARKS, *self.header])

    def tell(self) -> None:
        if not self.count:
            return
        output.say(f"{output.plural(self.count, 'row was', 'rows were')} not taken:")
        for line, reason in self.first:
            output.say(f"  line {line}: {reason}")
        more = self.count - len(self.first)
        if self.path is not None:
            output.say(f"  all of them are in {self.path}; mend it, and import it as it is")
        elif more:
            output.say(f"  and {more} more; add --rejects FILE to have them all")

    def shape(self) -> dict[str, Any]:
        shown = [{"line": line, "reason": reason} for line, reason in self.first]
        return {"rejected": self.count, "rejects": shown}


@contextmanager
def gathering_rejects(path: Path | None, table: CsvTable) -> Iterator[Rejects]:
    rejects = Rejects(path, table.header)
    with ExitStack() as stack:
        if path is not None:
            _refuse_as_rejects(path, table)
            rejects.write_to(stack.enter_context(writing_to(path)))
        yield rejects


def _refuse_as_rejects(path: Path, table: CsvTable) -> None:
    if path == STANDARD:
        raise InputError("must be a file: the report goes to standard output", key="--rejects")
    if table.path is not None and path.exists() and path.samefile(table.path):
        raise InputError("is the file that is read", key="--rejects")


def take_in(
    table: CsvTable,
    rejects: Rejects,
    parse: Callable[[int, Mapping[str, str]], T],
    write: Callable[[list[T]], Iterable[Reject]],
    *,
    size: int,
) -> int:
    """Parse every row and write them ``size`` at a time; how many rows there were."""
    rows = written = 0
    chunk: list[T] = []
    bad: list[Reject] = []
    cells: dict[int, Sequence[str]] = {}

    def flush() -> None:
        for line, reason in sorted([*bad, *write(chunk)] if chunk else bad):
            rejects.add(line, reason, cells[line])
        chunk.clear()
        bad.clear()
        cells.clear()

    # A table that breaks off in the middle is refused as a whole, while nothing of it is in.
    table.check()
    with output.reading("rows", total=table.size) as read_to, _going_on(lambda: written):
        for row in table.rows():
            rows += 1
            cells[row.line] = row.written
            try:
                chunk.append(_parsed(row, parse))
            except InputError as error:
                bad.append(Reject(row.line, str(error)))
            if len(cells) == size:
                flush()
                written = rows
                read_to(table.position)
        flush()
    return rows


@contextmanager
def _going_on(written: Callable[[], int]) -> Iterator[None]:
    """Says how far it came if it is broken off, and that nothing is lost by that."""
    try:
        yield
    except (KeyboardInterrupt, StoreError):
        rows = output.plural(written(), "row was", "rows were")
        output.note(f"broken off: {rows} seen to, and stay so; import the same file again to go on")
        raise


def _parsed(row: CsvRow, parse: Callable[[int, Mapping[str, str]], T]) -> T:
    if row.problem:
        raise InputError(row.problem)
    return parse(row.line, row.cells)


def conclude(
    table: CsvTable,
    rows: int,
    rejects: Rejects,
    *,
    told: Iterable[str],
    shape: Mapping[str, Any],
    as_json: bool,
) -> None:
    """The last words of every import, and its exit code.

    It could not be done where there was nothing, or nothing of it was taken.
    """
    if as_json:
        output.say_json({**shape, **rejects.shape()})
    elif not rows:
        output.say(f"{table.shown} has no rows below its first line: nothing was taken")
    else:
        for line in told:
            output.say(line)
        rejects.tell()
    if rows == rejects.count:
        raise typer.Exit(1)
