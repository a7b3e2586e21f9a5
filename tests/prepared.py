"""Databases that cost no more than what a test does with them.

Preparing a database takes alembic a tenth of a second, compiling the statements that a test uses
takes SQLAlchemy as long again, and a suite of thousands of tests needs as many of them. So only the
first database of each kind in a process is prepared for real: other new SQLite files are copies of
the first, other databases get the statements that made the first. And a statement is compiled once
for all databases of a kind. Tests of the preparation itself ask for ``real_databases``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, event

from paceline.store import migrate, sqlite
from paceline.store.database import open_store
from paceline.store.schema import METADATA

Statement = tuple[str, Any]

SWEEP = "; ".join(
    [
        *(f"DELETE FROM {table.name}" for table in reversed(METADATA.sorted_tables)),
        """INSERT INTO settings (key, value) VALUES ('control', '{"stopped": null}')""",
    ]
)
"""Forgets everything; quicker than another database, because these tables are small."""
AS_NEW = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid();
{SWEEP}; SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'
"""
"""The same of a database on PostgreSQL whose numbers begin anew, and of which nobody knows any
more: a failed test may have left connections open."""

prepare_for_real = migrate.upgrade
make_for_real = sqlite._make_private

_seen: dict[str, list[Statement]] = {}
"""By dialect, what made an empty database a prepared one."""
_files: list[bytes] = []
"""What a prepared SQLite file holds, once there was one."""


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


def make(path: Path) -> None:
    """What ``sqlite._make_private`` does; only that there is something in the new file."""
    if not _files:
        _files.append(_a_prepared_file())
    try:
        made, name = tempfile.mkstemp(dir=path.parent)
    except OSError:
        make_for_real(path)  # which says what is wrong with the folder
        return
    try:
        with os.fdopen(made, "wb") as file:
            file.write(_files[0])
        # All of it is there at once: others may open it at the same moment.
        os.link(name, path)
    except FileExistsError:
        return
    finally:
        os.unlink(name)


def _a_prepared_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prepared.db"
        make_for_real(path)
        open_store(f"sqlite:///{path}", clock=lambda: 0).close()
        return path.read_bytes()


class _Compiled(dict[Any, Any]):
    """Compiled statements. SQLAlchemy asks by its dialect, of which every engine has its own; those
    of one kind are all alike here."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), compiled)


_compiled = _Compiled()


def create_engine(*args: Any, **options: Any) -> Engine:
    """What SQLAlchemy's own does."""
    return sqlalchemy.create_engine(
        *args, **options, execution_options={"compiled_cache": _compiled}
    )
