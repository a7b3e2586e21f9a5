"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, reading what Meta reports in ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, News
from paceline.providers.opening import HttpProvider
from paceline.providers.whatsapp_cloud import webhooks
from paceline.providers.whatsapp_cloud.settings import read_settings
from paceline.providers.whatsapp_cloud.wire import ABLE

if TYPE_CHECKING:
    import ssl

    from paceline.providers.http import HttpDriver

NAME = "whatsapp_cloud"


class WhatsAppCloudProvider(HttpProvider):
    """Opens business phone numbers that are registered with Meta's Cloud API."""

    name = NAME
    capabilities = ABLE
    secrets = frozenset({"access_token", "app_secret", "verify_token"})
    proof_setting = "app_secret"

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        """The same for every number."""
        return ABLE

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        from paceline.providers.whatsapp_cloud import driver as drivers

        settings = read_settings(account.settings)
        line = drivers.line_for(settings, settings.token(), trust, self._timeout)
        return drivers.WhatsAppCloudDriver(self._clock, account.name, settings, line)

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
