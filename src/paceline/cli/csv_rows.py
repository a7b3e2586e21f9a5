"""Tables as people export them: read row by row from the file, however long it is.

UTF-8 with or without a mark at its beginning; commas, semicolons, tabs or bars between the columns,
which a first line "sep=;" may name; and every row with the line on which it begins. What the
columns mean is decided by whoever asks.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from paceline.cli.output import plural
from paceline.core.errors import InputError

LONGEST_HEADER = 1 << 20
"""Characters the first line may have: what has no line break at all is no table."""

STANDARD = Path("-")
"""In place of a file: standard input, or standard output."""

MARKS = ("rejected_line", "rejected_because")
"""What stands before the rows of a file of rejects. It can be mended and read again as it is."""

_QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*"')
_NAMED = re.compile(r'"?sep=([,;\t|])"?\s*', re.IGNORECASE)
"""A first line by which spreadsheets are told what stands between the columns."""
_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BREAK = re.compile(r"\r\n|\r|\n")


class CsvRow(NamedTuple):
    """One row; ``problem`` says what is wrong where it does not fit under the header."""

    line: int
    cells: dict[str, str]
    problem: str = ""
    written: Sequence[str] = ()
    """Its cells as they stand, however many there are."""


class CsvTable:
    """An open table: its header is known, its rows come one by one, and once more if need be."""

    def __init__(self, file: IO[bytes], shown: str, path: Path | None = None) -> None:
        self.shown = shown
        """What complaints call the file."""
        self.path = path
        """Where it lies; None for what came through a pipe."""
        self._file = file
        self.size = file.seek(0, io.SEEK_END)
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        self._delimiter = ","
        header = self._begin()
        self._skipped = len(MARKS) if tuple(header[: len(MARKS)]) == MARKS else 0
        """Columns in front that are none of the table's own."""
        self.header = header[self._skipped :]
        self._check_header()

    @property
    def position(self) -> int:
        """How many bytes have been read so far."""
        return self._file.tell()

    def check(self) -> None:
        """Go through all of it: what is no table should be told before any of it is taken."""
        self._begin()
        ended = self._reader.line_num
        while self._next_row(ended + 1) is not None:
            ended = self._reader.line_num

    def rows(self) -> Iterator[CsvRow]:
        """Every row that has anything in it, from the first."""
        self._begin()
        width = len(self.header)
        ended = self._reader.line_num
        while (row := self._next_row(ended + 1)) is not None:
            begun, ended = ended + 1, self._reader.line_num
            row = self._own(row)
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != width:
                has = plural(len(row), "column", "columns")
                yield CsvRow(begun, {}, f"has {has}, the header has {width}", row)
                continue
            yield CsvRow(begun, dict(zip(self.header, row, strict=True)), "", row)

    def _begin(self) -> list[str]:
        """Read from the first line on, which names the columns."""
        self._text.seek(0)
        first = self._first_line()
        named = _NAMED.fullmatch(first)
        # Spreadsheets write a semicolon where the comma is used for decimals.
        self._delimiter = named.group(1) if named else max(",;\t|", key=first.count)
        # It stays in the count of lines.
        lines = chain(["\n" if named else first], self._text)
        self._reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        if named:
            self._next_row(1)
        header = [cell.strip() for cell in self._next_row(2 if named else 1) or []]
        while header and not header[-1]:
            header.pop()  # whole columns of nothing, to the right of the table
        return header

    def _own(self, row: list[str]) -> list[str]:
        """The row's own cells, without what a spreadsheet leaves to the right of the table."""
        own, width = row[self._skipped :], len(self.header)
        while len(own) > width and not own[-1].strip():
            own.pop()
        return own

    def _check_header(self) -> None:
        """Every column has a name of its own."""
        if not self.size:
            raise InputError(
                "the file is empty", where=self.shown, hint="Its first line names the columns"
            )
        if not self.header:
            raise InputError("the first line is empty; it names the columns", where=self.shown)
        for name in self.header:
            if not name:
                raise InputError("a column of the first line has no name", where=self.shown)
            if (found := _STEERING.search(name)) is not None:
                place, letter = self.header.index(name) + 1, ord(found.group())
                reason = f"the name of column {place} has a control character (U+{letter:04X})"
                raise InputError(
                    reason, where=self.shown, hint="Is it a table? Save it as 'CSV UTF-8'"
                )
            if self.header.count(name) > 1:
                reason = f"the first line names the column '{name}' twice"
                raise InputError(reason, where=self.shown)

    def _first_line(self) -> str:
        try:
            first = self._text.readline(LONGEST_HEADER)
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        if len(first) == LONGEST_HEADER:
            raise InputError("the first line does not end; this is no table", where=self.shown)
        return first

    def _next_row(self, line: int) -> list[str] | None:
        """The next row, which begins on that line."""
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise self._broken(line, error) from None
        except UnicodeDecodeError:
            raise self._not_utf8() from None

    def _broken(self, begun: int, error: csv.Error) -> InputError:
        """What is wrong with a row that cannot be read, and on which line that begins."""
        self._text.seek(0)
        text = "".join(islice(self._text, begun - 1, self._reader.line_num))
        found = _misquoted(text, self._delimiter)
        if found is None:
            limit = csv.field_size_limit()
            too_long = f"a cell has more than {limit} characters" if len(text) > limit else error
            return InputError(f"line {begun}: {too_long}", where=self.shown)
        at, problem = found
        line = begun + len(_BREAK.findall(text, 0, at))
        return InputError(f"line {line}: {problem}", where=self.shown)

    def _not_utf8(self) -> InputError:
        """Text is decoded a block at a time; the line is found by going through them once more."""
        self._file.seek(0)
        line = next((n for n, row in enumerate(self._file, start=1) if not _is_utf8(row)), 1)
        return InputError(
            f"is not a text in UTF-8 (line {line})",
            where=self.shown,
            hint="Spreadsheets can save it so, as 'CSV UTF-8'",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _misquoted(text: str, delimiter: str) -> tuple[int, str] | None:
    """Where in a row a quote opens that does not close as it should, and what is wrong with it."""
    at, separator = 0, re.compile(f"[{delimiter}\r\n]")
    while at < len(text):
        if text[at] != '"':
            found = separator.search(text, at)
            at = len(text) if found is None else found.end()
            continue
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            return at, "a quote is opened here that is never closed"
        if text[quoted.end() : quoted.end() + 1] not in ("", delimiter, "\r", "\n"):
            return at, 'a cell in quotes goes on after them; a quote within it is written twice: ""'
        at = quoted.end() + 1
    return None


@contextmanager
def open_csv(path: Path, shown: str) -> Iterator[CsvTable]:
    """A table; complaints call the file what the person called it."""
    if path == STANDARD:
        with TemporaryFile() as kept:
            shutil.copyfileobj(sys.stdin.buffer, kept)
            yield CsvTable(kept, "standard input")
        return
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"no such file '{shown}'") from None
    except OSError as error:
        raise InputError(f"cannot read '{shown}': {error.strerror}") from None
    with file:
        if not file.seekable():  # a pipe by a name of its own: <(…)
            with TemporaryFile() as kept:
                shutil.copyfileobj(file, kept)
                yield CsvTable(kept, shown)
            return
        yield CsvTable(file, shown, path)
