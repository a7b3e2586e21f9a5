"""A SQLite database in memory, for simulated worlds: the same statements without a file.

Everything in such a world runs on one thread, and one transaction at a time. So one connection is
enough for whoever reads and whoever writes, nobody ever waits for anybody, and there is no log to
be written and read again with every commit, which takes longer than most of the commits. Whatever
a file can do to a process (be busy, be away, lose an answer) is the weather's affair there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from paceline.core.instants import Instant
from paceline.engine.ports.path import LaneUnit
from paceline.store import migrate
from paceline.store.base import Context
from paceline.store.failures_sqlite import SQLITE_ERRORS, SqlitePlace
from paceline.store.noting import Notes
from paceline.store.tx import Transaction

_blank: list[sqlite3.Connection] = []
"""An empty database, made once: laying its tables takes longer than many a world."""


class InMemoryStore:
    """The store of one simulated world."""

    prompt = True

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self._place = SqlitePlace("a database in memory")
        self._clock = clock
        self._driver = _connected()
        self._engine = create_engine(
            "sqlite+pysqlite://",
            creator=lambda: self._driver,
            isolation_level="AUTOCOMMIT",
            poolclass=StaticPool,
        )
        self._connection = self._engine.connect()
        if not _blank:
            migrate.upgrade(self._connection)
            _blank.append(_connected())
            self._driver.backup(_blank[0])
        else:
            _blank[0].backup(self._driver)

    def write(self, *, at_once: bool = False) -> AbstractContextManager[Transaction]:
        return _Writing(self._connection, self._driver, self._clock, self._place)

    def read(self) -> AbstractContextManager[Transaction]:
        return _Reading(self._connection, self._clock, self._place)

    def note(self, true_now: Callable[[], Instant]) -> Notes:
        """Have it noted from here on what was in force when."""
        return Notes(self._driver, true_now, self._clock)

    def set_off(self, units: Sequence[LaneUnit]) -> None:
        """There is no way to a file that could be waited for otherwise."""
        return None

    def analyse(self) -> None:
        self._driver.execute("ANALYZE")

    def wipe(self) -> bool:
        """There is no log in which anything could be left."""
        return True

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()
        self._driver.close()


def _connected() -> sqlite3.Connection:
    driver = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=512
    )
    driver.execute("PRAGMA foreign_keys = ON")
    # Many builds write over what is deleted. Nobody's name is in here, and all of it is gone soon.
    driver.execute("PRAGMA secure_delete = OFF")
    return driver


class _Reading:
    """Nobody writes meanwhile: what is read is of one moment without being told so."""

    __slots__ = ("_clock", "_connection", "_place")

    def __init__(
        self, connection: Connection, clock: Callable[[], Instant], place: SqlitePlace
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._place = place

    def __enter__(self) -> Transaction:
        return Transaction(Context(self._connection, self._clock))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, SQLITE_ERRORS):
            raise self._place.translate(error) from error


class _Writing(_Reading):
    """All of it or nothing."""

    __slots__ = ("_driver",)

    def __init__(
        self,
        connection: Connection,
        driver: sqlite3.Connection,
        clock: Callable[[], Instant],
        place: SqlitePlace,
    ) -> None:
        super().__init__(connection, clock, place)
        self._driver: Any = driver

    def __enter__(self) -> Transaction:
        try:
            self._driver.execute("BEGIN")
        except sqlite3.Error as error:  # one within another: a defect, and SQLite says so
            raise self._place.translate(error) from error
        return super().__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._driver.execute("COMMIT")
            except sqlite3.Error as failure:
                self._driver.execute("ROLLBACK")
                raise self._place.translate(failure) from failure
            return
        self._driver.execute("ROLLBACK")
        super().__exit__(kind, error, trace)
