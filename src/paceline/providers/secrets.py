"""The secrets among an account's settings, as they are stored and as a driver needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from paceline.engine.ports.sealing import SEALED, Vault
from paceline.providers.options import FROM_ENVIRONMENT


def seal(
    settings: Mapping[str, Any], secrets: Collection[str], name: str, vault: Vault
) -> dict[str, Any]:
    """The settings of the account ``name`` without a secret that anybody could read."""
    return {
        key: vault.seal(value, _about(name, key)) if is_readable(key, value, secrets) else value
        for key, value in settings.items()
    }


def unseal(settings: Mapping[str, Any], name: str, vault: Vault) -> dict[str, Any]:
    return {
        key: vault.unseal(value, _about(name, key)) if is_sealed(value) else value
        for key, value in settings.items()
    }


def is_readable(key: str, value: object, secrets: Collection[str]) -> bool:
    """Whether it is a secret that anybody could read; one in the environment is only named."""
    if key not in secrets or not isinstance(value, str) or not value:
        return False
    return not value.startswith((SEALED, FROM_ENVIRONMENT))


def is_sealed(value: object) -> bool:
    return isinstance(value, str) and value.startswith(SEALED)


def _about(name: str, key: str) -> str:
    """What a secret is bound to: it cannot be given to another account, or another purpose."""
    return f"{name}: {key}"
