"""A connection to PostgreSQL without cursors: what is asked together, and what fails.

Against a real server throughout.
"""

import threading
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from paceline.store.wire import Wire
from tests.store.wiring import PID, end_session, status, things, url, wire, writing

__all__ = ["url", "wire"]
pytestmark = pytest.mark.usefixtures("real_databases")

WAITS_HERE = """
SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE datname = current_database() AND locktype = 'advisory' AND objid = 7 AND NOT granted
"""


# ---------------------------------------------------------------------- what is asked


def test_values_of_every_kind_come_back_as_they_were(wire: Wire) -> None:
    given = (1 << 40, -3, "üñí 'x' \\ %", None, 2.5, True)
    with writing(wire):
        asked = wire.ask(
            "SELECT %s::bigint, %s::int, %s::text, %s::text, %s::float8, %s::bool", given
        )
        assert asked.fetchone() == given
        assert asked.fetchone() is None


def test_a_name_that_is_used_twice_is_one_value(wire: Wire) -> None:
    with writing(wire):
        asked = wire.ask(
            "SELECT %(a)s::text, %(b)s::bigint, %(a)s::text, '100%%'", {"b": 2, "a": "x", "c": 3}
        )
        assert list(asked) == [("x", 2, "x", "100%")]


def test_rows_can_be_fetched_one_by_one_and_the_rest_at_once(wire: Wire) -> None:
    with writing(wire):
        asked = wire.ask("SELECT * FROM generate_series(1, 4)")
        assert asked.rowcount == 4
        assert (asked.fetchone(), asked.fetchone()) == ((1,), (2,))
        assert asked.fetchall() == [(3,), (4,)]
        assert asked.fetchall() == []


def test_it_is_told_how_many_rows_were_changed(wire: Wire) -> None:
    with writing(wire):
        assert wire.ask("INSERT INTO things SELECT generate_series(1, 3)").rowcount == 3
        assert wire.ask("UPDATE things SET name = 'x' WHERE id > %s", (1,)).rowcount == 2
        assert wire.ask("DELETE FROM things WHERE id > %s", (10,)).rowcount == 0


@pytest.mark.parametrize("value", [b"bytes", [1, 2], object()])
def test_what_it_cannot_write_is_refused_before_anything_is_sent(wire: Wire, value: Any) -> None:
    with pytest.raises(TypeError), writing(wire):
        wire.ask("SELECT %s", (value,))
    assert status(wire) == TransactionStatus.IDLE


def test_a_text_is_never_cut_short(wire: Wire) -> None:
    """libpq would take what is before the NUL for all of it."""
    with pytest.raises(psycopg.DataError, match="NUL"), writing(wire):
        wire.ask("INSERT INTO things VALUES (1, %s)", ("a\0b",))
    assert status(wire) == TransactionStatus.IDLE


# ---------------------------------------------------------------------- together


def test_what_is_asked_together_is_answered_in_its_order(wire: Wire) -> None:
    with writing(wire), wire.together():
        first = wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        again = wire.ask("INSERT INTO things VALUES (%s, %s)", (2, "b"))
        seen = wire.ask("SELECT count(*) FROM things")
    assert (first.rowcount, again.rowcount, seen.fetchall()) == (1, 1, [(2,)])


def test_each_sees_what_others_committed_before_it_began(wire: Wire, url: str) -> None:
    """Under READ COMMITTED every statement has its own snapshot, also of those sent together: what
    waits for a lock is sent with what relies on it."""
    plain = url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(plain) as other:
        other.execute("CREATE TABLE shared (n int)")
        other.execute("INSERT INTO shared VALUES (1)")
        other.commit()
        other.execute("SELECT pg_advisory_xact_lock(7)")
        other.execute("UPDATE shared SET n = 2")
        seen: list[Any] = []

        def ask() -> None:
            with writing(wire), wire.together():
                wire.ask("SELECT pg_advisory_xact_lock(7)")
                told = wire.ask("SELECT n FROM shared")
            seen.extend(told.fetchall())

        thread = threading.Thread(target=ask)
        thread.start()
        with psycopg.connect(plain, autocommit=True) as watcher:
            while thread.is_alive() and not watcher.execute(WAITS_HERE).fetchone():
                pass
        assert thread.is_alive(), "it did not wait for the lock"
        other.commit()
        thread.join(10)
    assert seen == [(2,)]


