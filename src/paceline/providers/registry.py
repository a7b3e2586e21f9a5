"""Which drivers this installation has, by name, and how the secrets of their accounts are kept.

Only the look-up lives here; which drivers there are is in ``drivers.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.nearest import did_you_mean
from paceline.engine.ports import Account, Provider
from paceline.engine.ports.sealing import Vault
from paceline.providers import secrets


class Registry:
    """The known providers. A name nobody has registered is refused with those that come close.

    Those that come ``late`` are made when they are first asked for.
    """

    def __init__(
        self,
        providers: Iterable[Provider] = (),
        *,
        late: Mapping[str, Callable[[], Provider]] = MappingProxyType({}),
        vault: Vault | None = None,
    ) -> None:
        self._late = late
        self._vault = vault
        self._by_name: dict[str, Provider] = {}
        for provider in providers:
            if provider.name in self._by_name:
                raise ConflictError(f"there are two providers named {provider.name!r}")
            self._by_name[provider.name] = provider

    def get(self, name: str) -> Provider:
        provider = self._by_name.get(name)
        if provider is None and name in self._late:
            # Two threads may ask at once: whichever is made first is the one for both.
            provider = self._by_name.setdefault(name, self._late[name]())
        if provider is None:
            meant = did_you_mean(name, self.names(), limit=3)
            known = ", ".join(self.names()) or "none"
            raise NotFoundError(
                f"there is no provider {name!r}{meant}",
                key="provider",
                hint=None if meant else f"Known providers: {known}",
            )
        return provider

    def names(self) -> list[str]:
        return sorted(self._by_name.keys() | self._late.keys())

    def vault(self) -> Vault:
        return _Unsealed() if self._vault is None else self._vault

    # Without a vault nothing is stored for longer than a test or a simulation takes.

    def sealed(self, provider: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        if self._vault is None:
            return dict(settings)
        return secrets.seal(settings, self.get(provider).secrets, name, self._vault)

    def unsealed(self, account: Account) -> Account:
        if self._vault is None or not any(map(secrets.is_sealed, account.settings.values())):
            return account
        settings = secrets.unseal(account.settings, account.name, self._vault)
        return replace(account, settings=settings)

    def is_sealed(self, account: Account) -> bool:
        if self._vault is None:
            return True
        ours = self.get(account.provider).secrets
        return not any(
            secrets.is_readable(key, value, ours)
            or (secrets.is_sealed(value) and not self._vault.is_current(value))
            for key, value in account.settings.items()
        )


class _Unsealed:
    """Keeps what it is given as it is."""

    def seal(self, text: str, about: str) -> str:
        return text

    def unseal(self, sealed: str, about: str) -> str:
        return sealed

    def is_current(self, sealed: str) -> bool:
        return True
