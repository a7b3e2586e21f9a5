"""How accounts are opened that are reached over HTTP: the same for every such provider.

What speaks HTTP is loaded with the first account, and not by every command; so nothing here imports
it at once. What an open account has in common with others is ``http.HttpDriver``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Clock, Driver

if TYPE_CHECKING:
    import ssl

    import httpx

    from paceline.providers.http import HttpDriver


class HttpProvider(ABC):
    proof_setting = "webhook_secret"
    """Which of the settings is a secret that reports are proved with, where there are reports."""

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        self._clock = clock
        self._timeout = timeout
        self._trust: ssl.SSLContext | None = None

    async def open(self, account: Account) -> Driver:
        """An account that can be used; one whose provider will not have it is closed again."""
        driver = self._driver(account, self._certificates())
        try:
            await driver.check_standing()
        except BaseException:
            await driver.close()
            raise
        return driver

    def proves(self, settings: Mapping[str, Any]) -> bool:
        """Whether reports about an account have a proof of their own to show."""
        return bool(settings.get(self.proof_setting))

    def _certificates(self) -> ssl.SSLContext:
        from paceline.providers import http

        if self._trust is None:
            self._trust = http.certificates()
        return self._trust

    @abstractmethod
    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        """The account's driver, which has asked nobody anything yet."""
