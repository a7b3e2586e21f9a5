"""Whether a process can work right now, and what keeps it from it."""

from __future__ import annotations

import asyncio

from paceline.core.errors import StoreError
from paceline.engine.ports import Journal
from paceline.engine.station import Station

PROBE_SECONDS = 2
"""How long the database may take to prove that it is there."""


class Readiness:
    """Whether this process can work: what ``/readyz`` answers."""

    def __init__(self, journal: Journal, station: Station, stop: asyncio.Event) -> None:
        self._journal = journal
        self._station = station
        self._stop = stop
        self._asking: asyncio.Future[str | None] | None = None

    async def __call__(self) -> list[str]:
        reasons = []
        if self._stop.is_set():
            reasons.append("this process is stopping")
        elif (problem := self._station.problem) is not None:
            reasons.append(problem)
        missing = await self._database()
        return [*reasons, missing] if missing else reasons

    async def _ask(self) -> str | None:
        try:
            await self._journal.read(lambda tx: tx.settings.stopped())
        except StoreError as error:
            return str(error)
        return None

    async def _database(self) -> str | None:
        # One question at a time: a database that hangs must not eat up the readers' threads.
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), PROBE_SECONDS)
        except TimeoutError:
            return "the database does not answer"
