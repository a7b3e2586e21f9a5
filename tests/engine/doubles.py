"""A provider that behaves as the sandbox does, but for what a test replaces, and a watcher."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from paceline.core.outcome import Outcome
from paceline.engine.observe import Unobserved
from paceline.engine.ports import (
    Account,
    Capabilities,
    Driver,
    Found,
    Media,
    Message,
    Provider,
    Uploaded,
)
from paceline.providers.registry import Registry

Act = Callable[..., Awaitable[Any]]
"""Called with the real thing first, and then with whatever that would have been called with."""


async def forever(*_: Any) -> Any:
    """Wait for something that never comes."""
    await asyncio.get_running_loop().create_future()


def raising(error: BaseException, *, times: int = 1_000_000) -> Act:
    """Raise the first few times, then do as the real thing does."""
    left = times

    async def act(real: Act, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise error
        return await real(*arguments)

    return act


def hanging(*, times: int = 1_000_000) -> Act:
    """Never answer the first few times, then do as the real thing does."""
    left = times

    async def act(real: Act, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            await forever()
        return await real(*arguments)

    return act


class Double:
    """A provider with some of its acts replaced: ``open``, ``send``, ``upload``, ``find``,
    ``close``."""

    def __init__(self, provider: Provider, **acts: Act) -> None:
        self._provider = provider
        self._acts = acts
        self.name = provider.name
        self.secrets = provider.secrets
        self.capabilities_of = provider.capabilities_of
        self.called: Counter[str] = Counter()

    @property
    def capabilities(self) -> Capabilities:
        return self._provider.capabilities

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._provider.check(settings)

    async def open(self, account: Account) -> Driver:
        driver: Driver = await self.do("open", self._provider.open, account)
        return _DoubleDriver(self, driver)

    def registry(self) -> Registry:
        return Registry([self])

    async def do(self, name: str, real: Act, *arguments: Any) -> Any:
        self.called[name] += 1
        act = self._acts.get(name)
        return await (act(real, *arguments) if act is not None else real(*arguments))


class _DoubleDriver:
    def __init__(self, double: Double, driver: Driver) -> None:
        self._double = double
        self._driver = driver

    @property
    def capabilities(self) -> Capabilities:
        return self._driver.capabilities

    async def send(self, message: Message) -> Outcome:
        outcome: Outcome = await self._double.do("send", self._driver.send, message)
        return outcome

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        answer: Uploaded | Outcome
        answer = await self._double.do("upload", self._driver.upload, media, content)
        return answer

    async def find(self, message: Message, since_at: int) -> Found:
        found: Found = await self._double.do("find", self._driver.find, message, since_at)
        return found

    async def close(self) -> None:
        await self._double.do("close", self._driver.close)


class Watcher(Unobserved):
    """Remembers what a process told about itself."""

    def __init__(self) -> None:
        self.crashes: Counter[str] = Counter()
        self.lanes: list[int] = []
        self.intents: list[tuple[str, int, int]] = []

    def lane_crashed(self, account: str) -> None:
        self.crashes[account] += 1

    def lanes_running(self, count: int) -> None:
        self.lanes.append(count)

    def intended(self, account: str, delivery_id: int, at: int) -> None:
        self.intents.append((account, delivery_id, at))
