"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``, its mailbox in ``mailbox.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.core.instants import Instant
from paceline.engine.ports import Account, Capabilities, Clock, Mailbox, News
from paceline.providers.gmail.settings import ABLE, GmailSettings, read_settings
from paceline.providers.mail.addresses import checking_own
from paceline.providers.mail.enclosing import new_shelf
from paceline.providers.opening import HttpProvider

if TYPE_CHECKING:
    import ssl

    import httpx

    from paceline.providers.gmail.client import Api
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

    def check_address(self, settings: Mapping[str, Any], address: str) -> None:
        with checking_own():
            read_settings(settings).mailbox(address)

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        # Not even read: where they are stored the key in them is sealed.
        return ABLE

    def _driver(self, account: Account, trust: ssl.SSLContext) -> HttpDriver:
        # What signs and what speaks HTTP is loaded with the first account, not by every command.
        from paceline.providers.gmail.driver import GmailDriver

        settings = read_settings(account.settings)
        mailbox = settings.mailbox(account.address)
        return GmailDriver(
            self._clock,
            account.name,
            self._api(account, settings, mailbox, trust),
            mailbox=mailbox,
            sender=settings.sender(mailbox),
            files=self._files,
        )

    def has_mailbox(self, settings: Mapping[str, Any]) -> bool:
        return settings.get("watch") is True

    async def open_mailbox(self, account: Account) -> Mailbox:
        from paceline.providers.gmail.mailbox import GmailMailbox

        settings = read_settings(account.settings)
        mailbox = settings.mailbox(account.address)
        api = self._api(account, settings, mailbox, self._certificates())
        opened = GmailMailbox(self._clock, api, settings.ours(account.address))
        try:
            await opened.open()
        except BaseException:
            await opened.close()
            raise
        return opened

    def read_letter(self, account: Account, raw: bytes, at: Instant) -> list[News]:
        from paceline.providers.mail.reports import read_posted

        ours = read_settings(account.settings).ours(account.address)
        return read_posted(raw, ours=ours, at=at)

    def _api(
        self, account: Account, settings: GmailSettings, mailbox: str, trust: ssl.SSLContext
    ) -> Api:
        from paceline.providers.gmail.client import Api

        return Api.to(
            self._clock, account.name, settings, mailbox, trust=trust, timeout=self._timeout
        )
