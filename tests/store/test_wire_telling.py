"""What is only told: it goes with what is asked next, or with the COMMIT, and never by itself."""

from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from paceline.store.wire import Wire
from tests.store.wiring import end_session, pid_of, status, things, url, wire, writing

__all__ = ["url", "wire"]
pytestmark = pytest.mark.usefixtures("real_databases")

INSERT = "INSERT INTO things VALUES (%s, %s)"


@pytest.fixture
def flights(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every way there and back, as it is begun."""
    seen: list[str] = []
    sent, say = Wire._sent, Wire._say

    def sent_and_seen(wire: Wire, last: bytes | None = None) -> Any:
        seen.append(f"{len(wire._gathered)} statements{'' if last is None else ' and COMMIT'}")
        return sent(wire, last)

    def said_and_seen(wire: Wire, command: bytes) -> bytes | None:
        seen.append(command.decode())
        return say(wire, command)

    monkeypatch.setattr(Wire, "_sent", sent_and_seen)
    monkeypatch.setattr(Wire, "_say", said_and_seen)
    return seen


def test_it_goes_with_the_commit_in_one_flight(wire: Wire, flights: list[str]) -> None:
    with writing(wire):
        wire.tell(INSERT, (1, "a"))
        wire.tell(INSERT, (2, "b"))
        assert flights == []
    assert flights == ["2 statements and COMMIT"]
    assert status(wire) is TransactionStatus.IDLE
    assert things(wire) == [(1, "a"), (2, "b")]


def test_it_goes_ahead_of_what_is_asked_next(wire: Wire, flights: list[str]) -> None:
    with writing(wire):
        wire.tell(INSERT, (1, "a"))
        assert wire.ask("SELECT count(*) FROM things").fetchone() == (1,)
    assert flights == ["2 statements", "COMMIT"]


def test_it_goes_ahead_of_whoever_uses_the_connection_otherwise(wire: Wire) -> None:
    with writing(wire):
        wire.tell(INSERT, (1, "a"))
        wire.settle()
        assert wire.sql.exec_driver_sql("SELECT count(*) FROM things").scalar_one() == 1


def test_one_that_is_refused_undoes_all_and_nothing_behind_it_is_done(wire: Wire) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero), writing(wire):
        wire.tell(INSERT, (1, "a"))
        wire.tell("SELECT 1 / %s::int", (0,))
        wire.tell(INSERT, (2, "b"))
    wire.roll_back()
    assert status(wire) is TransactionStatus.IDLE
    assert things(wire) == []


def test_what_was_told_of_a_transaction_that_is_broken_off_is_forgotten(
    wire: Wire, flights: list[str]
) -> None:
    with pytest.raises(KeyError), writing(wire):
        wire.tell(INSERT, (1, "a"))
        raise KeyError
    assert flights == []
    assert things(wire) == []


def test_nothing_is_committed_of_a_transaction_that_has_failed(wire: Wire) -> None:
    with pytest.raises(psycopg.errors.InFailedSqlTransaction), writing(wire):
        with pytest.raises(psycopg.errors.DivisionByZero):
            wire.ask("SELECT 1 / %s::int", (0,))
        wire.tell(INSERT, (1, "a"))
    wire.roll_back()
    assert things(wire) == []


def test_a_flight_that_commits_is_never_begun_again(wire: Wire, url: str) -> None:
    pid = pid_of(wire)
    wire.begin(b"BEGIN")
    wire.tell(INSERT, (1, "a"))
    end_session(url, pid)
    with pytest.raises(psycopg.OperationalError):
        wire.commit()
    assert wire.lost


def test_much_is_told_and_answered_in_both_directions(wire: Wire) -> None:
    """More than either side can keep: neither waits for the other for ever."""
    with writing(wire):
        for number in range(300):
            wire.tell(INSERT, (number, "x" * 20_000))
            wire.tell("SELECT repeat('y', %s::int)", (20_000,))
    assert len(things(wire)) == 300
