"""What runs beside the lanes looks for something to do, does it, and rests until the next look.

Nothing of it can harm sending: whatever a look fails with is logged, and tried again by the next.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

import structlog

from paceline.core.errors import SchemaMismatch, StoreError
from paceline.engine.ports import Clock


class Looker(ABC):
    """Looks every so often until it is told to stop."""

    def __init__(
        self, clock: Clock, look_every_us: int, log: structlog.stdlib.BoundLogger, what: str
    ) -> None:
        self._clock = clock
        self._look_every_us = look_every_us
        self._log = log
        self._what = what
        """What it looks for, as it is called where a look has failed."""
        self._signal = asyncio.Event()
        self._stopping = False

    @abstractmethod
    async def look(self) -> object:
        """Do whatever there is to do now."""

    async def end(self) -> None:
        """Called once, when no look follows any more, however the last one ended."""
        return None

    def stop(self) -> None:
        """What is under way is brought to its end; nothing new is begun."""
        self._stopping = True
        self._signal.set()

    async def run(self) -> None:
        try:
            while not self._stopping:
                try:
                    await self.look()
                except SchemaMismatch:
                    raise
                except StoreError as error:
                    self._log.warning(f"{self._what} cannot be looked for", error=str(error))
                except Exception:
                    # A defect of ours, and no reason to stop sending: the next look may do better.
                    self._log.exception(f"looking for {self._what} failed")
                await self._rest()
        finally:
            await self.end()

    def _wake(self, resting: asyncio.Task[None]) -> None:
        if not resting.cancelled():
            self._signal.set()

    async def _rest(self) -> None:
        # For so long, and not until then: somebody may set the clock back by hours meanwhile.
        resting = asyncio.create_task(self._clock.sleep(self._look_every_us))
        resting.add_done_callback(self._wake)
        try:
            await self._signal.wait()
        finally:
            resting.cancel()
        if not self._stopping:
            self._signal.clear()
