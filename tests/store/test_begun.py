"""Transactions on PostgreSQL begin on the way of their first statement, and are whole anyway."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from paceline.core.errors import StoreUnavailable
from paceline.store import postgresql
from paceline.store.postgresql import PostgresqlStore
from tests.store.scene import Scene

IDLE = psycopg.pq.TransactionStatus.IDLE


@pytest.fixture
def store(postgres_scene: Scene) -> PostgresqlStore:
    """One whose server was there a moment ago."""
    found = postgres_scene.store
    assert isinstance(found, PostgresqlStore)
    with found.read() as tx:
        tx.settings.get("instance")
    return found


def status(context: Any) -> Any:
    return context._raw.connection.driver_connection.info.transaction_status


def begun(tx: Any) -> bool:
    return bool(tx._context.begun)


def value(store: PostgresqlStore, key: str) -> Any:
    with store.read() as tx:
        return tx.settings.get(key)


def test_nothing_is_begun_before_the_first_statement(store: PostgresqlStore) -> None:
    with store.write() as tx:
        assert not begun(tx)
        assert status(tx._context) == IDLE
        tx.settings.put("mine", 1)
        assert begun(tx)
        assert status(tx._context) != IDLE
        with store.read() as other:
            assert other.settings.get("mine") is None, "nobody sees it before it is committed"
    assert value(store, "mine") == 1


@pytest.mark.parametrize("together", [False, True], ids=["by itself", "together"])
def test_what_is_broken_off_is_undone(store: PostgresqlStore, together: bool) -> None:
    class BrokenOff(Exception):
        pass

    with pytest.raises(BrokenOff), store.write() as tx:
        if together:
            with tx._context.pipelined():
                tx._context.cursor().execute("INSERT INTO settings VALUES ('mine', '1')")
                tx._context.cursor().execute("INSERT INTO settings VALUES ('yours', '1')")
        else:
            tx.settings.put("mine", 1)
        raise BrokenOff
    assert value(store, "mine") is None
    assert value(store, "yours") is None


def test_one_bad_statement_of_several_undoes_all(store: PostgresqlStore) -> None:
    with pytest.raises(Exception, match="nobody"), store.write() as tx, tx._context.pipelined():
        tx._context.cursor().execute("INSERT INTO settings VALUES ('mine', '1')")
        tx._context.cursor().execute("SELECT nobody")
    assert value(store, "mine") is None


def test_a_read_that_began_with_its_first_statement_sees_one_moment(store: PostgresqlStore) -> None:
    with store.read() as tx:
        assert tx.settings.get("mine") is None
        with store.write() as other:
            other.settings.put("mine", 1)
        assert tx.settings.get("mine") is None
    assert value(store, "mine") == 1


def test_a_transaction_that_does_nothing_is_none(store: PostgresqlStore) -> None:
    with store.write() as tx:
        context = tx._context
    assert status(context) == IDLE


def test_a_server_that_was_away_for_a_moment_fails_one_and_no_more(
    store: PostgresqlStore, broom: psycopg.Connection
) -> None:
    with store.read() as one, store.read() as two, store.read() as three:
        for tx in (one, two, three):
            tx.settings.get("instance")
    assert len(store._idle) >= 3
    broom.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with pytest.raises(StoreUnavailable), store.write() as tx:
        tx.settings.put("mine", 1)
    with store.write() as tx:
        tx.settings.put("mine", 2)
    assert value(store, "mine") == 2


def test_one_that_was_not_asked_for_long_is_asked_first(
    store: PostgresqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "FRESH_US", 0)
    with store.write() as tx:
        assert begun(tx)
        assert tx._context.connection.execute(text("SELECT 1")).scalar_one() == 1
