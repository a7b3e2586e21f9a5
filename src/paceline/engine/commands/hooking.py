"""The address at which an account's provider reports by itself, and the secret in it.

The secret is stored sealed, apart from the account's settings: those are its provider's. Whoever
shows it is believed as far as the provider has no proof of its own to ask for. Beside it is stored
what it can be known again by and not made from, so that a process that cannot unseal anything still
tells the provider, who should come again, from everybody else.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple
from urllib.parse import quote

from paceline.core.errors import InputError, VaultError
from paceline.engine.ports import Account, Provider, Providers, Tx
from paceline.engine.ports.listening import Looked
from paceline.engine.ports.sealing import SEALED

PATH = "/hooks"
_SECRET_BYTES = 24


def reports_by_itself(provider: Provider) -> bool:
    """Whether anything could come to such an address."""
    return hasattr(provider, "parse") or hasattr(provider, "read_letter")


class Stored(NamedTuple):
    """What somebody is let in by, as it is stored: neither can be read without the vault."""

    account: Account
    secret: str
    digest: str | None = None
    """By which the secret is known again; None where it was stored before there was one."""

    def is_current(self, looked: Looked) -> bool:
        """Whether all of it is still so."""
        account = looked.accounts[self.account.id]
        return (
            account.removed_at is None
            and account.settings == self.account.settings
            and looked.settings.get(place_of(account.id)) == self.secret
        )


def stored_for(tx: Tx, name: str) -> Stored | None:
    """The account of this name with the secret in its address; None where there is either not."""
    account = tx.accounts.find(name)
    secret = None if account is None else tx.settings.get(place_of(account.id))
    if account is None or secret is None:
        return None
    return Stored(account, secret, tx.settings.get(_digest_place(account.id)))


def digest_in(providers: Providers, stored: Stored) -> str | None:
    """By what the secret is known again; None where that cannot be said here."""
    if stored.digest is not None:
        return stored.digest
    try:
        return digest_of(_readable(providers, stored.account, stored.secret))
    except VaultError:
        return None


def digest_of(secret: str) -> str:
    """It is long, and nobody chose it: whoever has this cannot find out what it was made from."""
    return hashlib.sha256(secret.encode()).hexdigest()


def secret_of(tx: Tx, providers: Providers, account: Account) -> str | None:
    """The secret in the account's address; None where none was made, ``VaultError`` where it cannot
    be read here."""
    stored = tx.settings.get(place_of(account.id))
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
    stored = tx.settings.get(place_of(account.id))
    if stored is None:
        return True
    known = tx.settings.get(_digest_place(account.id)) is not None
    return known and providers.vault().is_current(stored)


def seal(tx: Tx, providers: Providers, account: Account) -> None:
    """Seal it with the key in use."""
    found = secret_of(tx, providers, account)
    if found is not None:
        _store(tx, providers, account, found)


def _store(tx: Tx, providers: Providers, account: Account, secret: str) -> None:
    tx.settings.put(place_of(account.id), providers.vault().seal(secret, _about(account)))
    tx.settings.put(_digest_place(account.id), digest_of(secret))


def _readable(providers: Providers, account: Account, stored: str) -> str:
    if not stored.startswith(SEALED):
        return stored
    return providers.vault().unseal(stored, _about(account))


def place_of(account_id: int) -> str:
    """Where the secret of an account is kept, among the settings."""
    return f"hook.{account_id}"


def _digest_place(account_id: int) -> str:
    return f"{place_of(account_id)}.digest"


def _about(account: Account) -> str:
    """What it is bound to: it cannot be given to another account."""
    return f"{account.name}: hook"
