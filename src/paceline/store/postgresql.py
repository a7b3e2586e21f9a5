"""A store in a PostgreSQL database, shared by any number of processes on any number of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, create_engine, event, text
from sqlalchemy.pool import NullPool

from paceline.engine.ports.path import LaneUnit
from paceline.store import migrate
from paceline.store.base import Context
from paceline.store.crossing import Crossing
from paceline.store.failures_postgresql import PostgresqlPlace
from paceline.store.locks import Lock
from paceline.store.schema import complete_for_postgresql
from paceline.store.tx import Transaction
from paceline.store.watch import CAN_WATCH
from paceline.store.wire import Wire

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

WRITING = b"BEGIN"
READING = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_SESSION = (
    # In which texts are written, whatever the environment or the database would rather have.
    "SET client_encoding = 'UTF8'",
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
    # A flight carries its COMMIT with it. One that waits for somebody's row when its sender is gone
    # gives up, sooner than a lane goes on that has heard nothing (lane.STORE_RETRY_US); otherwise
    # it would be committed at any time later. Servers before 14 or on other systems cannot.
    "SELECT set_config(name, '500ms', false) FROM pg_settings"
    " WHERE name = 'client_connection_check_interval' AND version() LIKE '%linux%'",
)


complete_for_postgresql()


class PostgresqlStore:
    """The store of a fleet."""

    prompt = False

    def __init__(self, url: URL, *, create: bool) -> None:
        self.place = PostgresqlPlace(f"PostgreSQL at {_address(url)}")
        query = WIRE | dict(url.query)
        self._engine = create_engine(
            url.set(drivername="postgresql+psycopg", query=query),
            # There are as many as there are threads at once, and the idle ones are kept below.
            poolclass=NullPool,
            hide_parameters=True,
            # Transactions are begun below, in one round trip and no more.
            isolation_level="AUTOCOMMIT",
        )
        event.listen(self._engine, "connect", _configure)
        # Connected and idle. The pool would ask each of them first whether it is alive; these find
        # out by themselves.
        self._idle: list[Wire] = []
        try:
            with self.place.failures():
                self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    def _prepare(self, *, create: bool) -> None:
        with self._engine.connect() as connection, _begun(connection):
            if migrate.is_current(connection, self.place.name):
                return
            if not create:
                migrate.refuse(connection, self.place.name)
            # Whoever prepares it now, we or another, takes as long as it takes.
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({Lock.MIGRATION:d})"))
            # Whoever had the lock before may have done it all.
            if not migrate.is_current(connection, self.place.name):
                migrate.upgrade(connection)

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Transaction]:
        """Others write at the same time, so there is nothing to wait for at the beginning."""
        with self._transaction(WRITING) as tx:
            yield tx

    def set_off(self, units: Sequence[LaneUnit]) -> Crossing | None:
        """Only over a connection that lies idle: to open one would take a while, and so would
        ending what was left in the middle of it."""
        wire = _taken(self._idle) if CAN_WATCH else None
        if wire is None:
            return None
        crossing = None
        try:
            crossing = self._crossing(wire, units) if wire.usable else None
        finally:
            if crossing is None:  # the server was told nothing yet
                self._idle.append(wire)
        return crossing

    def _crossing(self, wire: Wire, units: Sequence[LaneUnit]) -> Crossing | None:
        wire.begin(WRITING)
        foretold = Transaction(Context(wire.sql, None, wire)).path.trust(units)
        return None if foretold is None else Crossing(wire, self.place, foretold, self._idle.append)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._transaction(READING) as tx:
            yield tx

    @contextmanager
    def _transaction(self, kind: bytes) -> Iterator[Transaction]:
        with self.place.failures():
            wire = self._begin(kind)
            try:
                with _ended(wire):
                    yield Transaction(Context(wire.sql, None, wire))
            except BaseException:
                wire.drop()
                raise
            self._idle.append(wire)

    def _begin(self, kind: bytes) -> Wire:
        """A connection for a new transaction; one that died while it lay idle is replaced."""
        wire = _taken(self._idle) or Wire(self._engine.connect)
        wire.begin(kind)
        return wire

    def analyse(self) -> None:
        with (
            self.place.failures(),
            self._engine.connect() as connection,
            _begun(connection),
        ):
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("ANALYZE deliveries, counters, runs, lanes, ledger"))

    def wipe(self) -> bool:
        # Old versions of a row lie in its table until the server's own vacuum comes by.
        return True

    def close(self) -> None:
        while (wire := _taken(self._idle)) is not None:
            wire.drop()
        self._engine.dispose()


def _taken(idle: list[Wire]) -> Wire | None:
    """One of them, if there is any: another thread may take the last."""
    try:
        return idle.pop()
    except IndexError:
        return None


@contextmanager
def _begun(connection: Connection) -> Iterator[None]:
    wire = Wire(lambda: connection)
    wire.begin(WRITING)
    wire.settle()
    with _ended(wire):
        yield


@contextmanager
def _ended(wire: Wire) -> Iterator[None]:
    """Commit at the end of the block; roll back what was broken off."""
    try:
        yield
    except BaseException:
        wire.roll_back()
        raise
    wire.commit()


def _configure(connection: psycopg.Connection[Any], _: Any) -> None:
    for statement in _SESSION:
        connection.execute(statement)
    if not connection.autocommit:
        connection.commit()


def _address(url: URL) -> str:
    """Host, port and database; a socket folder is as good as a host."""
    host = url.host or url.query.get("host") or "localhost"
    return f"{host}:{url.port or 5432}/{url.database or url.username or ''}"
