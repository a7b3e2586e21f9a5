"""A wire of its own to a fresh database, with a table of things."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from paceline.store.postgresql import WRITING
from paceline.store.wire import Wire

PID = "SELECT pg_backend_pid()"


@pytest.fixture
def url(fresh_postgres_url: Callable[[], str]) -> str:
    return fresh_postgres_url()


@contextmanager
def wired(url: str) -> Iterator[Wire]:
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    one = Wire(engine.connect)
    try:
        yield one
    finally:
        one.drop()
        engine.dispose()


@pytest.fixture
def wire(url: str) -> Iterator[Wire]:
    with wired(url) as one:
        one.begin(WRITING)
        one.ask("CREATE TABLE things (id bigint PRIMARY KEY, name text)")
        one.commit()
        yield one


@contextmanager
def writing(wire: Wire) -> Iterator[Wire]:
    wire.begin(WRITING)
    try:
        yield wire
    except BaseException:
        wire.roll_back()
        raise
    wire.commit()


def things(wire: Wire) -> list[tuple[Any, ...]]:
    with writing(wire):
        return wire.ask("SELECT id, name FROM things ORDER BY id").fetchall()


def status(wire: Wire) -> TransactionStatus:
    driver: Any = wire.sql.connection.driver_connection
    return TransactionStatus(driver.pgconn.transaction_status)


def end_session(url: str, pid: int) -> None:
    """And wait until it is gone."""
    plain = url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


def pid_of(wire: Wire) -> int:
    with writing(wire):
        (pid,) = wire.ask(PID).fetchone() or ()
    return int(pid)
