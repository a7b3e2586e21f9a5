"""Names of messages that nobody can make up, for whatever comes back from outside.

A provider's key (``LaneContext.key``) says which installation and which message it is, and stands
in every Message-ID. So that nobody can count on from one, it ends with a seal. The address that a
letter comes back to has a signed name instead: it has small letters and digits only, because mail
systems change capitals, and is short enough to leave most of the 64 characters before an @ to
whoever chooses the address.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

LONGEST = 42
"""Characters of a name, even if deliveries were numbered with 18 digits."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [one + other for one in _LETTERS for other in _LETTERS]
_SHIFTS = range(70, -1, -10)
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

    def seal(self, delivery_id: int, part: int) -> str:
        """What a provider's key of it ends with, so that nobody who has seen one can make others:
        a bounce of a letter that somebody else got would be believed."""
        return self._signed(f"key {delivery_id} {part}")

    def is_sealed(self, named: Named, seal: str) -> bool:
        return hmac.compare_digest(self.seal(*named).encode(), seal.lower().encode())

    def _proof(self, delivery_id: int, part: int) -> str:
        return self._signed(f"name {delivery_id} {part}")

    def _signed(self, text: str) -> str:
        """Sixteen letters and digits that only the key can make of a text."""
        # BLAKE2 takes a key by itself, and a third of the time of an HMAC. Every message has a name
        # or two.
        proof = int.from_bytes(blake2b(text.encode(), digest_size=10, key=self.key).digest())
        return _in_pairs(proof, _SHIFTS)


def spelled(raw: bytes) -> str:
    """Bytes in base 32, as it is usual (RFC 4648), but in small letters and without padding."""
    bits, pairs = len(raw) * 8, -(-len(raw) * 4 // 5)
    number = int.from_bytes(raw) << pairs * 10 - bits
    return _in_pairs(number, range(pairs * 10 - 10, -1, -10))[: -(-bits // 5)]


def _in_pairs(number: int, shifts: range) -> str:
    """Base 32, two letters at a time: the standard library takes twice as long."""
    return "".join([_PAIRS[number >> shift & 1023] for shift in shifts])


def signed_in(text: str) -> str | None:
    """The last thing in a text that looks like a signed name; whether it is one is not known."""
    found = [match[0] for match in _SIGNED.finditer(text)]
    return found[-1].lower() if found else None
