"""Every error of either driver becomes one of ours, and a lost connection is got over."""

import sqlite3
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import create_engine, exc, text

from paceline.core.errors import RowBusy, StoreBusy, StoreConflict, StoreError, StoreUnavailable
from paceline.store.database import open_store
from paceline.store.failures import Place
from paceline.store.failures_postgresql import PostgresqlPlace
from paceline.store.failures_sqlite import SqlitePlace
from tests.store.scene import T0, Scene

FILE, SERVER = SqlitePlace("the store"), PostgresqlPlace("the store")


def _family(root: type[BaseException]) -> Iterator[type[BaseException]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)


def _wrapped(cause: BaseException) -> Iterator[BaseException]:
    """The error as a cursor raises it, and as SQLAlchemy passes it on."""
    yield cause
    yield exc.DBAPIError.instance("SELECT 1", {}, cause, sqlite3.Error)


@pytest.mark.parametrize(("root", "place"), [(sqlite3.Error, FILE), (psycopg.Error, SERVER)])
def test_every_driver_error_is_mapped(root: type[BaseException], place: Place) -> None:
    kinds = list(_family(root))
    assert len(kinds) > 8
    for kind in kinds:
        for error in _wrapped(kind("it said\nso")):
            with pytest.raises(StoreError) as raised, place.failures():
                raise error
            assert "\n" not in str(raised.value)
            assert str(raised.value).startswith("the store")


def _made(kind: type[BaseException]) -> BaseException:
    """An error of this kind, however many words its maker wants."""
    for count in range(1, 6):
        try:
            error = kind(*["said"] * count)
            str(error)
        except (TypeError, AttributeError):
            continue
        return error
    raise AssertionError(f"cannot make a {kind}")


@pytest.mark.parametrize("place", [FILE, SERVER])
def test_every_sqlalchemy_error_is_mapped(place: Place) -> None:
    kinds = list(_family(exc.SQLAlchemyError))
    assert exc.OperationalError in kinds
    for kind in kinds:
        with pytest.raises(StoreError, match="the store"), place.failures():
            raise _made(kind)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (errors.AdminShutdown, StoreUnavailable),
        (errors.CrashShutdown, StoreUnavailable),
        (errors.CannotConnectNow, StoreUnavailable),
        (errors.ConnectionFailure, StoreUnavailable),
        (errors.TooManyConnections, StoreUnavailable),
        (errors.DiskFull, StoreUnavailable),
        (errors.IdleInTransactionSessionTimeout, StoreUnavailable),
        (psycopg.OperationalError, StoreUnavailable),
        (psycopg.InterfaceError, StoreUnavailable),
        (errors.LockNotAvailable, RowBusy),
        (errors.DeadlockDetected, StoreConflict),
        (errors.SerializationFailure, StoreConflict),
        (errors.QueryCanceled, RowBusy),
        (errors.ReadOnlySqlTransaction, StoreUnavailable),
        (errors.OutOfMemory, StoreUnavailable),
        (errors.SyntaxError, StoreError),
        (errors.CheckViolation, StoreError),
        (errors.UniqueViolation, StoreError),
        (errors.UndefinedTable, StoreError),
    ],
)
def test_what_postgresql_says(kind: type[psycopg.Error], expected: type[StoreError]) -> None:
    for error in _wrapped(kind("said")):
        assert type(SERVER.translate(error)) is expected


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        (sqlite3.SQLITE_BUSY, StoreBusy, "locked by another process"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy, "locked by another process"),
        (sqlite3.SQLITE_LOCKED, StoreBusy, "locked by another process"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StoreUnavailable, "cannot be written to"),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailable, "cannot be opened"),
        (sqlite3.SQLITE_FULL, StoreUnavailable, "the disk is full"),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable, "the disk reports an error"),
        (sqlite3.SQLITE_CORRUPT, StoreError, "is damaged"),
        (sqlite3.SQLITE_NOTADB, StoreError, "is not a database"),
        (sqlite3.SQLITE_CONSTRAINT, StoreError, "said"),
    ],
)
def test_what_sqlite_says(code: int, expected: type[StoreError], words: str) -> None:
    error = sqlite3.OperationalError("said")
    error.sqlite_errorcode = code
    found = FILE.translate(error)
    assert type(found) is expected
    assert words in str(found)


@pytest.mark.parametrize("place", [FILE, SERVER])
def test_a_pool_without_a_free_connection(place: Place) -> None:
    assert type(place.translate(exc.TimeoutError("QueuePool"))) is StoreUnavailable


def test_other_exceptions_pass_through(scene: Scene) -> None:
    with pytest.raises(KeyError), scene.store.write():
        raise KeyError("mine")


def _kill_everybody_else(url: str) -> None:
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    engine.dispose()


def test_a_lost_connection_is_got_over(fresh_postgres_url: Callable[[], str]) -> None:
    url = fresh_postgres_url()
    store = open_store(url)

    with store.write() as tx:
        tx.settings.put("a", 0)

    # While nothing goes on: nobody notices.
    _kill_everybody_else(url)
    with store.write() as tx:
        tx.settings.put("a", 1)

    # In the middle, by an ordinary statement and by the hot path's own cursor.
    with pytest.raises(StoreUnavailable, match="not available: "), store.write() as tx:
        tx.settings.put("a", 2)
        _kill_everybody_else(url)
        tx.settings.put("a", 3)
    with pytest.raises(StoreUnavailable), store.write() as tx:
        tx.settings.put("a", 4)
        _kill_everybody_else(url)
        tx.path.due(1, 1, T0, 5)

    # Just before the commit.
    with pytest.raises(StoreUnavailable), store.write() as tx:
        tx.settings.put("a", 5)
        _kill_everybody_else(url)

    with store.read() as tx:
        assert tx.settings.get("a") == 1
    with pytest.raises(StoreUnavailable), store.read() as tx:
        tx.settings.get("a")
        _kill_everybody_else(url)
        tx.settings.get("a")
    with store.write() as tx:
        tx.settings.put("a", 6)
        assert tx.settings.get("a") == 6
    store.close()


def test_a_failed_statement_spoils_only_its_own_transaction(scene: Scene) -> None:
    with pytest.raises(StoreError), scene.store.write() as tx:
        tx.settings.put("a", 1)
        tx.runs.add(campaign_id=999_999, at=T0)
    with scene.store.write() as tx:
        assert tx.settings.get("a") is None
        tx.settings.put("a", 2)
