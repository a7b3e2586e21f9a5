"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, reading what WATI reports in ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, Clock, News
from paceline.providers.opening import HttpProvider
from paceline.providers.wati import webhooks
from paceline.providers.wati.files import Files
from paceline.providers.wati.settings import read_settings
from paceline.providers.wati.wire import ABLE

if TYPE_CHECKING:
    import ssl

    import httpx

    from paceline.providers.http import HttpDriver

NAME = "wati"


class WatiProvider(HttpProvider):
    """Opens WhatsApp numbers that are registered by way of WATI."""

    name = NAME
    capabilities = ABLE
    secrets = frozenset({"access_token", "webhook_secret"})

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        super().__init__(clock, timeout=timeout)
        self._files = Files()

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        """The same for every number."""
        return ABLE

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        from paceline.providers.wati import driver as drivers

        settings = read_settings(account.settings)
        line = drivers.line_for(settings, settings.token(), trust, self._timeout)
        return drivers.WatiDriver(self._clock, account.name, settings, line, self._files)

    def verify(
        self,
        settings: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> bool:
        return webhooks.verify(read_settings(settings), headers, body, query)

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        return webhooks.parse(read_settings(settings), body)

    def challenge(self, settings: Mapping[str, Any], query: Mapping[str, str]) -> str | None:
        """WATI asks no such thing."""
        return None
