"""The databases handed to the tests are real, empty and each other's strangers."""

from collections.abc import Callable

import pytest
from sqlalchemy import create_engine, inspect, text

from tests import postgres


@pytest.mark.parametrize("fixture", ["fresh_postgres_url", "fresh_sqlite_url"])
def test_every_call_gives_another_empty_database(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    fresh_url: Callable[[], str] = request.getfixturevalue(fixture)
    first, second = create_engine(fresh_url()), create_engine(fresh_url())
    with first.begin() as connection:
        connection.execute(text("CREATE TABLE only_here (id integer)"))
    assert inspect(first).get_table_names() == ["only_here"]
    assert inspect(second).get_table_names() == []
    first.dispose()
    second.dispose()


def test_databases_are_dropped_even_while_somebody_is_connected(postgres_url: str) -> None:
    with postgres.fresh_database(postgres_url) as url:
        engine = create_engine(url)
        left_open = engine.connect()
    with postgres.fresh_database(postgres_url) as other:
        names = create_engine(other)
        with names.connect() as connection:
            found = connection.execute(text("SELECT datname FROM pg_database")).scalars().all()
        names.dispose()
    assert not any(url.endswith(f"/{name}") for name in found)
    left_open.invalidate()
    left_open.close()
    engine.dispose()


def test_the_server_keeps_its_promises(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
    engine.dispose()


def test_whoever_measures_has_a_server_that_waits_for_the_disk() -> None:
    with postgres.running_server(durable=True) as url:
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
            assert connection.execute(text("SHOW fsync")).scalar_one() == "on"
        engine.dispose()


def test_without_any_postgres_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(postgres.URL_VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "installed_programs", list)
    monkeypatch.setattr(postgres, "packaged_programs", list)
    with (
        pytest.raises(postgres.NoPostgres, match=postgres.URL_VARIABLE),
        postgres.running_server(),
    ):
        pass
