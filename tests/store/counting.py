"""Counts what is asked of a database, whoever asks it: SQLAlchemy, or a driver's own cursor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from paceline.store.asked import Asked
from paceline.store.base import Context
from paceline.store.wire import Values, Wire


class _Cursor:
    """A driver's cursor, with every question noted; many rows in one call are one question."""

    def __init__(self, cursor: Any, asked: list[str]) -> None:
        self._cursor = cursor
        self._asked = asked

    def execute(self, statement: str, *values: Any, **options: Any) -> Any:
        self._asked.append(statement)
        return self._cursor.execute(statement, *values, **options)

    def executemany(self, statement: str, *values: Any) -> Any:
        self._asked.append(statement)
        return self._cursor.executemany(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements asked inside, in their order."""
    asked: list[str] = []
    real, asks = Context.cursor, Wire.ask

    def ask(self: Wire, statement: str, values: Values = ()) -> Asked:
        asked.append(statement)
        return asks(self, statement, values)

    def note(_: Any, __: Any, statement: str, *rest: Any) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Context, "cursor", lambda self: _Cursor(real(self), asked))
            patch.setattr(Wire, "ask", ask)
            yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", note)
