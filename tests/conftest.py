"""What every test may ask for: databases of both kinds, and how hypothesis behaves.

Fixtures that only one part of the system needs live in that part's own conftest.
"""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, count, groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sqlalchemy import create_engine

from paceline.interpreter import GC_THRESHOLDS
from paceline.store import migrate, postgresql, sqlite
from paceline.store.database import open_store
from tests import postgres, prepared

# Examples may take as long as they need, because a busy host is not a defect. In continuous
# integration they are always the same ones, so that a change is only ever failed by itself.
settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Garbage is looked for as often as in the service.
gc.set_threshold(*GC_THRESHOLDS)

WAITING, WORKING = "processes", "sim"
"""Where the longest tests are. At the end of a run they would be waited for by idle cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first. Those with real processes wait more than they work, so every other file is
    one that only works; of these the last by their names take longest, and the first hardly any
    time."""
    files: dict[str, list[list[pytest.Item]]] = {WAITING: [], WORKING: [], "": []}
    for path, some in groupby(items, key=attrgetter("path")):
        folder = path.parent.name
        files[folder if folder in files else ""].append(list(some))
    none: list[pytest.Item] = []
    longest = zip_longest(files[WAITING], reversed(files[WORKING]), fillvalue=none)
    items[:] = chain(*chain(*longest), *files[""])


def pytest_collection_finish() -> None:
    """What was collected stays to the end, so nobody looks for garbage in it."""
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores, for whenever some of them wait."""
    return (os.cpu_count() or 1) + 2


@pytest.fixture(scope="session", autouse=True)
def hasty_databases() -> Iterator[None]:
    """Only the first database of a kind is prepared step by step; statements are compiled once for
    all of them; and none of those that tests open themselves waits for the disk, for no machine
    loses its power here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "upgrade", prepared.prepare)
        patch.setattr(sqlite, "_make_private", prepared.make)
        patch.setattr(sqlite, "create_engine", prepared.create_engine)
        patch.setattr(postgresql, "create_engine", prepared.create_engine)
        patch.setitem(_defaults(), "durable", False)
        yield


@pytest.fixture
def real_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of just that."""
    monkeypatch.setattr(migrate, "upgrade", prepared.prepare_for_real)
    monkeypatch.setattr(sqlite, "_make_private", prepared.make_for_real)
    for kind in (sqlite, postgresql):
        monkeypatch.setattr(kind, "create_engine", create_engine)
    monkeypatch.setitem(_defaults(), "durable", True)


def _defaults() -> dict[str, Any]:
    assert open_store.__kwdefaults__ is not None
    return open_store.__kwdefaults__


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a running PostgreSQL server, in the form SQLAlchemy takes."""
    with postgres.running_server() as url:
        yield url


@pytest.fixture
def fresh_postgres_url(postgres_url: str) -> Iterator[Callable[[], str]]:
    """A function that makes a new, empty PostgreSQL database and returns its address."""
    with ExitStack() as databases:
        yield lambda: databases.enter_context(postgres.fresh_database(postgres_url))


@pytest.fixture(scope="session")
def swept_postgres(postgres_url: str) -> Iterator[str]:
    with postgres.fresh_database(postgres_url) as url:
        open_store(url).close()
        yield url


@pytest.fixture
def swept_postgres_url(swept_postgres: str) -> Iterator[Callable[[], str]]:
    """A function that returns the address of a PostgreSQL database which is prepared, and in which
    there is nothing: one for all tests that need no more than one, for making another costs more
    than most of them do with it."""
    yield lambda: swept_postgres
    postgres.execute(swept_postgres, prepared.AS_NEW)


@pytest.fixture
def fresh_sqlite_url(tmp_path: Path) -> Callable[[], str]:
    """A function that names a new SQLite database and returns its address."""
    numbers = count(1)
    return lambda: f"sqlite:///{tmp_path / f'paceline-{next(numbers)}.db'}"
