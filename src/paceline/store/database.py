"""Opening a store: what an address means, and which kind of database it leads to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from paceline.core.errors import InputError
from paceline.core.instants import SECOND, Instant
from paceline.engine.ports.store import Store

BUSY_TIMEOUT_US = 30 * SECOND
"""How long another process may hold a SQLite file before we give up."""

FORMS = "Write a file path, sqlite:///path or postgresql://user@host/database"


def open_store(
    url: str,
    *,
    clock: Callable[[], Instant] | None = None,
    create: bool = True,
    busy_timeout_us: int = BUSY_TIMEOUT_US,
    durable: bool = True,
) -> Store:
    """Open the database at ``url``, prepared and migrated.

    ``clock`` tells the time of a SQLite file, which has none of its own; a PostgreSQL server has.
    With ``create`` false nothing is created or migrated, and what is not ready is refused.
    ``durable`` false is for simulated worlds: a SQLite file then does not wait for the disk.
    """
    address = _parse(url)
    # Only the kind that is asked for is loaded: the other's driver takes longer than most commands.
    if isinstance(address, URL):
        from paceline.store.postgresql import PostgresqlStore

        return PostgresqlStore(address, create=create)
    if clock is None:
        raise TypeError("a SQLite store needs a clock")
    from paceline.store.sqlite import SqliteStore

    return SqliteStore(
        address, clock, create=create, busy_timeout_us=busy_timeout_us, durable=durable
    )


def _parse(url: str) -> Path | URL:
    """The file of a SQLite address or of a plain path, or the address of a server."""
    if "://" not in url:
        return _file(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # What is wrong is not repeated: there may be a password in it.
        raise InputError("the database address cannot be read", hint=FORMS) from None
    kind = parsed.drivername.partition("+")[0]
    if kind == "sqlite":
        return _file(parsed.database or "")
    if kind in ("postgresql", "postgres"):
        return parsed
    raise InputError(f"{kind!r} is not a database Paceline can use", hint=FORMS)


def _file(name: str) -> Path:
    if not name or name == ":memory:":
        raise InputError("a database in memory would lose everything", hint=FORMS)
    return Path(name)
