"""What providers report by themselves, over HTTP: who is let in, and what becomes of it.

A report is believed if it was sent to an address that only the provider was told, and shows the
proof that was agreed upon besides, where one was. All that it says is written down in one
transaction before it is answered; told twice, it changes nothing the second time. What many report
at once is written down together.

Whom an address belongs to is remembered, so that nobody has to be looked up for every report; but
whether that is still so is looked at in the very transaction that writes it down.

Receiving it is the HTTP server's affair. What it means is read by the account's provider.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple, cast

import structlog

from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.engine import listening
from paceline.engine.commands import hooking, returns
from paceline.engine.commands.acknowledging import note
from paceline.engine.commands.hooking import Stored
from paceline.engine.commands.returns import TakenIn
from paceline.engine.listening import NotHere
from paceline.engine.ports import (
    Account,
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

MOST_KNOWN = 1_000
"""Accounts whose addresses are remembered."""

Answered = Literal["taken", "not believed", "again", "changed"]
"""What came of a report: it is written down; it is not the provider's; it came too early, and
should come again in a while; or the account is not what it was, and whoever reports has to be let
in anew."""

log = structlog.get_logger("paceline.reports")


class Admitted(NamedTuple):
    """Somebody who has called an account's address."""

    account: Account
    """With its secrets readable."""
    letters: bool
    """Whether what comes are letters, as they are."""
    by: Stored

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
        self._known: dict[str, tuple[Admitted, str]] = {}
        self._told: list[tuple[str, TakenIn]] = []

    def known(self, name: str, secret: str) -> Admitted | None:
        """Whoever was let in before; whether the account is still what it was then is looked at
        when what they report is taken in."""
        admitted, expected = self._known.get(name, (None, NOBODY))
        return admitted if _is_same(secret, expected) else None

    async def admit(self, name: str, secret: str) -> Admitted | None:
        """Whoever knows this secret of this account; None for everybody else."""
        if not _SECRET.fullmatch(secret):
            return None
        found = await self._journal.read(lambda tx: hooking.stored_for(tx, name))
        expected = None if found is None else hooking.digest_in(self._providers, found)
        # Compared also where there is nothing to compare with, so that it takes as long.
        if not _is_same(hooking.digest_of(secret), expected or NOBODY) or found is None:
            return None
        account = self._providers.unsealed(found.account)
        letters = hasattr(self._providers.get(account.provider), "read_letter")
        admitted = Admitted(account, letters, found)
        self._remember(name, admitted, secret)
        return admitted

    def _remember(self, name: str, admitted: Admitted, secret: str) -> None:
        self._known[name] = (admitted, secret)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

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
        written = await self._write(admitted, news, now)
        if written is None:
            self._known.pop(account.name, None)
            return "changed"
        early, taken = written
        self._tell(account, taken)
        return "again" if early else "taken"

    async def _write(
        self, admitted: Admitted, news: list[News], now: Instant
    ) -> tuple[bool, TakenIn] | None:
        """Whether some of it came too early, and what it came to; None where whoever reports has to
        be let in anew."""
        messages = listening.messages_in(news, self._words)
        if messages is not None:
            reported = listening.Reported(admitted.by, messages, now)
            taken = await self._journal.write_together(
                listening.take_in, reported, holds="conversations"
            )
            if taken != "by itself":
                return None if taken == "changed" else (False, taken)
        receipts = [one for one in news if isinstance(one, Receipt)]
        others = [one for one in news if not isinstance(one, Receipt)]

        def work(tx: Tx, *, in_company: bool = False) -> tuple[bool, TakenIn] | NotHere:
            returns.prepare(tx, others, self._words)
            current = listening.current(tx, admitted.by)
            if current is None:
                return "changed"
            if not in_company:
                returns.hold(tx, current, news)
            noted = [note(tx, current, one, now, in_company=in_company) for one in receipts]
            if any(one.taken == "by itself" for one in noted):
                return "by itself"
            back = [one.returned for one in noted if one.returned is not None]
            early = any(one.taken == "early" for one in noted)
            early = early or returns.come_early(tx, current, others, now)
            return early, returns.take_in(tx, current, others, now, self._words, back)

        written: tuple[bool, TakenIn] | NotHere = "by itself"
        # Whoever needs the fence, or conversations, needs a transaction of its own.
        if not returns.goes_alone(news, self._words):
            written = await self._journal.write(partial(work, in_company=True), talk=0)
        if written == "by itself":
            written = await self._journal.write(work, alone=True)
        return None if isinstance(written, str) else written

    def _webhooks(self, admitted: Admitted) -> Webhooks:
        return cast("Webhooks", self._providers.get(admitted.account.provider))

    def _tell(self, account: Account, taken: TakenIn) -> None:
        """In one line for all that were written down together: a thousand reports a second need not
        be a thousand lines."""
        if any(taken):
            if not self._told:
                asyncio.get_running_loop().call_soon(self._tell_of_all)
            self._told.append((account.name, taken))

    def _tell_of_all(self) -> None:
        told, self._told = self._told, []
        counts = TakenIn(*map(sum, zip(*(taken for _, taken in told), strict=True)))
        names = sorted({name for name, _ in told})
        log.info("reports taken in", accounts=names, reports=len(told), **counts._asdict())


def _is_same(secret: str, expected: str) -> bool:
    """In the same time whatever is different."""
    return hmac.compare_digest(secret.encode("utf-8", "replace"), expected.encode())


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
