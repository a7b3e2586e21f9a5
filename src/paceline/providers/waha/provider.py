"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, reading what WAHA reports by itself in ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, Clock, News
from paceline.providers.opening import HttpProvider
from paceline.providers.waha import webhooks
from paceline.providers.waha.files import Files
from paceline.providers.waha.settings import read_settings
from paceline.providers.waha.wire import ABLE, able

if TYPE_CHECKING:
    import ssl

    import httpx

    from paceline.providers.http import HttpDriver

NAME = "waha"


class WahaProvider(HttpProvider):
    """Opens WhatsApp numbers that are paired with a WAHA of one's own."""

    name = NAME
    capabilities = ABLE
    secrets = frozenset({"api_key", "webhook_secret"})

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        super().__init__(clock, timeout=timeout)
        self._files = Files()

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return able(read_settings(settings))

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        from paceline.providers.waha import driver as drivers

        settings = read_settings(account.settings)
        line = drivers.line_for(settings, settings.key(), trust, self._timeout)
        return drivers.WahaDriver(self._clock, account.name, settings, line, self._files)

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
        """WAHA asks no such thing."""
        return None
