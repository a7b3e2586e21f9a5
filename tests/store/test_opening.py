"""Opening a store: what works from any address, and the one clear line when it does not."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from paceline.core.errors import (
    InputError,
    SchemaMismatch,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from paceline.core.events import EventKind
from paceline.core.instants import MILLISECOND
from paceline.engine.ports import Tx
from paceline.store.database import open_store
from tests.store.scene import T0, Ticker

pytestmark = pytest.mark.usefixtures("real_databases")

OPENER = """
import sys
from paceline.store.database import open_store
store = open_store(sys.argv[1], clock=lambda: 5)
with store.write() as tx:
    tx.events.add("sending.resumed", "hello", at=1)
store.close()
"""

IN_MEMORY = 2
"""How SQLite says that what it needs for a moment is kept in memory."""


def test_a_plain_path_is_a_file(tmp_path: Path) -> None:
    for address in (str(tmp_path / "a.db"), f"sqlite:///{tmp_path / 'b.db'}"):
        store = open_store(address, clock=Ticker())
        with store.read() as tx:
            assert tx.now == T0
        store.close()
    assert {path.name for path in tmp_path.iterdir()} == {"a.db", "b.db"}


def test_every_form_of_a_postgresql_address(fresh_postgres_url: Callable[[], str]) -> None:
    url = make_url(fresh_postgres_url())
    for driver in ("postgresql", "postgres", "postgresql+psycopg"):
        address = url.set(drivername=driver).render_as_string(hide_password=False)
        store = open_store(address)
        with store.read() as tx:
            assert tx.now > T0 - T0 // 2
        store.close()


@pytest.mark.parametrize(
    "address", ["mysql://h/d", "sqlite://", ":memory:", "", "postgresql://h:port/d"]
)
def test_addresses_that_mean_nothing(address: str) -> None:
    with pytest.raises(InputError, match="postgresql://user@host/database"):
        open_store(address, clock=Ticker())


def test_a_file_needs_a_clock(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="clock"):
        open_store(str(tmp_path / "a.db"))


def _refused(address: str, error: type[StoreError], **options: object) -> str:
    with pytest.raises(error) as raised:
        open_store(address, clock=Ticker(), **options)  # type: ignore[arg-type]
    assert type(raised.value) is error
    said = str(raised.value)
    assert "\n" not in said
    assert "Traceback" not in said
    assert "sqlalche" not in said
    return said


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is not a database, it only looks like one " * 50)
    said = _refused(str(tmp_path / "text.db"), StoreError)
    assert said == f"{tmp_path}/text.db is not a database"
    said = _refused(str(tmp_path / "missing" / "a.db"), StoreError)
    assert said.endswith(f"the folder {tmp_path}/missing does not exist")
    assert "is a folder" in _refused(str(tmp_path), StoreError)
    missing = tmp_path / "no.db"
    assert _refused(str(missing), StoreError, create=False) == f"{missing} does not exist"
    assert not missing.exists()


def test_a_file_that_was_never_prepared_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (id integer)")
    connection.close()
    before = path.read_bytes()
    assert "never prepared" in _refused(str(path), SchemaMismatch, create=False)
    assert path.read_bytes() == before


def test_a_locked_file_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    said = _refused(str(path), StoreBusy, busy_timeout_us=20 * MILLISECOND)
    assert said == f"{path} is locked by another process; try again later"
    holder.execute("ROLLBACK")
    store = open_store(str(path), clock=Ticker(), busy_timeout_us=20 * MILLISECOND)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy), store.write():
        pass
    with store.read() as tx:  # reading goes on
        assert tx.accounts.list() == []
    holder.execute("ROLLBACK")
    with store.write() as tx:  # and so does writing, once the lock is gone
        tx.settings.put("a", 1)
    holder.close()
    store.close()


def test_a_server_that_is_not_there(postgres_url: str) -> None:
    url = make_url(postgres_url).set(port=1, password="secret-word")
    said = _refused(url.render_as_string(hide_password=False), StoreUnavailable)
    assert said.startswith("PostgreSQL at 127.0.0.1:1/postgres cannot be reached: ")
    assert "refused" in said
    assert "secret" not in said


def test_a_server_that_refuses_us(postgres_url: str) -> None:
    url = make_url(postgres_url)
    wrong = url.set(password="secret-word").render_as_string(hide_password=False)
    said = _refused(wrong, StoreError)
    assert "refuses the login: password authentication failed" in said
    assert "secret" not in said
    missing = url.set(database="nowhere").render_as_string(hide_password=False)
    assert 'database "nowhere" does not exist' in _refused(missing, StoreError)


def test_many_processes_may_open_a_fresh_database_at_once(fresh_url: Callable[[], str]) -> None:
    url = fresh_url()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, url], stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0] * 3, ended
    store = open_store(url, clock=Ticker())
    with store.read() as tx:
        assert len(tx.events.latest()) == 3
    store.close()


def test_many_threads_may_open_a_fresh_database_at_once(fresh_url: Callable[[], str]) -> None:
    url = fresh_url()
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: open_store(url, clock=Ticker()), range(6)))
    for store in stores:
        store.close()


def test_the_file_is_durable_and_strict(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a.db"), clock=Ticker())
    with store.write() as tx:
        cursor = tx._context.cursor()  # type: ignore[attr-defined]
        pragmas = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }
    with pytest.raises(StoreError, match="cannot be written to"), store.read() as tx:
        tx.settings.put("a", 1)
    store.close()


def test_only_what_does_not_wait_keeps_in_memory_what_it_may_have_to_undo(tmp_path: Path) -> None:
    """A statement over a whole campaign would keep all of its pages there."""
    store = open_store(str(tmp_path / "a.db"), clock=Ticker())
    found = []
    for at_once in (False, True, True, False, True):
        with store.write(at_once=at_once) as tx:
            cursor = tx._context.cursor()  # type: ignore[attr-defined]
            found.append(cursor.execute("PRAGMA temp_store").fetchone()[0] == IN_MEMORY)
    assert found == [False, True, True, False, True]
    store.close()


def test_the_server_promises_durability(fresh_postgres_url: Callable[[], str]) -> None:
    store = open_store(fresh_postgres_url())
    with store.write() as tx:
        cursor = tx._context.cursor()  # type: ignore[attr-defined]
        assert cursor.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert cursor.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    with pytest.raises(StoreError, match="read-only"), store.read() as tx:
        tx.settings.put("a", 1)
    store.close()


def test_a_read_is_consistent(fresh_url: Callable[[], str]) -> None:
    store = open_store(fresh_url(), clock=Ticker())
    with store.read() as tx:
        assert tx.settings.get("a") is None
        with store.write() as other:
            other.settings.put("a", 1)
        assert tx.settings.get("a") is None
    with store.read() as tx:
        assert tx.settings.get("a") == 1
    store.close()


def test_a_second_writer_in_the_same_process_waits_its_turn(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a.db"), clock=Ticker(), busy_timeout_us=20 * MILLISECOND)
    with store.write(), pytest.raises(StoreBusy, match="another transaction"), store.write():
        pass
    with ThreadPoolExecutor(4) as pool:
        patient = open_store(str(tmp_path / "a.db"), clock=Ticker())

        def add(n: int) -> None:
            with patient.write() as tx:
                tx.events.add(EventKind.SENDING_RESUMED, str(n), at=n)

        list(pool.map(add, range(40)))
        with patient.read() as tx:
            assert len(tx.events.latest(limit=100)) == 40
        patient.close()
    store.close()


def test_a_server_that_falls_silent_is_not_waited_for(
    fresh_postgres_url: Callable[[], str],
) -> None:
    store = open_store(fresh_postgres_url())
    with store.write() as tx:
        connection: Any = _connection_of(tx)
        wire = connection.connection.driver_connection.info.get_parameters()
        assert [wire.get(f"keepalives{name}") for name in ("_idle", "_interval", "_count")] == [
            "10",
            "5",
            "3",
        ]
        assert wire.get("tcp_user_timeout") == "20000"

        def shown(name: str) -> object:
            return connection.exec_driver_sql(f"SHOW {name}").scalar_one()

        assert shown("statement_timeout") == "30s"
        assert shown("lock_timeout") == "5s"
        assert shown("idle_in_transaction_session_timeout") == "1min"
        # What goes over a whole campaign takes as long as it takes.
        tx.deliveries.move_all(1, "cancel", at=T0)
        assert shown("statement_timeout") == "0"
    works: list[Callable[[Tx], object]] = [
        lambda tx: tx.deliveries.add([], T0),
        lambda tx: tx.deliveries.release(1, T0, T0),
        lambda tx: tx.audit.recount(),
    ]
    for work in works:
        with store.write() as tx:
            connection = _connection_of(tx)
            assert shown("statement_timeout") == "30s"
            work(tx)
            assert shown("statement_timeout") == "0"
    store.close()


def _connection_of(tx: Tx) -> Any:
    subject: Any = tx.settings
    return subject._connection
