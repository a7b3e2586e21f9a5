"""The store of simulated worlds: the same tables and the same promises as a file, in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from paceline.core.errors import StoreError
from paceline.store.database import open_store
from paceline.store.sqlite_in_memory import InMemoryStore
from tests.store.scene import T0


@pytest.fixture
def store() -> Iterator[InMemoryStore]:
    opened = InMemoryStore(lambda: T0)
    yield opened
    opened.close()


def kept(store: InMemoryStore) -> object:
    with store.read() as tx:
        return tx.settings.get("word")


def test_it_has_the_tables_of_a_file(store: InMemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    open_store(str(path), clock=lambda: T0).close()
    listing = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    with sqlite3.connect(path) as file:
        there = file.execute(listing).fetchall()
    file.close()
    assert store._driver.execute(listing).fetchall() == there
    assert store._driver.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_what_is_written_is_there_and_what_fails_is_not(store: InMemoryStore) -> None:
    with store.write() as tx:
        assert tx.now == T0
        tx.settings.put("word", "kept")
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        tx.settings.put("word", "lost")
        raise ZeroDivisionError
    assert kept(store) == "kept"


def test_every_world_has_its_own(store: InMemoryStore) -> None:
    with store.write() as tx:
        tx.settings.put("word", "of the first")
    other = InMemoryStore(lambda: T0)
    assert kept(other) is None
    other.close()
    assert kept(store) == "of the first"


def test_there_is_one_transaction_at_a_time(store: InMemoryStore) -> None:
    with store.write() as tx:
        tx.settings.put("word", "of the outer")
        with pytest.raises(StoreError), store.write():
            pass
    assert kept(store) == "of the outer"


def test_what_the_database_refuses_is_told_as_by_any_store(store: InMemoryStore) -> None:
    with pytest.raises(StoreError), store.write() as tx:
        tx._context.connection.execute(text("INSERT INTO settings (key) VALUES (NULL)"))
    with pytest.raises(StoreError), store.read() as tx:
        tx._context.connection.execute(text("SELECT * FROM nowhere"))
    # What is only checked at the end of a transaction undoes all of it, and the next one may begin.
    with pytest.raises(StoreError), store.write() as tx:
        tx._context.connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        orphan = "INSERT INTO lanes (account_id, generation, revision) VALUES (99, 0, 0)"
        tx._context.connection.execute(text(orphan))
    with store.write() as tx:
        tx.settings.put("word", "after")
    assert kept(store) == "after"
