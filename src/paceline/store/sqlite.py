"""A store in one SQLite file: one writer, any number of readers, other processes beside us.

WAL lets readers go on while somebody writes; ``synchronous=FULL`` makes a commit survive a loss of
power; ``BEGIN IMMEDIATE`` takes the write lock at once, so that a transaction never finds out in
the middle that it cannot finish.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from paceline.core.errors import StoreBusy, StoreError
from paceline.core.instants import SECOND, Instant
from paceline.store import migrate
from paceline.store.base import Context
from paceline.store.failures import Place
from paceline.store.tx import Transaction

OLDEST = (3, 38, 0)
"""The first SQLite with everything used here: RETURNING, and JSON that is always built in."""
READERS = 8
WAL_TRIES = 10
CHECKPOINT_PAGES = 16_000
"""Pages in the log before they are moved to the file (64 MB): the same page changes with nearly
every group, and is moved once for all of them."""


class SqliteStore:
    """The store of one host."""

    def __init__(
        self, path: Path, clock: Callable[[], Instant], *, create: bool, busy_timeout_us: int
    ) -> None:
        self.place = Place(str(path))
        self._clock = clock
        self._timeout_us = busy_timeout_us
        # One connection writes, and one thread at a time uses it; whoever comes second waits here
        # rather than in the file's lock, which is polled.
        self._turn = Lock()
        _refuse_unusable(path, create=create)
        self._writing = self._engine(path, "IMMEDIATE", poolclass=NullPool)
        self._reading = self._engine(
            path, "DEFERRED", poolclass=QueuePool, pool_size=READERS, max_overflow=READERS
        )
        with self.place.failures():
            self._writer = self._writing.connect()
        try:
            with self.place.failures():
                self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    def _engine(self, path: Path, begin: str, **pool: Any) -> Engine:
        timeout_ms = self._timeout_us // 1_000
        engine = create_engine(
            "sqlite+pysqlite://",
            creator=lambda: sqlite3.connect(
                path,
                timeout=self._timeout_us / SECOND,
                isolation_level=None,  # transactions are begun below, not guessed by the driver
                check_same_thread=False,
                cached_statements=256,
            ),
            **pool,
        )

        @event.listens_for(engine, "connect")
        def configure(connection: sqlite3.Connection, _: Any) -> None:
            connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -32000")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            if begin == "DEFERRED":
                connection.execute("PRAGMA query_only = ON")

        @event.listens_for(engine, "begin")
        def begin_transaction(connection: Connection) -> None:
            connection.exec_driver_sql(f"BEGIN {begin}")

        return engine

    def _prepare(self, *, create: bool) -> None:
        # Looked at before anything is locked: nearly always there is nothing to do.
        with self._reading.connect() as connection, connection.begin():
            current = migrate.is_current(connection, self.place.name)
            if not current and not create:
                migrate.refuse(connection, self.place.name)
        self._use_wal()
        if not current:
            with self._writer.begin():
                # Whoever else opens the file now waits for this, and then finds it done.
                if not migrate.is_current(self._writer, self.place.name):
                    migrate.upgrade(self._writer)

    def _use_wal(self) -> None:
        """Switch to WAL, which needs the file for itself and does not wait for it by itself."""
        connection: Any = self._writer.connection.driver_connection
        for tries_left in reversed(range(WAL_TRIES)):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or not tries_left:
                    raise
                # A write lock, unlike the switch, is waited for: whoever has the file is done then.
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")
            else:
                return

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        if not self._turn.acquire(timeout=self._timeout_us / SECOND):
            raise StoreBusy(f"{self.place.name}: another transaction of this process goes on")
        try:
            with self.place.failures(), self._writer.begin():
                yield Transaction(Context(self._writer, self._clock))
        finally:
            self._turn.release()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self.place.failures(), self._reading.connect() as connection, connection.begin():
            yield Transaction(Context(connection, self._clock))

    def analyse(self) -> None:
        with self._turn, self.place.failures(), self._writer.begin():
            # A sample is enough for the planner, and holds the file for a moment only.
            self._writer.exec_driver_sql("PRAGMA analysis_limit = 1000")
            self._writer.exec_driver_sql("ANALYZE")

    def close(self) -> None:
        with self._turn, self.place.failures():
            self._writer.close()
            self._writing.dispose()
            self._reading.dispose()


def _refuse_unusable(path: Path, *, create: bool) -> None:
    """Say plainly what SQLite would only call "unable to open database file"."""
    if sqlite3.sqlite_version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; {wanted} is needed")
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database file")
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be opened: the folder {path.parent} does not exist")
    if not create and not path.exists():
        raise StoreError(f"{path} does not exist")
