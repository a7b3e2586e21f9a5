"""Processes that run lanes for another one: how they are started, told, and ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from paceline.core.reports import Assignment, Report

AWAY = 75
"""The exit code of a worker whose database was away when it started: nobody's fault."""

MAX_WORKERS = 40
"""How many there may be unless somebody says otherwise. With two connections each, and the
service's own, they fit into the hundred that PostgreSQL has from the start."""


class WorkerProcess(Protocol):
    """A worker that was started. It ends by itself when whoever started it has gone."""

    @property
    def pid(self) -> int: ...

    def assign(self, assignment: Assignment) -> None: ...

    def stop(self) -> None:
        """Ask it to end in good order: what has started settles, within the grace period."""
        ...

    def kill(self) -> None:
        """End it at once, whatever it does; one that has ended already stays ended."""
        ...

    async def ended(self) -> int:
        """Its exit code, once nothing of it is left; of a signal, the number below zero."""
        ...


class Workers(Protocol):
    async def start(
        self, name: str, account_ids: Sequence[int], hear: Callable[[Report], None]
    ) -> WorkerProcess:
        """Start a worker that is to look after these accounts; ``OSError`` if that cannot be.

        ``hear`` is told what it says, in the event loop's own thread.
        """
        ...
