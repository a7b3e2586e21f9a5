"""A store in one SQLite file: one writer, any number of readers, other processes beside us.

WAL lets readers go on while somebody writes; ``synchronous=FULL`` makes a commit survive a loss of
power; ``BEGIN IMMEDIATE`` takes the write lock at once, so that a transaction never finds out in
the middle that it cannot finish.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from paceline.core.errors import StoreBusy, StoreError, StoreUnavailable
from paceline.core.instants import SECOND, Instant
from paceline.engine.ports.path import LaneUnit
from paceline.store import migrate
from paceline.store.base import Context
from paceline.store.failures_sqlite import SQLITE_ERRORS, SqlitePlace
from paceline.store.tx import Transaction

OLDEST = (3, 38, 0)
"""The first SQLite with everything used here: RETURNING, and JSON that is always built in."""
READERS = 8
WAL_TRIES = 10
CHECKPOINT_PAGES = 16_000
"""Pages in the log before they are moved to the file (64 MB): the same page changes with nearly
every group, and is moved once for all of them."""


WIPE_WITHIN_MS = 1_000


class SqliteStore:
    """The store of one host."""

    prompt = True

    def __init__(
        self,
        path: Path,
        clock: Callable[[], Instant],
        *,
        create: bool,
        busy_timeout_us: int,
        durable: bool = True,
    ) -> None:
        self.place = SqlitePlace(str(path))
        self._synchronous = "FULL" if durable else "OFF"
        self._clock = clock
        self._timeout_us = busy_timeout_us
        # One connection writes, and one thread at a time uses it; whoever comes second waits here
        # rather than in the file's lock, which is polled.
        self._turn = Lock()
        self._undoes_in_memory = False
        _refuse_unusable(path, create=create)
        self._writing = self._engine(path, poolclass=NullPool)
        self._reading = self._engine(
            path, queries_only=True, poolclass=QueuePool, pool_size=READERS, max_overflow=READERS
        )
        # Readers stay connected: fetching one from the pool takes longer than most of their reads.
        self._readers: list[Connection] = []
        with self.place.failures():
            self._writer = self._writing.connect()
        try:
            with self.place.failures():
                self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    def _engine(self, path: Path, *, queries_only: bool = False, **pool: Any) -> Engine:
        timeout_ms = self._timeout_us // 1_000
        engine = create_engine(
            "sqlite+pysqlite://",
            creator=lambda: sqlite3.connect(
                path,
                timeout=self._timeout_us / SECOND,
                isolation_level=None,  # transactions are begun below, not guessed by the driver
                check_same_thread=False,
                cached_statements=512,
            ),
            # Nor by SQLAlchemy: that costs more than a small transaction itself.
            isolation_level="AUTOCOMMIT",
            **pool,
        )

        @event.listens_for(engine, "connect")
        def configure(connection: sqlite3.Connection, _: Any) -> None:
            connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
            # What is written over or deleted is people's: nothing of it stays in the file. Many
            # builds of SQLite do so anyway.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA cache_size = -32000")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            if queries_only:
                connection.execute("PRAGMA query_only = ON")

        return engine

    def _prepare(self, *, create: bool) -> None:
        # Looked at before anything is locked: nearly always there is nothing to do.
        with (
            self._reading.connect() as connection,
            _Transaction(connection, "BEGIN DEFERRED", self.place),
        ):
            current = migrate.is_current(connection, self.place.name)
            if not current and not create:
                migrate.refuse(connection, self.place.name)
        self._use_wal()
        if not current:
            with _Transaction(self._writer, "BEGIN IMMEDIATE", self.place):
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
    def write(self, *, at_once: bool = False) -> Iterator[Transaction]:
        if not self._turn.acquire(timeout=0 if at_once else self._timeout_us / SECOND):
            raise StoreBusy(f"{self.place.name}: another transaction of this process goes on")
        try:
            self._undo_in_memory(at_once)
            kind = _AtOnce if at_once else _Transaction
            with kind(self._writer, "BEGIN IMMEDIATE", self.place):
                yield Transaction(Context(self._writer, self._clock))
        finally:
            self._turn.release()

    def _undo_in_memory(self, wanted: bool) -> None:
        """Where SQLite keeps what it needs to take back half a statement. For a file it prepares
        64 kB each time, which takes longer than to change a few rows; in memory it takes what it
        needs, which for a statement over a whole campaign is all of its pages. So only where no
        statement is long: what does not wait changes few rows."""
        if wanted is not self._undoes_in_memory:
            place = "MEMORY" if wanted else "DEFAULT"
            driver: Any = self._writer.connection.driver_connection
            with self.place.failures():
                driver.execute(f"PRAGMA temp_store = {place}")
            self._undoes_in_memory = wanted

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        try:
            reader = self._readers.pop()
        except IndexError:  # all are in use
            with self.place.failures():
                reader = self._reading.connect()
        try:
            with _Transaction(reader, "BEGIN DEFERRED", self.place):
                yield Transaction(Context(reader, self._clock))
        except BaseException:
            with self.place.failures():
                reader.close()
            raise
        self._readers.append(reader)

    def set_off(self, units: Sequence[LaneUnit]) -> None:
        """There is no way to a file that could be waited for otherwise."""
        return None

    def analyse(self) -> None:
        with self._turn, _Transaction(self._writer, "BEGIN IMMEDIATE", self.place):
            # A sample is enough for the planner, and holds the file for a moment only.
            self._writer.exec_driver_sql("PRAGMA analysis_limit = 1000")
            self._writer.exec_driver_sql("ANALYZE")

    def wipe(self) -> bool:
        driver: Any = self._writer.connection.driver_connection
        with self._turn, self.place.failures():
            # The log has every page as it was. Moved to the file it would still lie there until
            # somebody writes over it. Nobody can write while readers are waited for.
            driver.execute(f"PRAGMA busy_timeout = {WIPE_WITHIN_MS}")
            try:
                (busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                driver.execute(f"PRAGMA busy_timeout = {self._timeout_us // 1_000}")
        return not busy

    def close(self) -> None:
        with self._turn, self.place.failures():
            while self._readers:
                self._readers.pop().close()
            self._writer.close()
            self._writing.dispose()
            self._reading.dispose()


class _Transaction:
    """One transaction on the driver's own connection, whichever way its statements come.

    What the database raises is told as a ``StoreError``. A class rather than a generator, and all
    of it in one: a small transaction takes hardly longer than three of those.
    """

    __slots__ = ("_begin", "_driver", "_place")

    def __init__(self, connection: Connection, begin: str, place: SqlitePlace) -> None:
        self._driver: Any = connection.connection.driver_connection
        self._begin = begin
        self._place = place

    def __enter__(self) -> None:
        try:
            self._driver.execute(self._begin)
        except SQLITE_ERRORS as error:
            raise self._place.translate(error) from error

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._undo()
        except SQLITE_ERRORS as failure:
            raise self._place.translate(failure) from failure
        if isinstance(error, SQLITE_ERRORS):
            raise self._place.translate(error) from error

    def _commit(self) -> None:
        try:
            self._driver.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        # A commit that failed may have ended the transaction by itself, or left it open.
        if self._driver.in_transaction:
            self._driver.execute("ROLLBACK")


class _AtOnce(_Transaction):
    """One that does not wait for whoever writes to the file now."""

    __slots__ = ()

    def __enter__(self) -> None:
        (usual_ms,) = self._driver.execute("PRAGMA busy_timeout").fetchone()
        self._driver.execute("PRAGMA busy_timeout = 0")
        try:
            super().__enter__()
        finally:
            self._driver.execute(f"PRAGMA busy_timeout = {usual_ms}")


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
    if not path.exists():
        _make_private(path)


def _make_private(path: Path) -> None:
    """A file for ourselves alone, because whole audiences lie in it; SQLite's log takes after it.

    Only ever a new one is opened here: to close it would drop the locks that this process has on
    a file that is in use.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return  # Somebody else was faster, and made it as private.
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from None
