"""Names of messages that nobody can make up: for the address that a letter comes back to.

A provider's key (``LaneContext.key``) says which installation and which message it is, and whoever
was ever sent one could count on from there. A signed name cannot be counted on. It has small
letters and digits only, because mail systems change capitals, and is short enough to leave most of
the 64 characters before an @ to whoever chooses the address.
"""

from __future__ import annotations

import base64
import hmac
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

LONGEST = 42
"""Characters of a name, even if deliveries were numbered with 18 digits."""

_PROOF_BYTES = 10
_SIGNED = re.compile(
    r"(?<![a-z0-9])pl([0-9]{1,18})-([0-9]{1,4})-([a-z2-7]{16})(?![a-z0-9])", re.IGNORECASE
)


class Named(NamedTuple):
    """The part of a delivery that a name means."""

    delivery_id: int
    part: int


@dataclass(frozen=True, slots=True)
class Names:
    key: bytes = field(repr=False)

    def of(self, delivery_id: int, part: int) -> str:
        return f"pl{delivery_id}-{part}-{self._proof(delivery_id, part)}"

    def meant_by(self, name: str) -> Named | None:
        """What a name means; None for one that was never made here."""
        found = _SIGNED.fullmatch(name)
        if found is None:
            return None
        named = Named(int(found[1]), int(found[2]))
        same = hmac.compare_digest(self._proof(*named), found[3].lower())
        return named if same else None

    def _proof(self, delivery_id: int, part: int) -> str:
        digest = hmac.digest(self.key, f"name {delivery_id} {part}".encode(), sha256)
        return base64.b32encode(digest[:_PROOF_BYTES]).decode().lower()


def signed_in(text: str) -> str | None:
    """The last thing in a text that looks like a signed name; whether it is one is not known."""
    found = [match[0] for match in _SIGNED.finditer(text)]
    return found[-1].lower() if found else None
