"""Bringing a database to the schema this version knows, and refusing one that is ahead of it.

The steps themselves are in ``migrations``; nobody needs a configuration file to run them. Alembic
is loaded only where there is something to do: it takes longer than most commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from paceline.core.errors import SchemaMismatch

if TYPE_CHECKING:
    from alembic.config import Config

NEWEST = "0013"
"""The schema this version of Paceline works with."""

VERSION_TABLE = "paceline_schema"
"""A name of our own, because another program's tables may live in the same database."""


def config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, made in memory."""
    from alembic.config import Config

    made = Config()
    made.set_main_option(
        "script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%")
    )
    made.attributes["connection"] = connection
    return made


def present(connection: Connection) -> str | None:
    """The schema the database has, or None if it was never prepared."""
    # Asked for first: on PostgreSQL a statement that fails is the end of its transaction.
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(
        text(f"SELECT version_num FROM {VERSION_TABLE}")
    ).scalar_one_or_none()
    return found


def is_current(connection: Connection, place: str) -> bool:
    """Whether nothing needs to be done; a schema nobody here knows is refused."""
    found = present(connection)
    if found is None or found == NEWEST:
        return found is not None
    from alembic.script import ScriptDirectory

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
    from alembic import command

    command.upgrade(config(connection), "head")
