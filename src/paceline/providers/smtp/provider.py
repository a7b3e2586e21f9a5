"""The provider: what an account of it needs and can do, and how one is opened.

The open account is in ``driver.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Account, Capabilities, Clock, Driver, Mailbox, News
from paceline.providers.mail.addresses import checking_own
from paceline.providers.mail.enclosing import new_shelf
from paceline.providers.mail.settings import SECRETS as MAILBOX_SECRETS
from paceline.providers.smtp.settings import MOST, SmtpSettings, able, read_settings

if TYPE_CHECKING:
    import ssl

    from paceline.providers.mail.mailbox import ImapMailboxes, Threads
    from paceline.providers.mail.sent import SentFolder
    from paceline.providers.mail.settings import Access as MailboxAccess
    from paceline.providers.smtp.line import Timing

NAME = "smtp"

_STOPS = (OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED)


class SmtpProvider:
    """Opens mailboxes that send through a mail server."""

    name = NAME
    capabilities = MOST
    secrets = frozenset({"password"}) | MAILBOX_SECRETS

    def __init__(self, clock: Clock, *, timing: Timing | None = None) -> None:
        self._clock = clock
        self._timing = timing
        self._files = new_shelf()
        self._trust: ssl.SSLContext | None = None
        self._mailboxes: ImapMailboxes | None = None
        self._searches: Threads | None = None

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def check_address(self, settings: Mapping[str, Any], address: str) -> None:
        read = read_settings(settings)
        with checking_own():
            read.comes_back_to(read.sender(address))

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return able(read_settings(settings))

    async def open(self, account: Account) -> Driver:
        # What speaks SMTP is loaded with the first account, and not by every command.
        from paceline.providers.smtp.driver import SmtpDriver
        from paceline.providers.smtp.line import Access, Timing, Trouble

        settings = read_settings(account.settings)
        sender = settings.sender(account.address)
        access = Access(
            settings, settings.secret(), settings.greeting(sender), self._certificates(settings)
        )
        timing, sent = self._timing or Timing(), self._sent_folder(settings)
        driver = SmtpDriver(
            self._clock, account.name, sender, access, self._files, timing, sent=sent
        )
        try:
            await driver.open()
        except Trouble as trouble:
            await driver.close()
            refused = trouble.outcome.kind in _STOPS
            reason = driver.masked(f"{account.name}: {trouble.outcome.reason}")
            raise (ProviderRefused if refused else ProviderError)(reason) from None
        except BaseException:
            await driver.close()
            raise
        return driver

    def has_mailbox(self, settings: Mapping[str, Any]) -> bool:
        return bool(settings.get("imap_host"))

    async def open_mailbox(self, account: Account) -> Mailbox:
        from paceline.providers.mail.mailbox import ImapMailboxes

        settings = read_settings(account.settings)
        access = self._mailbox_access(settings)
        if self._mailboxes is None:
            self._mailboxes = ImapMailboxes(self._clock)
        return await self._mailboxes.open(account.name, access, settings.ours(account.address))

    def read_letter(self, account: Account, raw: bytes, at: Instant) -> list[News]:
        from paceline.providers.mail.reports import read_posted

        ours = read_settings(account.settings).ours(account.address)
        return read_posted(raw, ours=ours, at=at)

    def _sent_folder(self, settings: SmtpSettings) -> SentFolder | None:
        """Where an account's letters can be looked for; None where there is nowhere."""
        if not settings.has_mailbox:
            return None
        from paceline.providers.mail.mailbox import Threads
        from paceline.providers.mail.sent import MOST_SEARCHES, SentFolder

        if self._searches is None:
            self._searches = Threads(MOST_SEARCHES)
        try:
            access = self._mailbox_access(settings)
        except ProviderRefused:
            # Whoever reads the mailbox is told what it lacks; letters can be sent all the same.
            return None
        return SentFolder(access, settings.sent_folder, self._clock, self._searches)

    def _mailbox_access(self, settings: SmtpSettings) -> MailboxAccess:
        """``ProviderRefused`` where nobody could get in, because something is missing."""
        trust = None if settings.imap_security == "plain" else self._trusted(settings)
        return settings.access(settings.username, settings.secret(), trust)

    def _certificates(self, settings: SmtpSettings) -> ssl.SSLContext | None:
        """Whom to trust: read once for all accounts, unless one trusts somebody of its own."""
        return None if settings.security == "plain" else self._trusted(settings)

    def _trusted(self, settings: SmtpSettings) -> ssl.SSLContext:
        from paceline.providers.http import certificates

        if settings.ca_file:
            own = certificates()
            try:
                own.load_verify_locations(settings.ca_file)
            except OSError as error:
                raise ProviderRefused(
                    f"ca_file {settings.ca_file!r} is of no use: {error}"
                ) from None
            return own
        if self._trust is None:
            self._trust = certificates()
        return self._trust
