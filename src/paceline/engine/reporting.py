"""What providers report by themselves, over HTTP: who is let in, and what becomes of it.

A report is believed if it was sent to an address that only the provider was told, and shows the
proof that was agreed upon besides, where one was. All that it says is written down in one
transaction before it is answered; told twice, it changes nothing the second time.

Receiving it is the HTTP server's affair. What it means is read by the account's provider.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

import structlog

from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.engine.commands import hooking, returns
from paceline.engine.commands.receipts import resolve_by_receipt
from paceline.engine.commands.returns import TakenIn
from paceline.engine.ports import (
    Account,
    AccountNews,
    Clock,
    Journal,
    Letters,
    News,
    Providers,
    Receipt,
    Tx,
    Webhooks,
)

LARGEST_REPORT = 2**20
LARGEST_LETTER = 25 * 2**20
KEPT_OF_A_LETTER = 2**20
"""More of one is not looked at: what a report says comes before the letter that it returns."""

NOBODY = "-" * 32
"""Compared with where there is no such account, so that it takes as long."""

_SECRET = re.compile(r"[A-Za-z0-9_-]{32}")

Answered = Literal["taken", "not believed", "again"]
"""What came of a report: it is written down; it is not the provider's; or it came too early, and
should come again in a while."""

log = structlog.get_logger("paceline.reports")


class Admitted(NamedTuple):
    """Somebody who has called an account's address."""

    account: Account
    """With its secrets readable."""
    letters: bool
    """Whether what comes are letters, as they are."""

    @property
    def largest(self) -> int:
        """How many bytes a report may have."""
        return LARGEST_LETTER if self.letters else LARGEST_REPORT

    @property
    def kept(self) -> int:
        """How many of them are of any use."""
        return KEPT_OF_A_LETTER if self.letters else LARGEST_REPORT


class ReportDesk:
    """Where reports are taken in."""

    def __init__(
        self, journal: Journal, clock: Clock, providers: Providers, words: OptOut = DEFAULT
    ) -> None:
        """``words`` are those by which people opt out."""
        self._journal = journal
        self._clock = clock
        self._providers = providers
        self._words = words

    async def admit(self, name: str, secret: str) -> Admitted | None:
        """Whoever knows this secret of this account; None for everybody else."""
        if not _SECRET.fullmatch(secret):
            return None
        found = await self._journal.read(lambda tx: self._found(tx, name))
        expected = NOBODY if found is None else found[1]
        if not hmac.compare_digest(secret.encode(), expected.encode()) or found is None:
            return None
        account = self._providers.unsealed(found[0])
        letters = hasattr(self._providers.get(account.provider), "read_letter")
        return Admitted(account, letters)

    def _found(self, tx: Tx, name: str) -> tuple[Account, str] | None:
        account = tx.accounts.find(name)
        secret = None if account is None else hooking.secret_of(tx, self._providers, account)
        return None if account is None or secret is None else (account, secret)

    def challenge(self, admitted: Admitted, query: Mapping[str, str]) -> str | None:
        """What to answer a provider that wants to know whether we are who we say."""
        if admitted.letters:
            return None
        return self._webhooks(admitted).challenge(admitted.account.settings, query)

    async def take(
        self,
        admitted: Admitted,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> Answered:
        """Take in a report. ``InputError`` for what is none, ``StoreError`` where it could not be
        written down."""
        account, now = admitted.account, self._clock.now()
        if admitted.letters:
            provider = cast("Letters", self._providers.get(account.provider))
            # Some take a while to be understood, and the loop has messages to send meanwhile.
            news = await asyncio.to_thread(provider.read_letter, account, body, now)
        else:
            webhooks = self._webhooks(admitted)
            if not _is_believed(webhooks, account, headers, body, query):
                log.warning("report without its proof", account=account.name)
                return "not believed"
            news = webhooks.parse(account.settings, body)
        early, taken = await self._write(account, news, now)
        _tell(account, news, taken)
        return "again" if early else "taken"

    async def _write(
        self, account: Account, news: list[News], now: Instant
    ) -> tuple[bool, TakenIn]:
        receipts = [one for one in news if isinstance(one, Receipt)]
        others = [one for one in news if not isinstance(one, Receipt)]

        def work(tx: Tx) -> tuple[bool, TakenIn]:
            returns.prepare(tx, others, self._words)
            current = tx.accounts.get(account.id)
            came_to = [resolve_by_receipt(tx, current.id, one, now) for one in receipts]
            early = "early" in came_to or returns.come_early(tx, current, others, now)
            return early, returns.take_in(tx, current, others, now, self._words)

        if not news:
            return False, TakenIn()
        # Whoever needs the fence needs a transaction of its own.
        alone = returns.passes_the_fence(others, self._words)
        return await self._journal.write(work, alone=alone)

    def _webhooks(self, admitted: Admitted) -> Webhooks:
        return cast("Webhooks", self._providers.get(admitted.account.provider))


def _is_believed(
    webhooks: Webhooks,
    account: Account,
    headers: Mapping[str, str],
    body: bytes,
    query: Mapping[str, str],
) -> bool:
    try:
        if not webhooks.proves(account.settings):
            return True
        return webhooks.verify(account.settings, headers, body, query)
    except InputError as error:
        # The account's settings, and not the report: nobody could prove anything.
        log.warning("reports cannot be proved", account=account.name, reason=str(error))
        return False


def _tell(account: Account, news: list[News], taken: TakenIn) -> None:
    if any(taken):
        log.info("report taken in", account=account.name, **taken._asdict())
    for one in news:
        if isinstance(one, AccountNews):
            log.info("account reported", account=account.name, state=one.state, reason=one.reason)
