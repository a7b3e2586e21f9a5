"""The names of letters: made from our own name of a message, and found again in what comes back.

A Message-ID is the same for every attempt at a message, so that whoever gets two of them sees that
they are one. It is written in small letters and digits only, because some mail systems change
capitals, and carries a few letters that tell ours from somebody else's of the same form. The
address that a letter comes back to may have a signed name of it instead (``core/names.py``), which
is recognised here and believed elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from functools import lru_cache

from paceline.core.names import signed_in, spelled

_ALIKE = 20
"""So many bytes are the same in many keys of an installation: its own name, and what their numbers
begin with. They are spelled without regard to the rest, because five bytes are eight letters."""

_OURS = re.compile(
    r"(?<![a-z0-9.])pl\.([a-z2-7]{2,300})\.([a-z2-7]{6})(?![a-z0-9.])", re.IGNORECASE
)


def token(key: str) -> str:
    """The key as it stands in a Message-ID, or in the address that bounces go to."""
    raw = key.encode()
    return f"pl.{_beginning(raw[:_ALIKE])}{spelled(raw[_ALIKE:])}.{_proof(raw)}"


def id_of(key: str, domain: str) -> str:
    return f"<{token(key)}@{domain}>"


def key_in(text: str) -> str | None:
    """Our key in a Message-ID, a list of them, or a bounce address, or what looks like a signed
    name; None if there is neither.

    Of several the last: of what a message refers to, that is what it answers.
    """
    keys = [_read(found[1], found[2]) for found in _OURS.finditer(text)]
    return next((key for key in reversed(keys) if key is not None), None) or signed_in(text)


def _read(letters: str, proof: str) -> str | None:
    upper = letters.upper()
    try:
        key = base64.b32decode(upper + "=" * (-len(upper) % 8)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return key if _proof(key.encode()) == proof.lower() else None


def _proof(raw: bytes) -> str:
    # Five bytes make eight letters: the rest need not be written for six of them.
    return spelled(hashlib.sha256(b"paceline " + raw).digest()[:5])[:6]


@lru_cache(maxsize=64)
def _beginning(raw: bytes) -> str:
    return spelled(raw)
