"""The watcher: reads what comes to accounts' mailboxes, each by one process of the fleet.

What a mailbox brings and how far it has been read are written in one transaction: a process that is
killed in between leaves neither, and whoever reads next is given the same again. What was taken in
twice changes nothing the second time. That is also how a bounce is dealt with that comes before its
letter is settled: the mailbox is read again from the same place until it is.

Nothing here can harm sending: whatever fails is logged, kept as the mailbox's problem, and tried
again later. A mailbox that does not let us in is told to operators.
"""

from __future__ import annotations

import asyncio
from typing import cast

import structlog

from paceline.core.errors import ProviderError, ProviderRefused, StoreError
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.engine import alerts
from paceline.engine.commands import returns
from paceline.engine.commands.returns import TakenIn
from paceline.engine.drivers import CLOSE_WITHIN_US, within_time
from paceline.engine.looking import Looker
from paceline.engine.ports import Account, Clock, Journal, Mailbox, Mailboxes, News, Providers, Tx
from paceline.engine.ports.inbox import Watch

LOOK_EVERY_US = 30 * SECOND
"""How often mailboxes are looked for that nobody reads."""
LEASE_US = 3 * MINUTE
WAIT_US = MINUTE
"""How long a mailbox is waited for at a time: well within a lease."""
OPEN_WITHIN_US = 30 * SECOND
EARLY_US = 10 * SECOND
"""After how long a report is read again that came before its letter was settled."""
DEFECT_US = MINUTE
LONGEST_REST_US = HOUR
"""How long a mailbox rests that we cannot take in what it brings from."""
TELL_AFTER_US = 15 * MINUTE
"""How long a mailbox is away before operators are told; one that refuses us is told at once."""

log = structlog.get_logger("paceline.inbox")


