"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, pairing in ``pairing.py``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paceline.core.errors import InputError
from paceline.engine.ports import Account, Capabilities, Clock, Driver
from paceline.providers.whatsapp.connection import INSTALL
from paceline.providers.whatsapp.driver import ABLE, WhatsAppDriver, able
from paceline.providers.whatsapp.pairing import PairingStep, pair
from paceline.providers.whatsapp.process import ProcessWire
from paceline.providers.whatsapp.settings import WhatsAppSettings, read_settings
from paceline.providers.whatsapp.wire import MakeWire

NAME = "whatsapp"


class WhatsAppProvider:
    """Opens accounts that were paired with a phone. ``folder`` is where their sessions are."""

    name = NAME
    capabilities = ABLE
    secrets: frozenset[str] = frozenset()

    def __init__(self, clock: Clock, folder: Path, make_wire: MakeWire = ProcessWire) -> None:
        self._clock = clock
        self._folder = folder
        self._make_wire = make_wire

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        checked = read_settings(settings).to_mapping()
        if not installed():
            raise InputError(INSTALL)
        return checked

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return able(read_settings(settings))

    async def open(self, account: Account) -> Driver:
        settings, session = self._session(account)
        driver = WhatsAppDriver(self._clock, account.name, settings, session, self._make_wire)
        try:
            await driver.open()
        except BaseException:
            await driver.close()
            raise
        return driver

    def listens(self, account: Account) -> bool:
        """Whether there is anything to listen to: it was paired, and here."""
        _, session = self._session(account)
        return session.exists()

    def pair(self, account: Account, phone: str | None = None) -> AsyncGenerator[PairingStep, None]:
        """Make the account a linked device of a phone, step by step."""
        _, session = self._session(account)
        return pair(account.name, session, self._make_wire, phone)

    def _session(self, account: Account) -> tuple[WhatsAppSettings, Path]:
        settings = read_settings(account.settings)
        return settings, settings.session_in(self._folder, account.name)


def installed() -> bool:
    """Whether the extra is there; whether it works is found out when an account is opened."""
    return find_spec("neonize") is not None
