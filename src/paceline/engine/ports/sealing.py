"""What the engine asks of whoever keeps secrets unreadable where they are stored."""

from __future__ import annotations

from typing import Protocol

SEALED = "sealed:"
"""What a sealed text begins with; nothing that is typed does."""


class Vault(Protocol):
    """Seals texts with a key that is not in the database."""

    def seal(self, text: str, about: str) -> str:
        """The text so that only whoever has the key can read it, and only as what it is about:
        copied elsewhere it opens nothing. It begins with ``SEALED``."""
        ...

    def unseal(self, sealed: str, about: str) -> str:
        """The text again; ``VaultError`` where the key is another one, or none."""
        ...

    def is_current(self, sealed: str) -> bool:
        """Whether it was sealed with the key that is used for new ones."""
        ...
