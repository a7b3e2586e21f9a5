"""The store on both databases: every test that asks for ``scene`` runs once on each."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlalchemy import make_url

from paceline.engine.ports import Store
from paceline.store import path_sqlite
from paceline.store.database import open_store
from tests import postgres, prepared
from tests.store.scene import Scene, Ticker

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def shared_postgres(postgres_url: str) -> Iterator[tuple[str, Store]]:
    """One prepared database for all tests that leave the connection alone."""
    with postgres.fresh_database(postgres_url) as url:
        store = open_store(url)
        yield url, store
        store.close()


@pytest.fixture(scope="session")
def broom(shared_postgres: tuple[str, Store]) -> Iterator[psycopg.Connection]:
    """A connection of its own for forgetting everything between two tests."""
    url, _ = shared_postgres
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        yield connection


@pytest.fixture
def postgres_scene(
    shared_postgres: tuple[str, Store], broom: psycopg.Connection
) -> Iterator[Scene]:
    url, store = shared_postgres
    scene = Scene(store, url, "postgresql", Ticker())
    yield scene
    scene.close()
    broom.execute(prepared.SWEEP)


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


@pytest.fixture(params=(*KINDS, "trusting", "one by one"))
def path_scene(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The same for the message path, which takes units on trust where that is worth it, and asks
    about all of them together on SQLite unless they are made to be asked one by one."""
    kind = "sqlite_scene" if request.param in ("sqlite", "one by one") else "postgres_scene"
    found: Scene = request.getfixturevalue(kind)
    found.trusting = request.param == "trusting"
    if request.param == "one by one":
        monkeypatch.setattr(path_sqlite, "believed", lambda _: None)
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
