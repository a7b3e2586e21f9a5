"""Visiting an account beside its lane: to see whether it can be opened, and what groups it is in.

Nothing is sent, and nothing is paced. An account that can be open in one place only is left alone
while a service has it.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from paceline.core.errors import ConflictError, InputError, PacelineError, ProviderError
from paceline.core.instants import SECOND
from paceline.engine.drivers import within_time
from paceline.engine.hearing import listens
from paceline.engine.ports import (
    Account,
    Advising,
    Driver,
    Group,
    Grouped,
    Mailboxes,
    Providers,
    Remarking,
    Tx,
)

OPEN_WITHIN_US = 60 * SECOND
GROUPS_WITHIN_US = 120 * SECOND
CLOSE_WITHIN_US = 10 * SECOND
ADVISE_WITHIN_US = 60 * SECOND
"""Longer than anything takes that is looked up for it: who advises says himself what he could not
see, and is called off only where he hangs."""


class Visited(NamedTuple):
    """What came of it: nothing wrong, or one line that says what is. Of an account that can send,
    the line may say what its provider thinks of it."""

    ok: bool
    told: str
    advice: tuple[str, ...] = ()
    """What an operator should know besides, a line each."""


def in_use(tx: Tx, account: Account) -> bool:
    """Whether a living process has the account's lane, and so may have the account open."""
    owner = tx.lanes.get(account.id).owner
    living = {one.id for one in tx.processes.list() if one.lease_until_at > tx.now}
    return owner in living


def refuse_in_use(account: Account, providers: Providers, *, used: bool) -> None:
    """A second session would throw out the one that is sending."""
    provider = providers.get(account.provider)
    if used and provider.capabilities_of(account.settings).exclusive:
        raise ConflictError(
            f"{account.name} is open in the running service, and can be open in one place only",
            hint=f"Pause it first: paceline account pause {account.name}",
        )


def is_kept_open(account: Account, providers: Providers, *, used: bool) -> bool:
    """Whether a running service has the account open at all times, so that nobody else can: what
    there is to know of it is what the service has found out."""
    return used and listens(providers, account)


async def check(account: Account, providers: Providers) -> Visited:
    """Open the account and close it again."""
    provider = providers.get(account.provider)
    try:
        provider.check(providers.unsealed(account).settings)
        driver = await _opened(account, providers)
        remark = driver.remark if isinstance(driver, Remarking) else ""
        advice = await _advice(driver)
        await within_time(driver.close(), CLOSE_WITHIN_US)
        advice += await _mailbox(account, providers)
    except PacelineError as error:
        # Whoever asks has named the account, and is told of it alone.
        return Visited(False, str(error).removeprefix(f"{account.name}: "))
    except TimeoutError:
        return Visited(False, f"no answer within {OPEN_WITHIN_US // SECOND} seconds")
    told = f"it can be opened; {remark}" if remark else "it can be opened"
    return Visited(True, told, tuple(advice))


async def _advice(driver: Driver) -> list[str]:
    if not isinstance(driver, Advising):
        return []
    try:
        return await within_time(driver.advise(), ADVISE_WITHIN_US)
    except TimeoutError:
        return [f"advice: none within {ADVISE_WITHIN_US / SECOND:g} seconds"]


async def _mailbox(account: Account, providers: Providers) -> list[str]:
    """Whether what comes to the account can be read, where its provider could read it."""
    provider = providers.get(account.provider)
    if not hasattr(provider, "has_mailbox"):
        return []
    mailboxes = cast("Mailboxes", provider)
    if not mailboxes.has_mailbox(account.settings):
        return ["mailbox: not watched; bounces and answers that come to it are not noticed"]
    try:
        opening = mailboxes.open_mailbox(providers.unsealed(account))
        mailbox = await within_time(opening, OPEN_WITHIN_US)
        await within_time(mailbox.close(), CLOSE_WITHIN_US)
    except ProviderError as error:
        return [f"mailbox: it cannot be read: {str(error).removeprefix(f'{account.name}: ')}"]
    except TimeoutError:
        return ["mailbox: it cannot be read: no answer in time"]
    return ["mailbox: it can be read"]


async def groups(account: Account, providers: Providers) -> list[Group]:
    """The groups it is a member of, as the provider has them now."""
    provider = providers.get(account.provider)
    if not provider.capabilities_of(account.settings).groups:
        raise InputError(f"{account.provider} has no groups")
    try:
        driver = await _opened(account, providers)
        try:
            return await within_time(cast("Grouped", driver).groups(), GROUPS_WITHIN_US)
        finally:
            await within_time(driver.close(), CLOSE_WITHIN_US)
    except TimeoutError:
        raise ProviderError(f"{account.provider} did not answer in time") from None


async def _opened(account: Account, providers: Providers) -> Driver:
    return await within_time(_open(account, providers), OPEN_WITHIN_US)


async def _open(account: Account, providers: Providers) -> Driver:
    return await providers.get(account.provider).open(providers.unsealed(account))
