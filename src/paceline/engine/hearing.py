"""Hearing: what comes to an account over its own connection, beside the lane that sends on it.

Such an account is open in one place, so whoever has its lane listens; and a lane that listens is
not given back when there is nothing to send. What was heard is written down before it is confirmed:
a process that is killed in between leaves it to be told again, to whoever has the lane next, and
what was taken in twice changes nothing the second time.

Nothing here can harm sending: whatever fails is logged, told to operators where it lasts, and tried
again with growing pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import structlog

from paceline.core.errors import PacelineError, ProviderError, ProviderRefused, StoreError
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.core.states import AccountState
from paceline.engine import alerts
from paceline.engine.commands import returns
from paceline.engine.commands.returns import TakenIn
from paceline.engine.commands.standing import stands
from paceline.engine.drivers import LazyDriver, within_time
from paceline.engine.ports import (
    Account,
    AccountNews,
    Clock,
    Grouped,
    Heard,
    Journal,
    Listens,
    News,
    Providers,
    Tx,
    Typing,
    Work,
)

PAUSE_US = 5 * SECOND
LONGEST_PAUSE_US = MINUTE
"""Between two attempts at listening to an account that is away."""
LOOK_US = 30 * SECOND
"""How often an account is looked at again that somebody has to see to."""
TELL_AFTER_US = 15 * MINUTE
"""How long it is away before operators are told."""
GROUPS_AFTER_US = 10 * MINUTE
GROUPS_EVERY_US = 6 * HOUR
GROUPS_WITHIN_US = 2 * MINUTE
"""Its groups are listed now and then: nobody else can ask while it is open here."""

STOPS = (AccountState.ACTIVE, AccountState.LIMIT_REACHED)
"""States that end when nothing can be heard any more. In the others it is known that something is
wrong, or that a person wants it so."""

log = structlog.get_logger("paceline.hearing")


def listens(providers: Providers, account: Account) -> bool:
    """Whether an account should be open at all times, so that what comes is heard."""
    offers = getattr(providers.get(account.provider), "listens", None)
    if offers is None or account.state is AccountState.SUSPENDED:
        return False
    return cast("Listens", providers.get(account.provider)).listens(account)


def wake(tx: Tx, providers: Providers, at: Instant) -> None:
    """Wake the lanes of all that listen: whoever takes one keeps it."""
    for account in listening(tx, providers):
        tx.lanes.touch(account.id, at)


def listening(tx: Tx, providers: Providers) -> list[Account]:
    # Only those in use, for others need not even be loaded; and mostly none of them listens.
    used = tx.accounts.providers() & set(providers.names())
    heard = {name for name in used if hasattr(providers.get(name), "listens")}
    mine = [one for one in tx.accounts.list() if one.provider in heard] if heard else []
    return [one for one in mine if listens(providers, one)]


class Hearing:
    """Listens for one account as long as its lane runs here."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        providers: Providers,
        driver: LazyDriver,
        account: Account,
        words: OptOut = DEFAULT,
    ) -> None:
        """``words`` are those by which people opt out."""
        self._journal = journal
        self._clock = clock
        self._providers = providers
        self._driver = driver
        self._account = account
        self._words = words
        self._failing_since_at: Instant | None = None
        self._told = False
        self._pause_us = PAUSE_US
        self._groups_at = clock.now() + GROUPS_AFTER_US

    async def run(self) -> None:
        """Until it is called off."""
        while True:
            if not await self._is_wanted():
                await self._clock.sleep(LOOK_US)
                continue
            try:
                await self._listen()
            except ProviderRefused as error:
                await self._refused(error)
                await self._clock.sleep(LOOK_US)
            except (ProviderError, StoreError, TimeoutError) as error:
                log.warning("cannot listen", account=self._account.name, error=str(error))
                await self._fails(str(error) or "no answer in time", at_once=False)
            except Exception as error:
                # A defect of ours. It is told, and what was heard is heard again in a while.
                log.exception("listening failed", account=self._account.name)
                await self._fails(f"a defect of Paceline ({type(error).__name__})", at_once=True)

    async def _listen(self) -> None:
        while True:
            heard = await self._driver.listen()
            await self._take_in(heard)
            if heard.mark:
                await self._driver.confirm(heard.mark)
            await self._works()

    async def _is_wanted(self) -> bool:
        try:
            current = await self._journal.read(lambda tx: tx.accounts.get(self._account.id))
        except StoreError as error:
            log.warning("cannot listen", account=self._account.name, error=str(error))
            return False
        return current.removed_at is None and listens(self._providers, current)

    async def _take_in(self, heard: Heard) -> None:
        """Write down all of it, however long the store is away."""
        typing = sorted({one.chat for one in heard.news if isinstance(one, Typing)})
        news = [one for one in heard.news if not isinstance(one, Typing)]
        if news:
            alone = returns.goes_alone(news, self._words) or returns.may_stop(news)
            taken = await self._written(partial(self._work, news), alone=alone)
            if any(taken):
                log.info("heard", account=self._account.name, **taken._asdict())
        for chat in typing:
            await self._written(partial(self._work, [Typing(chat, 0)]), alone=True)

    def _work(self, news: Sequence[News], tx: Tx) -> TakenIn:
        returns.prepare(tx, news, self._words)
        current = tx.accounts.get(self._account.id)
        returns.hold(tx, current, news)
        return returns.take_in(tx, current, news, self._clock.now(), self._words)

    async def _written(self, work: Work[TakenIn], *, alone: bool) -> TakenIn:
        while True:
            try:
                return await self._journal.write(work, alone=alone, talk=None if alone else 0)
            except StoreError as error:
                log.warning("not taken in yet", account=self._account.name, error=str(error))
                await self._clock.sleep(PAUSE_US)

    # ------------------------------------------------------------------ when it goes wrong, or well

    async def _refused(self, error: ProviderRefused) -> None:
        """Somebody has to see to it; nothing can be sent then, either."""
        name, now = self._account.name, self._clock.now()
        log.warning("cannot listen", account=name, error=str(error))
        news = AccountNews("refused", str(error).removeprefix(f"{name}: "), now)

        def work(tx: Tx) -> None:
            returns.prepare(tx, [news], self._words)
            current = tx.accounts.get(self._account.id)
            if current.state in STOPS:
                returns.hold(tx, current, [news])
                stands(tx, current, news, now)

        await self._try(work, alone=True)

    async def _fails(self, reason: str, *, at_once: bool) -> None:
        now, account = self._clock.now(), self._account
        since_at = self._failing_since_at = self._failing_since_at or now
        if not self._told and (at_once or now - since_at >= TELL_AFTER_US):
            self._told = True
            await self._try(lambda tx: alerts.mailbox_fails(tx, account, reason, now))
        await self._clock.sleep(self._pause_us)
        self._pause_us = min(2 * self._pause_us, LONGEST_PAUSE_US)

    async def _works(self) -> None:
        now, account = self._clock.now(), self._account
        self._failing_since_at, self._pause_us = None, PAUSE_US
        if self._told:
            self._told = False
            await self._try(lambda tx: alerts.mailbox_works(tx, account, now))
        if now >= self._groups_at and self._driver.capabilities.groups:
            self._groups_at = now + GROUPS_EVERY_US
            await self._note_groups(now)

    async def _note_groups(self, now: Instant) -> None:
        try:
            driver = cast("Grouped", await self._driver.open())
            found = await within_time(driver.groups(), GROUPS_WITHIN_US)
            await self._journal.write(lambda tx: tx.groups.put(self._account.id, found, now))
        except (PacelineError, TimeoutError) as error:
            log.info("groups were not listed", account=self._account.name, error=str(error))

    async def _try(self, work: Work[None], *, alone: bool = False) -> None:
        """What is told to operators is tried once: the next failure tells it again."""
        try:
            await self._journal.write(work, alone=alone)
        except StoreError as error:
            self._told = False
            log.warning("not written down", account=self._account.name, error=str(error))
