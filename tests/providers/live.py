"""The engine and the store in real time, over real connections, with accounts at a fake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from paceline.core.instants import MILLISECOND, MINUTE
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.ports import Account, Clock, Media, Provider
from paceline.providers.registry import Registry
from paceline.store.database import open_store
from tests.engine.world import Process, World

T = TypeVar("T")

BRISK = 20 * MILLISECOND


class LiveWorld(World):
    """The same small world in real time, with a provider that has no virtual one."""

    def __init__(self, url: str, make: Callable[[Clock], Provider]) -> None:
        super().__init__(url)
        self.clock = SystemClock()  # type: ignore[assignment]
        provider = make(self.clock)
        self._provider = provider.name
        self.providers = Registry([provider])
        self.house = House(self.providers, Catalogue())

    def play(self, script: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def whole() -> T:
            self.store = open_store(self._url, clock=self.clock.now)
            try:
                with self.store.write() as tx:
                    tx.settings.put("instance", "home")
                result = await script(self)
                self.check()
                return result
            finally:
                self.store.close()

        return asyncio.run(whole())

    def enrol(self, settings: dict[str, Any], policy: dict[str, Any]) -> Account:
        new = NewAccount("ann", self._provider, "ann", settings, None, policy)
        with self.store.write() as tx:
            return accounts.add(tx, new, self.house, self.clock.now())

    def picture(self) -> Media:
        return self.write(lambda tx: tx.media.put("a.png", "image/png", b"PNG", self.clock.now()))

    def lively(self) -> Process:
        return self.process(poll_us=BRISK)

    async def until_so(self, predicate: Callable[[], bool]) -> None:
        await self.until(predicate, MINUTE, BRISK)

    async def send_all(self, name: str = "spring") -> None:
        """One process works until the campaign is done."""
        process = self.lively()
        await self.until_so(lambda: self.state(name) == "finished")
        await process.stop()

    async def leave_to_a_person(self) -> None:
        """One process works until what is in doubt has been given up asking for."""
        process = self.lively()
        await self.until_so(lambda: any("held for a person" in one for one in self.reasons()))
        await process.stop()

    def reasons(self, run_id: int = 1) -> list[str]:
        return self.read(
            lambda tx: [one.reason for one in tx.deliveries.page(run_id=run_id, after_id=0)]
        )
