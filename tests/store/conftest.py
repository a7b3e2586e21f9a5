"""The store on both databases: every test that asks for ``scene`` runs once on each."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import create_engine, text

from paceline.engine.ports import Store
from paceline.store.database import open_store
from paceline.store.schema import METADATA
from tests import postgres
from tests.store.scene import Scene, Ticker

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def shared_postgres(postgres_url: str) -> Iterator[tuple[str, Store]]:
    """One prepared database for all tests that leave the connection alone."""
    with postgres.fresh_database(postgres_url) as url:
        store = open_store(url)
        yield url, store
        store.close()


@pytest.fixture
def postgres_scene(shared_postgres: tuple[str, Store]) -> Iterator[Scene]:
    url, store = shared_postgres
    scene = Scene(store, url, "postgresql", Ticker())
    yield scene
    scene.close()
    empty(url)


@pytest.fixture
def sqlite_scene(fresh_sqlite_url: Callable[[], str]) -> Iterator[Scene]:
    url, clock = fresh_sqlite_url(), Ticker()
    store = open_store(url, clock=clock)
    scene = Scene(store, url, "sqlite", clock)
    yield scene
    scene.close()
    store.close()


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest) -> Scene:
    found: Scene = request.getfixturevalue(
        "sqlite_scene" if request.param == "sqlite" else "postgres_scene"
    )
    return found


@pytest.fixture(params=KINDS)
def fresh_url(request: pytest.FixtureRequest) -> Callable[[], str]:
    """A function that names a new, empty database of either kind."""
    fixture = "fresh_sqlite_url" if request.param == "sqlite" else "fresh_postgres_url"
    made: Callable[[], str] = request.getfixturevalue(fixture)
    return made


@pytest.fixture
def fresh_scene(fresh_url: Callable[[], str]) -> Iterator[Scene]:
    """A scene in a database of its own, for tests that damage it."""
    url, clock = fresh_url(), Ticker()
    store = open_store(url, clock=clock)
    kind = "sqlite" if url.startswith("sqlite") else "postgresql"
    scene = Scene(store, url, kind, clock)
    yield scene
    scene.close()
    store.close()


def empty(url: str) -> None:
    """Forget everything; quicker than another database, because these tables are small."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(table.delete())
        connection.execute(
            text("INSERT INTO settings (key, value) VALUES ('control', :value)"),
            {"value": '{"stopped": null}'},
        )
    engine.dispose()
