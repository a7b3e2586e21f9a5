"""Secrets of accounts, sealed: those that are not yet, and all of them under another key."""

from __future__ import annotations

from paceline.engine.commands import hooking
from paceline.engine.ports import Account, Providers, Tx
from paceline.engine.ports.sealing import SEALED


def unsealed_accounts(tx: Tx, providers: Providers) -> list[Account]:
    """Accounts with a secret that is readable where it is stored, or sealed with an older key."""
    found = tx.accounts.list(with_removed=True)
    return [account for account in found if not _is_sealed(tx, providers, account)]


def _is_sealed(tx: Tx, providers: Providers, account: Account) -> bool:
    return providers.is_sealed(account) and hooking.is_sealed(tx, providers, account)


def keys_of(tx: Tx, account: Account) -> set[str]:
    """What the keys are called that an account's secrets were sealed with."""
    stored = [*account.settings.values(), tx.settings.get(hooking.place_of(account.id))]
    sealed = [one for one in stored if isinstance(one, str) and one.startswith(SEALED)]
    return {one.removeprefix(SEALED).partition(":")[0] for one in sealed}


def open_all(tx: Tx, providers: Providers) -> None:
    """Read every secret that is to be sealed anew; ``VaultError`` where one cannot be read."""
    for account in unsealed_accounts(tx, providers):
        providers.unsealed(account)
        hooking.secret_of(tx, providers, account)


def seal_all(tx: Tx, providers: Providers) -> int:
    """Seal every secret with the key that is used for new ones; of how many accounts.

    Their settings mean what they did before, so no lane has to know. Where one of them cannot be
    read it is a ``VaultError``, and nothing is changed.
    """
    waiting = unsealed_accounts(tx, providers)
    for account in waiting:
        plain = providers.unsealed(account).settings
        sealed = providers.sealed(account.provider, account.name, plain)
        tx.accounts.update(account.id, settings=sealed)
        hooking.seal(tx, providers, account)
    return len(waiting)
