"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.engine.ports import Account, Capabilities, Clock
from paceline.providers.gmail.settings import ABLE, read_settings
from paceline.providers.mail.enclosing import new_shelf
from paceline.providers.opening import HttpProvider

if TYPE_CHECKING:
    import ssl

    import httpx

    from paceline.providers.http import HttpDriver

NAME = "gmail"


class GmailProvider(HttpProvider):
    """Opens mailboxes of a Google Workspace that a service account may write for."""

    name = NAME
    capabilities = ABLE
    secrets = frozenset({"service_account"})

    def __init__(self, clock: Clock, *, timeout: httpx.Timeout | None = None) -> None:
        super().__init__(clock, timeout=timeout)
        self._files = new_shelf()

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        # Not even read: where they are stored the key in them is sealed.
        return ABLE

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        # What signs and what speaks HTTP is loaded with the first account, not by every command.
        from paceline.providers.gmail import driver as drivers
        from paceline.providers.gmail.tokens import Signer, Tokens

        settings = read_settings(account.settings)
        key, mailbox = settings.key(), settings.mailbox(account.address)
        signer = Signer(key)
        line, path = drivers.line_to_tokens(settings, key, trust, self._timeout)
        tokens = Tokens(self._clock, signer, mailbox, line, path)
        return drivers.GmailDriver(
            self._clock,
            account.name,
            drivers.GmailLine(settings, tokens, key, trust=trust, timeout=self._timeout),
            mailbox=mailbox,
            sender=settings.sender(mailbox),
            tokens=tokens,
            files=self._files,
        )