class Watcher(Looker):
    """Runs beside the lanes, for all mailboxes that this process reads."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        providers: Providers,
        *,
        look_every_us: int = LOOK_EVERY_US,
        wait_us: int = WAIT_US,
        lease_us: int = LEASE_US,
        words: OptOut = DEFAULT,
    ) -> None:
        """``words`` are those by which people opt out."""
        super().__init__(clock, look_every_us, log, "mailboxes")
        self._words = words
        self._journal = journal
        self._providers = providers
        self._wait_us = wait_us
        self._lease_us = lease_us
        self._reading: dict[int, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """Begin to read every mailbox that nobody reads."""
        self._reading = {name: task for name, task in self._reading.items() if not task.done()}
        accounts, held = await self._journal.read(lambda tx: (tx.accounts.list(), _held(tx)))
        for account in accounts:
            ours_to_read = account.id not in self._reading and account.id not in held
            if ours_to_read and self._has_mailbox(account):
                task = asyncio.create_task(self._read(account), name=f"mailbox {account.name}")
                self._reading[account.id] = task

    def _has_mailbox(self, account: Account) -> bool:
        provider = self._providers.get(account.provider)
        offers = getattr(provider, "has_mailbox", None)
        return offers is not None and bool(offers(account.settings))

    async def end(self) -> None:
        reading = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    # ------------------------------------------------------------------ one mailbox

    async def _read(self, account: Account) -> None:
        """Read it for as long as it is ours and can be read. Whatever ends that is tried again by
        the next look."""
        try:
            held = await self._journal.write(lambda tx: tx.watches.take(account.id, self._lease_us))
            if held is not None:
                await self._hold(account, held)
        except StoreError as error:
            log.warning("mailbox is given up", account=account.name, error=str(error))
        except Exception:
            log.exception("reading a mailbox failed", account=account.name)

    async def _hold(self, account: Account, held: Watch) -> None:
        mailbox: Mailbox | None = None
        ours = True
        try:
            provider = cast("Mailboxes", self._providers.get(account.provider))
            opening = provider.open_mailbox(self._providers.unsealed(account))
            mailbox = await within_time(opening, OPEN_WITHIN_US)
            goes_on = True
            while goes_on:
                cursor, news = await mailbox.next(held.cursor, self._wait_us)
                after, goes_on = await self._take_in(account, held, cursor, news)
                if after is None:
                    ours = False
                    return
                if news and after.cursor == held.cursor:
                    await self._clock.sleep(EARLY_US)
                held = after
        except (ProviderError, TimeoutError) as error:
            ours = False
            await self._failed(account, held, str(error) or "no answer in time", error)
        except StoreError:
            raise
        except Exception as error:
            # A defect of ours. The same letter would fail at every look, in every process.
            ours = False
            log.exception("reading a mailbox failed", account=account.name)
            # Its words may be those of a letter.
            await self._failed(
                account, held, f"a defect of Paceline ({type(error).__name__})", error
            )
        finally:
            if mailbox is not None:
                await _close(mailbox, account)
            if ours:
                await self._give_back(held)

    async def _take_in(
        self, account: Account, held: Watch, cursor: str, news: list[News]
    ) -> tuple[Watch | None, bool]:
        """Write down all of it, and that we have it. None where somebody else reads the mailbox by
        now; and whether to go on, which an account that was changed or removed ends."""
        now = self._clock.now()

        def work(tx: Tx) -> tuple[Watch | None, bool, TakenIn]:
            returns.prepare(tx, news, self._words, writes=True)
            after = tx.watches.change(
                held, self._lease_us, cursor=cursor, read_at=now, problem="", failing_since_at=None
            )
            if after is None:
                return None, False, TakenIn()
            current = tx.accounts.get(account.id)
            returns.hold(tx, current, news)
            # Asked first: should it be settled while we look, it is read once more for nothing.
            early = returns.come_early(tx, current, news, now)
            taken = returns.take_in(tx, current, news, now, self._words)
            if early:
                # Then we are given all of it again, and the rest of it changes nothing any more.
                after = tx.watches.change(after, self._lease_us, cursor=held.cursor)
            if held.problem:
                alerts.mailbox_works(tx, current, now)
            same = current.removed_at is None and current.settings == account.settings
            return after, same, taken

        # Whoever needs the fence needs a transaction of its own.
        after, goes_on, taken = await self._journal.write(work, alone=bool(news))
        if any(taken):
            log.info("mail taken in", account=account.name, **taken._asdict())
        return after, goes_on

    async def _failed(self, account: Account, held: Watch, reason: str, error: Exception) -> None:
        refused = isinstance(error, ProviderRefused)
        defect = not isinstance(error, ProviderError | TimeoutError)
        now = self._clock.now()
        log.warning("mailbox cannot be read", account=account.name, reason=reason)

        def work(tx: Tx) -> None:
            since_at: Instant = held.failing_since_at or now
            changes = {"problem": reason, "failing_since_at": since_at}
            # After a defect nobody reads it for a while, and for longer the longer that lasts.
            rest_us = min(max(now - since_at, DEFECT_US), LONGEST_REST_US) if defect else None
            if tx.watches.change(held, rest_us, **changes) is None:
                return
            if defect or refused or now - since_at >= TELL_AFTER_US:
                alerts.mailbox_fails(tx, account, reason, now)

        await self._journal.write(work)

    async def _give_back(self, held: Watch) -> None:
        try:
            await self._journal.write(lambda tx: tx.watches.change(held, None))
        except StoreError as error:
            # Then others wait until the lease is over.
            log.warning("mailbox is not given back", error=str(error))


def _held(tx: Tx) -> set[int]:
    """Accounts whose mailbox somebody reads: to try and take those would be a write in vain, in
    every process and at every look."""
    leases = ((watch.account_id, watch.lease_until_at) for watch in tx.watches.list())
    return {
        account_id for account_id, until_at in leases if until_at is not None and until_at > tx.now
    }


async def _close(mailbox: Mailbox, account: Account) -> None:
    try:
        await within_time(mailbox.close(), CLOSE_WITHIN_US)
    except Exception as error:
        log.warning("mailbox did not close", account=account.name, error=repr(error))
