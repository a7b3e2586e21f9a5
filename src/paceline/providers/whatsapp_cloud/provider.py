"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, reading what Meta reports in ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, Clock, Driver, News
from paceline.providers.whatsapp_cloud import webhooks
from paceline.providers.whatsapp_cloud.settings import read_settings
from paceline.providers.whatsapp_cloud.wire import ABLE

if TYPE_CHECKING:
    import ssl

    import httpx

NAME = "whatsapp_cloud"


class WhatsAppCloudProvider:
    """Opens business phone numbers that are registered with Meta's Cloud API."""

    name = NAME
    capabilities = ABLE
    secrets = frozenset({"access_token", "app_secret", "verify_token"})

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        self._clock = clock
        self._timeout = timeout
        self._trust: ssl.SSLContext | None = None

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        """The same for every number."""
        return ABLE

    async def open(self, account: Account) -> Driver:
        # What speaks HTTP is loaded with the first account, and not by every command.
        from paceline.providers import http
        from paceline.providers.whatsapp_cloud import driver as drivers

        settings = read_settings(account.settings)
        token = settings.token()
        if self._trust is None:
            self._trust = http.certificates()
        line = drivers.line_for(settings, token, self._trust, self._timeout)
        driver = drivers.WhatsAppCloudDriver(self._clock, account.name, settings, line)
        try:
            await driver.check_standing()
        except BaseException:
            await driver.close()
            raise
        return driver

    def verify(
        self,
        settings: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> bool:
        return webhooks.verify(read_settings(settings), headers, body)

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        return webhooks.parse(read_settings(settings), body)

    def challenge(self, settings: Mapping[str, Any], query: Mapping[str, str]) -> str | None:
        return webhooks.challenge(read_settings(settings), query)