def test_an_answer_that_is_wanted_inside_is_waited_for(wire: Wire) -> None:
    with writing(wire):
        with wire.together():
            first = wire.ask("SELECT 1")
            assert first.fetchone() == (1,)
            second = wire.ask("SELECT 2")
        assert second.fetchone() == (2,)


def test_a_server_can_begin_while_more_is_asked(wire: Wire) -> None:
    with writing(wire):
        with wire.together():
            first = wire.ask("SELECT 1")
            wire.send()
            second = wire.ask("SELECT 2")
            wire.send()
            third = wire.ask("SELECT 3")
        assert [one.fetchone() for one in (first, second, third)] == [(1,), (2,), (3,)]


def test_much_at_once_in_both_directions(wire: Wire) -> None:
    """More than fits between the two: whoever only sends would wait for ever."""
    text = "x" * 1_000_000
    with writing(wire):
        with wire.together():
            every = [wire.ask("SELECT %s::text", (text,)) for _ in range(12)]
        assert all(one.fetchone() == (text,) for one in every)


# ---------------------------------------------------------------------- what fails


def test_one_that_is_refused_takes_all_of_them_back(wire: Wire) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation), writing(wire), wire.together():
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "b"))
        wire.ask("INSERT INTO things VALUES (%s, %s)", (2, "c"))
    assert things(wire) == [], "and the connection serves on"


def test_whoever_goes_on_after_a_refusal_is_not_told_that_it_is_committed(wire: Wire) -> None:
    """The server answers such a COMMIT with a ROLLBACK, and calls that a success."""
    with pytest.raises(psycopg.errors.InFailedSqlTransaction), writing(wire):
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        with pytest.raises(psycopg.errors.DivisionByZero):
            wire.ask("SELECT 1 / %s::int", (0,))
    assert things(wire) == []


def test_what_could_not_be_prepared_is_prepared_again(wire: Wire) -> None:
    """The server looked at nothing behind what it refused, and so does not know it."""
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero), writing(wire), wire.together():
            wire.ask("SELECT 1 / %s::int", (0,))
            wire.ask("SELECT 'behind it'")
    with writing(wire):
        assert wire.ask("SELECT 'behind it'").fetchone() == ("behind it",)


def test_what_is_broken_off_is_not_sent(wire: Wire) -> None:
    with pytest.raises(KeyError), writing(wire), wire.together():
        wire.ask("INSERT INTO things VALUES (%s, %s)", (1, "a"))
        raise KeyError
    assert things(wire) == []


def test_what_is_broken_off_on_its_way_costs_the_connection(wire: Wire) -> None:
    with pytest.raises(KeyError), writing(wire), wire.together():
        wire.ask("SELECT 1")
        wire.send()
        raise KeyError
    assert wire.lost, "what is still to come would be taken for another's answer"


def test_a_server_that_ends_the_session_says_why(wire: Wire) -> None:
    with pytest.raises(psycopg.errors.AdminShutdown), writing(wire), wire.together():
        wire.ask("SELECT 'before it'")
        wire.ask("SELECT pg_terminate_backend(pg_backend_pid())")
        wire.ask("SELECT 'behind it'")
    assert wire.lost


def test_a_session_that_is_gone_is_noticed_in_its_transaction(wire: Wire, url: str) -> None:
    with pytest.raises(psycopg.OperationalError), writing(wire):
        (pid,) = wire.ask(PID).fetchone() or ()
        end_session(url, pid)
        wire.ask(PID)
    assert wire.lost
