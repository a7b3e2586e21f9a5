"""Statements that are put together once: Core says what they are, the driver runs them.

Building an expression anew for every call costs many times what the database needs for a small
statement, so whatever a process runs all the time is built here once, compiled once for each kind
of database, and handed to the driver as plain text ever after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ClauseElement,
    ColumnElement,
    Text,
    any_,
    bindparam,
    cast,
    column,
    func,
)
from sqlalchemy import select as _select

from paceline.store.base import Context, Cursor, array, dump

Spelled = tuple[str, dict[str, Any]]
"""A statement's text, and the values that are always the same."""


class Prepared:
    """One statement; ``build`` puts it together, with a ``bindparam`` for whatever changes.

    It is told whether the database is PostgreSQL, for the few things that are spelled apart.
    """

    __slots__ = ("_build", "_postgresql", "_sqlite")

    def __init__(self, build: Callable[[bool], ClauseElement]) -> None:
        self._build = build
        self._sqlite: Spelled | None = None
        self._postgresql: Spelled | None = None

    def run(self, context: Context, **values: Any) -> Cursor:
        """Run it in this transaction; the cursor's rows are plain tuples."""
        text, constants = self._on_postgresql() if context.postgresql else self._on_sqlite()
        return context.ask(text, constants | values if constants else values)

    def _on_sqlite(self) -> Spelled:
        if self._sqlite is None:
            self._sqlite = _spelled(self._build(False), _sqlite())
        return self._sqlite

    def _on_postgresql(self) -> Spelled:
        if self._postgresql is None:
            self._postgresql = _spelled(self._build(True), _postgresql())
        return self._postgresql


# Both spell a parameter by its name, so that the same values serve both. Only the one in use is
# loaded: PostgreSQL's takes longer than most commands.
@cache
def _sqlite() -> Any:
    from sqlalchemy.dialects import sqlite

    return sqlite.dialect(paramstyle="named")


@cache
def _postgresql() -> Any:
    from sqlalchemy.dialects import postgresql

    return postgresql.psycopg.dialect()


def _spelled(statement: ClauseElement, dialect: Any) -> Spelled:
    compiled: Any = statement.compile(dialect=dialect)
    binds = compiled.bind_names.items()
    constants = {name: bind.value for bind, name in binds if not bind.required}
    return str(compiled), constants


def among(numbers: ColumnElement[Any], name: str, *, on_postgresql: bool) -> ColumnElement[bool]:
    """Whether a column is one of the numbers bound by ``name``, as ``listed`` writes them.

    One parameter however many there are, so that the text and its plan are always the same.
    """
    if on_postgresql:
        return numbers == any_(cast(bindparam(name), ARRAY(BigInteger)))
    values = func.json_each(bindparam(name)).table_valued(column("value"))
    return numbers.in_(_select(values.c.value))


def among_words(
    words: ColumnElement[Any], name: str, *, on_postgresql: bool
) -> ColumnElement[bool]:
    """The same of texts, as ``worded`` writes them."""
    if on_postgresql:
        return words == any_(cast(bindparam(name), ARRAY(Text)))
    values = func.json_each(bindparam(name)).table_valued(column("value"))
    return words.in_(_select(values.c.value))


def listed(context: Context, numbers: Iterable[int]) -> str:
    """Numbers as one parameter, for ``among``."""
    ordered = sorted(set(numbers))
    # Numbers are written alike in both languages.
    return array(ordered) if context.postgresql else str(ordered)


def worded(context: Context, words: Iterable[str]) -> str:
    """Texts as one parameter, for ``among_words``."""
    ordered = sorted(set(words))
    return array(ordered) if context.postgresql else dump(ordered)
