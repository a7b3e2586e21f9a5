"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, reading what Wassenger reports in ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, News
from paceline.providers.opening import HttpProvider
from paceline.providers.wassenger import webhooks
from paceline.providers.wassenger.settings import read_settings
from paceline.providers.wassenger.wire import ABLE, able

if TYPE_CHECKING:
    import ssl

    from paceline.providers.http import HttpDriver

NAME = "wassenger"


class WassengerProvider(HttpProvider):
    """Opens WhatsApp numbers that are paired at Wassenger."""

    name = NAME
    capabilities = ABLE
    secrets = frozenset({"api_key", "webhook_secret"})

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return able(read_settings(settings))

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        from paceline.providers.wassenger import driver as drivers

        settings = read_settings(account.settings)
        line = drivers.line_for(settings, settings.key(), trust, self._timeout)
        return drivers.WassengerDriver(self._clock, account.name, settings, line)

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
        """Wassenger asks no such thing."""
        return None
