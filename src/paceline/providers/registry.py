"""Which drivers this installation has, by name.

Only the look-up lives here; which drivers there are is decided where everything is wired.
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.nearest import did_you_mean
from paceline.engine.ports import Provider


class Registry:
    """The known providers. A name nobody has registered is refused with those that come close."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._by_name: dict[str, Provider] = {}
        for provider in providers:
            if provider.name in self._by_name:
                raise ConflictError(f"there are two providers named {provider.name!r}")
            self._by_name[provider.name] = provider

    def get(self, name: str) -> Provider:
        provider = self._by_name.get(name)
        if provider is None:
            meant = did_you_mean(name, self._by_name, limit=3)
            known = ", ".join(self.names()) or "none"
            raise NotFoundError(
                f"there is no provider {name!r}{meant}",
                key="provider",
                hint=None if meant else f"Known providers: {known}",
            )
        return provider

    def names(self) -> list[str]:
        return sorted(self._by_name)
