"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, reading what Unipile reports in ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, Clock, News
from paceline.providers.opening import HttpProvider
from paceline.providers.unipile import webhooks
from paceline.providers.unipile.files import Files
from paceline.providers.unipile.settings import read_settings
from paceline.providers.unipile.wire import ABLE, EMAIL, LINKEDIN

if TYPE_CHECKING:
    import ssl

    import httpx

    from paceline.providers.http import HttpDriver

NAME = "unipile"


class UnipileProvider(HttpProvider):
    """Opens accounts that are connected to LinkedIn or a mailbox by way of Unipile."""

    name = NAME
    capabilities = replace(
        LINKEDIN, channel=NAME, actions=LINKEDIN.actions | EMAIL.actions, media=True
    )
    secrets = frozenset({"api_key", "webhook_secret"})

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        super().__init__(clock, timeout=timeout)
        self._files = Files()

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return ABLE[read_settings(settings).kind]

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        from paceline.providers.unipile import driver as drivers

        settings = read_settings(account.settings)
        line = drivers.line_for(settings, settings.key(), trust, self._timeout)
        return drivers.UnipileDriver(self._clock, account.name, settings, line, self._files)

    def verify(
        self,
        settings: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> bool:
        return webhooks.verify(read_settings(settings), headers)

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        return webhooks.parse(read_settings(settings), body)

    def challenge(self, settings: Mapping[str, Any], query: Mapping[str, str]) -> str | None:
        """Unipile asks no such thing."""
        return None
