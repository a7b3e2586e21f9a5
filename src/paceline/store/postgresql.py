"""A store in a PostgreSQL database, shared by any number of processes on any number of hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, create_engine, event, text

from paceline.store import migrate
from paceline.store.base import Context
from paceline.store.failures import DATABASE_ERRORS, Place
from paceline.store.tx import Transaction

MIGRATION_KEY = 0x7061_6365_0002
"""The advisory lock under which a database is prepared: by one process, the others wait."""

CONNECTIONS = 8
WIRE = {
    "connect_timeout": "10",
    # A host that has vanished is found out in half a minute, not when the kernel gives up.
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Seconds, but for the last, which is in milliseconds. What the address itself says comes first."""

_SESSION = (
    # An answer means that it is on disk, whatever the server's own default says.
    "SET synchronous_commit = on",
    "SET timezone = 'UTC'",
    # Short statements over arrays: compiling them would take longer than running them.
    "SET jit = off",
    # A process that freezes in the middle of a transaction must not hold up the whole fleet.
    "SET idle_in_transaction_session_timeout = '60s'",
    # Nor must one of its statements; what goes over many rows lifts this for itself.
    "SET statement_timeout = '30s'",
    # Shorter than what is left of a lease when its renewal waits behind this (engine/leases.py).
    "SET lock_timeout = '5s'",
)


class PostgresqlStore:
    """The store of a fleet."""

    def __init__(self, url: URL, *, create: bool) -> None:
        self.place = Place(f"PostgreSQL at {_address(url)}")
        query = WIRE | dict(url.query)
        self._engine = create_engine(
            url.set(drivername="postgresql+psycopg", query=query),
            # A connection that died while it lay idle is replaced before it is used.
            pool_pre_ping=True,
            pool_size=CONNECTIONS,
            max_overflow=CONNECTIONS,
            hide_parameters=True,
        )
        event.listen(self._engine, "connect", _configure)
        self._consistent = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        try:
            with self.place.failures():
                self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    def _prepare(self, *, create: bool) -> None:
        with self._engine.begin() as connection:
            if migrate.is_current(connection, self.place.name):
                return
            if not create:
                migrate.refuse(connection, self.place.name)
            # Whoever prepares it now, we or another, takes as long as it takes.
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_KEY})"))
            # Whoever had the lock before may have done it all.
            if not migrate.is_current(connection, self.place.name):
                migrate.upgrade(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._transaction(self._engine.connect) as tx:
            yield tx

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._transaction(self._consistent.connect) as tx:
            yield tx

    @contextmanager
    def _transaction(self, connect: Any) -> Iterator[Transaction]:
        with self.place.failures(), connect() as connection:
            try:
                with connection.begin():
                    yield Transaction(Context(connection, None))
            except DATABASE_ERRORS:
                _drop_if_lost(connection)
                raise

    def analyse(self) -> None:
        with self.place.failures(), self._engine.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("ANALYZE deliveries, counters, runs, lanes, ledger"))

    def close(self) -> None:
        self._engine.dispose()


def _configure(connection: psycopg.Connection[Any], _: Any) -> None:
    for statement in _SESSION:
        connection.execute(statement)
    connection.commit()


def _drop_if_lost(connection: Connection) -> None:
    """Keep a dead connection out of the pool: the hot path's errors do not pass SQLAlchemy."""
    if not connection.invalidated and not connection.closed:
        driver: Any = connection.connection.driver_connection
        if driver is None or driver.closed:
            connection.invalidate()


def _address(url: URL) -> str:
    """Host, port and database; a socket folder is as good as a host."""
    host = url.host or url.query.get("host") or "localhost"
    return f"{host}:{url.port or 5432}/{url.database or url.username or ''}"
