"""Deliveries as CSV or JSON lines, to standard output or into a file.

A file and a pipe get what is known as it is. A terminal gets it tamed: reasons are the words of
strangers, and it would obey what is in them.
"""

from __future__ import annotations

import csv
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeGuard, cast

from paceline.cli import output
from paceline.cli.csv_rows import STANDARD
from paceline.core.errors import InputError, PacelineError

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a disk says that is full, or failing."""

COLUMNS = (
    "id",
    "campaign",
    "account",
    "target",
    "action",
    "state",
    "reason",
    "scheduled_at",
    "due_at",
    "expires_at",
    "sent_at",
    "delivered_at",
    "read_at",
    "attempts",
    "retries",
    "parts_done",
    "provider_id",
)
"""The same keys as in JSON, without the fields, which differ from campaign to campaign."""


def write_rows(
    path: Path | None,
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str] = COLUMNS,
    *,
    as_json: bool,
) -> int:
    """How many were written: in these columns, or all there is of each."""
    with writing_to(path) as target:
        return _write_json_lines(target, rows) if as_json else _write_csv(target, rows, columns)


def _write_csv(target: TextIO, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> int:
    writer = csv.DictWriter(target, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in rows:
        writer.writerow(row)
        count += 1
    return count


def _write_json_lines(target: TextIO, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for row in rows:
        target.write(output.json_text(row) + "\n")
        count += 1
    return count


def is_file(path: Path | None) -> TypeGuard[Path]:
    """Whether something else than standard output is meant, which is also called ``-``."""
    return path is not None and path != STANDARD


class _Terminal:
    """What somebody looks at."""

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def write(self, text: str) -> int:
        return self._target.write(output.tame(text))


def _fit(target: TextIO) -> TextIO:
    return cast("TextIO", _Terminal(target)) if target.isatty() else target


@contextmanager
def writing_to(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears only when it is complete."""
    if not is_file(path):
        yield _fit(sys.stdout)
        return
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe: a file in its place would be the end of it, for everybody.
            with path.open("w", encoding="utf-8", newline="") as target:
                yield _fit(target)
            return
        real = Path(os.path.realpath(path))  # a link stays one
        unfinished = real.with_name(f"{real.name}.part")
        try:
            with unfinished.open("w", encoding="utf-8", newline="") as target:
                yield target
            if real.exists():
                unfinished.chmod(real.stat().st_mode)  # as private as it was
            os.replace(unfinished, real)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        told = InputError(f"cannot write: {error.strerror}", where=str(path))
        # A disk that is full is nobody's wrong word.
        raise (PacelineError(str(told)) if error.errno in UNWRITABLE else told) from None
