"""Where a command runs: which settings hold, and the installation they lead to.

Opening is done late and at most once per command, because most of what can be asked of the
command line, its help above all, needs neither a file nor a database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from paceline.config import Settings, load, sqlite_path
from paceline.core.errors import StoreError

if TYPE_CHECKING:
    from paceline.app import App


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was said before the command's name."""

    config: str | None = None
    database: str | None = None

    def settings(self) -> Settings:
        return load(self.config, database=self.database)


def settings_of(ctx: typer.Context) -> Settings:
    return _surroundings(ctx).settings()


@contextmanager
def opened(ctx: typer.Context) -> Iterator[App]:
    """The installation, for one command."""
    from paceline import logs
    from paceline.app import open_app

    settings = settings_of(ctx)
    # A command says what it has to say by itself; only what is wrong is worth a log line.
    logs.configure("warning", settings.chosen_log_format)
    with open_app(settings) as app:
        yield app


@contextmanager
def existing(ctx: typer.Context) -> Iterator[App]:
    """The installation, for a command about what is there: in the wrong folder it makes no new
    one. To be told that everything is stopped where nothing runs would be worse than no answer."""
    from paceline.app import make_catalogue

    settings = settings_of(ctx)
    make_catalogue(settings)  # what is wrong with the settings is told first
    path = sqlite_path(settings.database)
    if path is not None and path.parent.is_dir() and not path.exists():
        raise StoreError(
            f"there is no database {path.absolute()}; name another with --database, "
            "or make this one with: paceline account add"
        )
    with opened(ctx) as app:
        yield app


def database_of(app: App) -> str:
    """The database as people are told of it, wherever they are."""
    path = sqlite_path(app.settings.database)
    return app.settings.shown_database if path is None else str(path.absolute())


def _surroundings(ctx: typer.Context) -> Surroundings:
    found = ctx.find_object(Surroundings)
    assert found is not None, "the main callback has set it"
    return found
