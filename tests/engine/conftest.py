"""A fresh world per test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from paceline.core.instants import MINUTE, Instant
from paceline.engine import station
from tests.engine.scenes import slow_heart
from tests.engine.world import World
from tests.engine.worlds import Worlds, open_worlds


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(f"sqlite:///{tmp_path / 'world.db'}")


@pytest.fixture
def world_at(tmp_path: Path) -> Callable[[Instant], World]:
    """A fresh world that begins at an instant of one's own."""
    return lambda at: World(f"sqlite:///{tmp_path / 'then.db'}", at)


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest) -> Callable[[Callable[[World], None]], None]:
    """Plays a script on either database."""
    name = "fresh_sqlite_url" if request.param == "sqlite" else "swept_postgres_url"
    url = request.getfixturevalue(name)()

    def play(script: Callable[[World], None]) -> None:
        async def whole(world: World) -> None:
            script(world)

        World(url).play(whole)

    return play


@pytest.fixture(params=["sqlite", "postgresql"])
def on_either(request: pytest.FixtureRequest) -> World:
    """A world on either database."""
    name = "fresh_sqlite_url" if request.param == "sqlite" else "swept_postgres_url"
    return World(request.getfixturevalue(name)())


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """For stories of hours and days."""
    slow_heart(monkeypatch)


@pytest.fixture
def looked_after(calm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, where it matters when somebody looks after what is over."""
    monkeypatch.setattr(station, "WATCH_EVERY_US", 5 * MINUTE)


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    """Any number of fresh worlds."""
    yield from open_worlds(tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> Iterator[None]:
    """Tracebacks without a picture of every local variable, which takes a second each to paint."""
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, renderer])
    yield
    structlog.reset_defaults()
