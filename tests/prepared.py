"""Databases that are prepared by what was seen when the first one was.

Preparing a database takes alembic a tenth of a second, and a suite of thousands of tests needs as
many of them. The first of each kind in a process is prepared for real, and the statements that made
it are noted; the others get the same ones at once. Tests of the preparation itself ask for
``real_databases``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from paceline.store import migrate

Statement = tuple[str, Any]

prepare_for_real = migrate.upgrade

_seen: dict[str, list[Statement]] = {}
"""By dialect, what made an empty database a prepared one."""


def prepare(connection: Connection) -> None:
    """What ``migrate.upgrade`` does."""
    if migrate.present(connection) is not None:
        prepare_for_real(connection)
        return
    kind = connection.dialect.name
    if kind not in _seen:
        with _noted(connection) as noted:
            prepare_for_real(connection)
        _seen[kind] = noted
        return
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor()
    for statement, values in _seen[kind]:
        cursor.execute(statement, values)
    cursor.close()


@contextmanager
def _noted(connection: Connection) -> Iterator[list[Statement]]:
    noted: list[Statement] = []

    def note(_: Any, __: Any, statement: str, values: Any, *___: Any) -> None:
        if not statement.lstrip().upper().startswith(("SELECT", "PRAGMA")):
            noted.append((statement, values))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield noted
    finally:
        event.remove(connection, "before_cursor_execute", note)
