"""The address at which an account's provider reports by itself, and the secret in it.

The secret is stored sealed, apart from the account's settings: those are its provider's. Whoever
shows it is believed as far as the provider has no proof of its own to ask for.
"""

from __future__ import annotations

import secrets
from urllib.parse import quote

from paceline.core.errors import InputError
from paceline.engine.ports import Account, Provider, Providers, Tx
from paceline.engine.ports.sealing import SEALED

PATH = "/hooks"
_SECRET_BYTES = 24


def reports_by_itself(provider: Provider) -> bool:
    """Whether anything could come to such an address."""
    return hasattr(provider, "parse") or hasattr(provider, "read_letter")


def secret_of(tx: Tx, providers: Providers, account: Account) -> str | None:
    """The secret in the account's address; None where none was made, ``VaultError`` where it cannot
    be read here."""
    stored = tx.settings.get(_place(account))
    return None if stored is None else _readable(providers, account, stored)


def ensure_secret(tx: Tx, providers: Providers, account: Account, *, new: bool = False) -> str:
    """The secret; made if there is none yet, or if another one is wanted."""
    if not reports_by_itself(providers.get(account.provider)):
        raise InputError(f"{account.provider} reports nothing over HTTP")
    tx.settings.fence()
    found = None if new else secret_of(tx, providers, account)
    if found is None:
        found = secrets.token_urlsafe(_SECRET_BYTES)
        _store(tx, providers, account, found)
    return found


def url_of(base_url: str, account: Account, secret: str) -> str:
    return f"{base_url}{PATH}/{quote(account.name, safe='@+')}/{secret}"


def is_sealed(tx: Tx, providers: Providers, account: Account) -> bool:
    """Whether it is stored as one is stored now: sealed, with the key in use."""
    stored = tx.settings.get(_place(account))
    return stored is None or providers.vault().is_current(stored)


def seal(tx: Tx, providers: Providers, account: Account) -> None:
    """Seal it with the key in use."""
    found = secret_of(tx, providers, account)
    if found is not None:
        _store(tx, providers, account, found)


def _store(tx: Tx, providers: Providers, account: Account, secret: str) -> None:
    tx.settings.put(_place(account), providers.vault().seal(secret, _about(account)))


def _readable(providers: Providers, account: Account, stored: str) -> str:
    if not stored.startswith(SEALED):
        return stored
    return providers.vault().unseal(stored, _about(account))


def _place(account: Account) -> str:
    return f"hook.{account.id}"


def _about(account: Account) -> str:
    """What it is bound to: it cannot be given to another account."""
    return f"{account.name}: hook"
