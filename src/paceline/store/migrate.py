"""Bringing a database to the schema this version knows, and refusing one that is ahead of it.

The steps themselves are in ``migrations``; nobody needs a configuration file to run them.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from paceline.core.errors import SchemaMismatch

VERSION_TABLE = "paceline_schema"
"""A name of our own, because another program's tables may live in the same database."""


def config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, made in memory."""
    made = Config()
    made.set_main_option(
        "script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%")
    )
    made.attributes["connection"] = connection
    return made


def newest() -> str:
    """The schema this version of Paceline works with."""
    head = ScriptDirectory.from_config(config()).get_current_head()
    assert head is not None
    return head


def present(connection: Connection) -> str | None:
    """The schema the database has, or None if it was never prepared."""
    options = {"version_table": VERSION_TABLE}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def is_current(connection: Connection, place: str) -> bool:
    """Whether nothing needs to be done; a schema nobody here knows is refused."""
    found = present(connection)
    if found is None or found == newest():
        return found is not None
    known = {script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()}
    if found not in known:
        raise SchemaMismatch(
            f"{place} was made by a newer version of Paceline (schema {found}); "
            "upgrade Paceline to use it"
        )
    return False


def refuse(connection: Connection, place: str) -> None:
    """Say why a database that must not be changed cannot be used as it is."""
    found = present(connection)
    if found is None:
        raise SchemaMismatch(f"{place} was never prepared by Paceline")
    raise SchemaMismatch(
        f"{place} was made by an older version of Paceline (schema {found}) and must be migrated"
    )


def upgrade(connection: Connection) -> None:
    """Take every missing step, inside the caller's transaction."""
    command.upgrade(config(connection), "head")
