"""Hundreds of worlds, one after the other, for tests that try every single moment.

All of them use one store. Between two worlds its file is emptied, which is far cheaper than opening
another one, and nobody waits for the disk: no simulated crash empties the operating system's cache,
so nothing is judged differently.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from paceline.engine.clock import LoopClock
from paceline.store.database import open_store
from tests.engine.world import MONDAY_NINE, World


class Worlds:
    """A source of empty worlds."""

    def __init__(self, folder: Path) -> None:
        empty = folder / "empty.db"
        open_store(f"sqlite:///{empty}", clock=lambda: 0).close()
        self._empty = sqlite3.connect(empty)
        self._url = f"sqlite:///{folder / 'worlds.db'}"
        self._store: Any = open_store(self._url, clock=LoopClock(MONDAY_NINE).now)
        self._file = self._store._writer.connection.driver_connection
        self._file.execute("PRAGMA synchronous = OFF")

    def fresh(self) -> World:
        self._empty.backup(self._file)
        return World(self._url, opened=self._store)

    def close(self) -> None:
        self._empty.close()
        self._store.close()

    def play_each(
        self,
        script_of: Callable[[int, Any], Callable[[World], Coroutine[Any, Any, Any]]],
        count: int,
        *moments: str,
    ) -> None:
        """One world for every number up to ``count`` and every moment; a failure names them."""
        for number in range(1, count + 1):
            for moment in moments:
                try:
                    self.fresh().play(script_of(number, moment))
                except BaseException as error:
                    error.add_note(f"it went wrong {moment} number {number} of {count}")
                    raise


def open_worlds(folder: Path) -> Iterator[Worlds]:
    worlds = Worlds(folder)
    try:
        yield worlds
    finally:
        worlds.close()
