"""Transactions over a wire: begun with the first question, begun again if nobody heard it."""

import time
from typing import Any

import psycopg
import pytest

from paceline.store.asked import Asked, spelled
from paceline.store.database import open_store
from paceline.store.postgresql import READING, WRITING, PostgresqlStore
from paceline.store.wire import Wire
from tests.store.wiring import PID, end_session, pid_of, things, url, wire, writing

__all__ = ["url", "wire"]
pytestmark = pytest.mark.usefixtures("real_databases")

BUSY = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"


def statements(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is said one by one: each is a way there and back."""
    said: list[bytes] = []
    real = Wire._say

    def say(self: Wire, command: bytes) -> bytes | None:
        said.append(command)
        return real(self, command)

    monkeypatch.setattr(Wire, "_say", say)
    return said


# ---------------------------------------------------------------------- transactions


def test_a_transaction_is_begun_along_with_its_first_question(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = statements(monkeypatch)
    with writing(wire):
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        wire.ask("SELECT 1")
    assert said == [b"COMMIT"]
    assert things(wire) == [(1, "a")]


def test_one_in_which_nothing_was_asked_takes_no_way_at_all(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = statements(monkeypatch)
    with writing(wire):
        pass
    with pytest.raises(KeyError), writing(wire):
        raise KeyError
    assert said == []


def test_whoever_uses_the_connection_otherwise_is_in_the_transaction(wire: Wire) -> None:
    with pytest.raises(KeyError), writing(wire):
        wire.settle()
        wire.sql.exec_driver_sql("INSERT INTO things VALUES (1, 'a')")
        wire.ask("INSERT INTO things VALUES (%s, %s)", (2, "b"))
        raise KeyError
    assert things(wire) == []


def test_whoever_uses_it_otherwise_comes_after_what_was_asked_before(wire: Wire) -> None:
    with writing(wire), wire.together():
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        wire.settle()
        seen = wire.sql.exec_driver_sql("SELECT name FROM things").all()
    assert seen == [("a",)]


def test_a_reading_one_is_read_only_from_its_first_question(wire: Wire) -> None:
    wire.begin(READING)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        wire.ask("CREATE TABLE other (n int)")
    wire.roll_back()


def test_a_connection_that_died_in_its_sleep_is_not_begun_with(wire: Wire, url: str) -> None:
    before = pid_of(wire)
    end_session(url, before)
    assert pid_of(wire) != before


@pytest.mark.parametrize("settled", [False, True])
def test_one_that_dies_before_anything_was_answered_is_replaced(
    wire: Wire, url: str, settled: bool
) -> None:
    """Nothing was committed, so it can all be asked again."""
    before = pid_of(wire)
    wire.begin(WRITING)
    end_session(url, before)
    if settled:
        wire.settle()
    with wire.together():
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        wire.send()
        after = wire.ask(PID)
    assert after.fetchone() != (before,)
    wire.commit()
    assert things(wire) == [(1, "a")]


def test_one_that_dies_on_the_way_of_the_first_question_is_replaced(wire: Wire, url: str) -> None:
    """The server takes it in, and then ends the session."""
    before = pid_of(wire)
    with writing(wire):
        ends = "SELECT CASE WHEN pg_backend_pid() = %s THEN pg_terminate_backend(%s::int) END"
        asked = wire.ask(ends, (before, before))
        assert asked.fetchone() == (None,)
    assert pid_of(wire) != before


def test_after_the_first_answer_nobody_can_begin_anew(wire: Wire, url: str) -> None:
    before = pid_of(wire)
    with pytest.raises(psycopg.OperationalError), writing(wire):
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        end_session(url, before)
        wire.ask("INSERT INTO things VALUES (%s, %s)", (2, "b"))
    assert wire.lost


def test_one_that_cannot_even_be_written_to_is_replaced(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = pid_of(wire), Wire._push

    def fail_once(self: Wire) -> None:
        monkeypatch.setattr(Wire, "_push", real)
        raise psycopg.OperationalError("broken pipe")

    monkeypatch.setattr(Wire, "_push", fail_once)
    assert pid_of(wire) != before


def test_a_server_that_cannot_be_reached_again_says_so(wire: Wire, url: str) -> None:
    def refuse() -> Any:
        raise psycopg.OperationalError("connection refused")

    end_session(url, pid_of(wire))
    wire._connect = refuse
    with pytest.raises(psycopg.OperationalError, match="connection refused"):
        wire.begin(WRITING)


def test_what_fails_while_it_is_answered_costs_the_connection(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError

    with pytest.raises(ValueError), writing(wire):
        monkeypatch.setattr(Asked, "answer", fail)
        wire.ask("SELECT 1")
    assert wire.lost, "what is still to come would be taken for another's answer"


def test_whoever_is_interrupted_leaves_no_statement_behind(
    wire: Wire, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = pid_of(wire)
    plain = url.replace("postgresql+psycopg", "postgresql")
    monkeypatch.setattr(Wire, "_next", lambda _: _interrupted(plain, pid))
    with pytest.raises(KeyboardInterrupt), writing(wire):
        wire.ask("SELECT pg_sleep(%s)", (600,))
    with psycopg.connect(plain, autocommit=True) as other:
        until_s = time.monotonic() + 30
        while other.execute(BUSY, (pid,)).fetchone() and time.monotonic() < until_s:
            pass
        assert other.execute(BUSY, (pid,)).fetchone() is None


def _interrupted(plain: str, pid: int) -> Any:
    """Once the server is at it."""
    with psycopg.connect(plain, autocommit=True) as other:
        while not other.execute(BUSY, (pid,)).fetchone():
            pass
    raise KeyboardInterrupt


def test_texts_are_what_they_are_whatever_the_connection_would_rather_speak(url: str) -> None:
    store = open_store(f"{url}?client_encoding=latin1")
    with store.write() as tx:
        tx.settings.put("clé", "ü")
    with store.read() as tx:
        assert tx.settings.get("clé") == "ü"
    store.close()


def test_a_failed_transaction_leaves_no_connection_behind(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, PostgresqlStore)
    with store.write() as tx:
        tx.settings.put("a", 1)
    assert len(store._idle) == 1
    with pytest.raises(KeyError), store.write() as tx:
        tx.settings.put("a", 2)
        raise KeyError
    assert store._idle == []
    store.close()


def test_few_statements_are_kept_however_much_is_looked_for(url: str) -> None:
    """A server keeps every one of them."""
    store = open_store(url)
    known = spelled.cache_info().currsize
    with store.read() as tx:
        for limit in range(1, 2_000, 7):
            assert tx.path.pooled(1, 1, limit) == []
    assert spelled.cache_info().currsize - known <= 11
    store.close()


def test_a_notice_that_came_in_its_sleep_is_no_death(wire: Wire, url: str) -> None:
    with writing(wire):
        wire.ask("LISTEN something")
    plain = url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute("NOTIFY something")
    wire._readable.poll(10_000)
    with writing(wire):
        assert wire.ask("SELECT 1").fetchone() == (1,)
