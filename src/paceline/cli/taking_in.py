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
from paceline.cli.csv_rows import CsvRow, CsvTable
from paceline.core.errors import InputError
from paceline.engine.audience_columns import Reject

SHOWN = 5
"""Rejected rows that are told on the screen; all of them go into the file, if one is named."""

Table = Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file; its first line names.")]
RejectsFile = Annotated[
    Path | None,
    typer.Option("--rejects", metavar="FILE", help="Write the rows that were not taken here."),
]

T = TypeVar("T")


@dataclass(slots=True)
class Rejects:
    """Rows that were not taken: counted, the first few kept, all written where they are wanted."""

    path: Path | None
    header: Sequence[str]
    count: int = 0
    first: list[Reject] = field(default_factory=list)
    _writer: Any = None

    def add(self, line: int, reason: str, cells: Mapping[str, str]) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(Reject(line, reason))
        if self._writer is not None:
            self._writer.writerow([line, reason, *(cells.get(name, "") for name in self.header)])

    def write_to(self, target: TextIO) -> None:
        self._writer = csv.writer(target, lineterminator="\n")
        self._writer.writerow(["line", "reason", *self.header])

    def tell(self) -> None:
        if not self.count:
            return
        output.say(f"{output.plural(self.count, 'row was', 'rows were')} not taken:")
        for line, reason in self.first:
            output.say(f"  line {line}: {reason}")
        more = self.count - len(self.first)
        if self.path is not None:
            output.say(f"  all of them are in {self.path}")
        elif more:
            output.say(f"  and {more} more; add --rejects FILE to have them all")

    def shape(self) -> dict[str, Any]:
        shown = [{"line": line, "reason": reason} for line, reason in self.first]
        return {"rejected": self.count, "rejects": shown}


@contextmanager
def gathering_rejects(path: Path | None, header: Sequence[str]) -> Iterator[Rejects]:
    rejects = Rejects(path, header)
    with ExitStack() as stack:
        if path is not None:
            rejects.write_to(stack.enter_context(writing_to(path)))
        yield rejects


def take_in(
    table: CsvTable,
    rejects: Rejects,
    parse: Callable[[int, Mapping[str, str]], T],
    write: Callable[[list[T]], Iterable[Reject]],
    *,
    size: int,
) -> int:
    """Parse every row and write them ``size`` at a time; how many rows there were."""
    rows = 0
    chunk: list[T] = []
    bad: list[Reject] = []
    cells: dict[int, Mapping[str, str]] = {}

    def flush() -> None:
        for line, reason in sorted([*bad, *write(chunk)] if chunk else bad):
            rejects.add(line, reason, cells[line])
        chunk.clear()
        bad.clear()
        cells.clear()

    with output.reading("rows", total=table.size) as read_to:
        for row in table.rows():
            rows += 1
            cells[row.line] = row.cells
            try:
                chunk.append(_parsed(row, parse))
            except InputError as error:
                bad.append(Reject(row.line, str(error)))
            if len(cells) == size:
                flush()
                read_to(table.position)
        flush()
    return rows


def _parsed(row: CsvRow, parse: Callable[[int, Mapping[str, str]], T]) -> T:
    if row.problem:
        raise InputError(row.problem)
    return parse(row.line, row.cells)


def end(rows: int, rejects: Rejects) -> None:
    """The exit code: it could not be done where there was something and none of it was taken."""
    if rows == rejects.count:
        raise typer.Exit(1)
