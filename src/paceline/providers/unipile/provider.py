"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, Clock, Driver
from paceline.providers.unipile.files import Files
from paceline.providers.unipile.settings import read_settings
from paceline.providers.unipile.wire import ABLE, EMAIL, LINKEDIN

if TYPE_CHECKING:
    import ssl

    import httpx

NAME = "unipile"


class UnipileProvider:
    """Opens accounts that are connected to LinkedIn or a mailbox by way of Unipile."""

    name = NAME
    capabilities = replace(
        LINKEDIN, channel=NAME, actions=LINKEDIN.actions | EMAIL.actions, media=True
    )
    secrets = frozenset({"api_key"})

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        self._clock = clock
        self._timeout = timeout
        self._files = Files()
        self._trust: ssl.SSLContext | None = None

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return ABLE[read_settings(settings).kind]

    async def open(self, account: Account) -> Driver:
        # What speaks HTTP is loaded with the first account, and not by every command.
        from paceline.providers import http
        from paceline.providers.unipile import driver as drivers

        settings = read_settings(account.settings)
        key = settings.key()
        if self._trust is None:
            self._trust = http.certificates()
        line = drivers.line_for(settings, key, self._trust, self._timeout)
        driver = drivers.UnipileDriver(self._clock, account.name, settings, line, self._files)
        try:
            await driver.check_standing()
        except BaseException:
            await driver.close()
            raise
        return driver
