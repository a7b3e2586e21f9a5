"""An account's driver, opened when the first message needs it and not before.

A lane that only finds out that it has to wait, or whose account is suspended, must not log in
anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from paceline.core.errors import ProviderError
from paceline.core.outcome import Outcome
from paceline.engine.ports import (
    Account,
    Capabilities,
    Driver,
    Found,
    Media,
    Message,
    Provider,
    Providers,
    Uploaded,
)

T = TypeVar("T")


class LazyDriver:
    """A driver that opens itself on first use; what it cannot open it raises."""

    def __init__(self, providers: Providers, account: Account) -> None:
        self._provider: Provider = providers.get(account.provider)
        self._account = account
        self._driver: Driver | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The open driver's own, else what its provider can do at most."""
        return self._driver.capabilities if self._driver else self._provider.capabilities

    def suits(self, account: Account) -> bool:
        """Whether it was made for the account as it is now."""
        made_for = self._account
        return (made_for.settings, made_for.address) == (account.settings, account.address)

    async def open(self) -> Driver:
        if self._driver is None:
            self._driver = await _ours(self._provider.open(self._account))
        return self._driver

    async def send(self, message: Message) -> Outcome:
        return await _ours((await self.open()).send(message))

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        return await _ours((await self.open()).upload(media, content))

    async def find(self, key: str) -> Found:
        return await _ours((await self.open()).find(key))

    async def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await _ours(driver.close())


async def _ours(call: Awaitable[T]) -> T:
    """What a driver answers, and a cancellation only where somebody asked for one.

    Libraries below a driver cancel parts of themselves. One that lets that escape would end the
    lane as if it had been told to, and nobody would start it again.
    """
    try:
        return await call
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is None or current.cancelling():
            raise
        raise ProviderError("the driver broke off its own call") from None
