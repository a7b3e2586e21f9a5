"""An account's driver, opened when the first message needs it and not before.

A lane that only finds out that it has to wait, or whose account is suspended, must not log in
anywhere.
"""

from __future__ import annotations

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

    async def open(self) -> Driver:
        if self._driver is None:
            self._driver = await self._provider.open(self._account)
        return self._driver

    async def send(self, message: Message) -> Outcome:
        return await (await self.open()).send(message)

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        return await (await self.open()).upload(media, content)

    async def find(self, key: str) -> Found:
        return await (await self.open()).find(key)

    async def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close()
