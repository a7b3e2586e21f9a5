"""Tables as people export them: read row by row from the file, however long it is.

UTF-8 with or without a mark at its beginning; commas, semicolons or tabs between the columns; and
every row with the line on which it begins. What the columns mean is decided by whoever asks.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from paceline.cli.output import plural
from paceline.core.errors import InputError

LONGEST_HEADER = 1 << 20
"""Characters the first line may have: what has no line break at all is no table."""


class CsvRow(NamedTuple):
    """One row; ``problem`` says what is wrong where it does not fit under the header."""

    line: int
    cells: dict[str, str]
    problem: str = ""


class CsvTable:
    """An open table: its header is known, its rows come one by one."""

    def __init__(self, file: BinaryIO, path: Path, shown: str) -> None:
        self.shown = shown
        """What complaints call the file."""
        self._file = file
        self._path = path
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        self.size = path.stat().st_size
        first = self._first_line()
        # Spreadsheets write a semicolon where the comma is used for decimals.
        delimiter = max(",;\t", key=first.count)
        self._reader = csv.reader(chain([first], self._text), delimiter=delimiter, strict=True)
        cells = self._next_row() or []
        self.header = [cell.strip() for cell in cells]

    @property
    def position(self) -> int:
        """How many bytes have been read so far."""
        return self._file.tell()

    def check_header(self) -> None:
        """Every column has a name of its own."""
        for name in self.header:
            if not name:
                raise InputError("a column of the first line has no name", where=self.shown)
            if self.header.count(name) > 1:
                reason = f"the first line names the column '{name}' twice"
                raise InputError(reason, where=self.shown)

    def rows(self) -> Iterator[CsvRow]:
        """Every row that has anything in it."""
        ended = self._reader.line_num
        while (row := self._next_row()) is not None:
            begun, ended = ended + 1, self._reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(self.header):
                columns = plural(len(row), "column", "columns")
                yield CsvRow(begun, {}, f"has {columns}, the header has {len(self.header)}")
                continue
            yield CsvRow(begun, dict(zip(self.header, row, strict=True)))

    def _first_line(self) -> str:
        try:
            first = self._text.readline(LONGEST_HEADER)
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        if len(first) == LONGEST_HEADER:
            raise InputError("the first line does not end; this is no table", where=self.shown)
        return first

    def _next_row(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            reason = f"line {self._reader.line_num}: {error}"
            raise InputError(reason, where=self.shown) from None
        except UnicodeDecodeError:
            raise self._not_utf8() from None

    def _not_utf8(self) -> InputError:
        """Text is decoded a block at a time; the line is found by going through them once more."""
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    reason = f"is not a text in UTF-8 (line {number})"
                    return InputError(reason, where=self.shown)
        return InputError("is not a text in UTF-8", where=self.shown)


@contextmanager
def open_csv(path: Path, shown: str) -> Iterator[CsvTable]:
    """A table; complaints call the file what the person called it."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"no such file '{shown}'") from None
    except OSError as error:
        raise InputError(f"cannot read '{shown}': {error.strerror}") from None
    with file:
        yield CsvTable(file, path, shown)
