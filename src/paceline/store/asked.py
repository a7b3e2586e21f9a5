"""A statement as PostgreSQL wants it, and what comes back.

Parameters are numbered and go as text; their types are told where they can be told from a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]

_PARAMETER = re.compile(r"%(?:(%)|s|\((\w+)\)s)")
_BIGINT = 20
_FLOAT = 701
_numbers = count(1)


class Spelled(NamedTuple):
    """A statement as the server wants it."""

    name: bytes
    text: bytes
    parameters: tuple[str, ...] | None
    """In their order; None where they have no names."""


class Asked:
    """A statement, and what comes back when it is waited for; as much of a cursor as we use."""

    __slots__ = ("_at", "_rowcount", "_rows", "_wait", "spelled", "values", "written")

    def __init__(self, spelled: Spelled, values: Sequence[Any], wait: Callable[[], None]) -> None:
        """``wait``: until it is answered."""
        self._wait = wait
        self.spelled = spelled
        self.values = values
        self.written = [_written(value) for value in values]
        self._rowcount = 0
        self._rows: list[Row] | None = None
        self._at = 0

    def answer(self, result: PGresult, transformer: Transformer) -> None:
        if result.status == ExecStatus.TUPLES_OK:
            transformer.set_pgresult(result)
            self._rowcount = result.ntuples
            self._rows = transformer.load_rows(0, self._rowcount, tuple)
            transformer.set_pgresult(None)  # it would be kept as long as the connection lies idle
        else:
            self._rowcount, self._rows = result.command_tuples or 0, []

    @property
    def rowcount(self) -> int:
        self._waited_for()
        return self._rowcount

    def fetchall(self) -> list[Row]:
        rows = self._waited_for()
        left, self._at = rows[self._at :] if self._at else rows, len(rows)
        return left

    def fetchone(self) -> Row | None:
        rows = self._waited_for()
        if self._at >= len(rows):
            return None
        self._at += 1
        return rows[self._at - 1]

    def _waited_for(self) -> list[Row]:
        if self._rows is None:
            self._wait()
        if self._rows is None:
            raise RuntimeError("what was asked in a transaction is fetched in it")
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())


@cache
def spelled(statement: str) -> Spelled:
    """Parameters are numbered; one that is named several times has one number."""
    names: dict[str, int] = {}
    unnamed = count(1)

    def number(found: re.Match[str]) -> str:
        if found[1]:
            return "%"
        if found[2]:
            return f"${names.setdefault(found[2], len(names) + 1)}"
        return f"${next(unnamed)}"

    text = _PARAMETER.sub(number, statement)
    name = f"paceline_{next(_numbers)}".encode()
    return Spelled(name, text.encode(), tuple(names) if names else None)


def ordered(known: Spelled, values: Values) -> Sequence[Any]:
    """The values in the order of the statement's parameters."""
    if isinstance(values, Mapping):
        return [values[name] for name in known.parameters or ()]
    return values


def _written(value: Any) -> bytes | None:
    """A value as text, which is how PostgreSQL takes any."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value.encode()
        if b"\0" in text:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return text
    if isinstance(value, int | float):
        return str(value).encode()
    raise TypeError(f"a statement cannot be asked with {type(value).__name__}")


def type_of(value: Any) -> int:
    """What the server takes a parameter for, where it cannot see from the statement."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _BIGINT
    return _FLOAT if isinstance(value, float) else 0
