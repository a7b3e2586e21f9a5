"""A password is never repeated, however whoever heard of it spells it.

Servers say what they were sent, with blanks drawn together, with signs escaped, as HTML, in base64.
What they say is stored, shown and logged, so it is looked through first.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from html import escape

from paceline.providers.answers import shortened

MASK = "(secret)"

_ESCAPED = "\\\"'"
_BACKSLASHES = r"\\{0,4}"
"""As many as are left of one that was escaped twice, by the server and by whoever quotes it."""


def masking(username: str, password: str) -> Callable[[str], str]:
    """Makes what was said fit to be stored and shown: without the password, and only then
    shortened."""
    spellings = tuple(_spellings(username, password))
    if not spellings:
        return shortened
    pattern = re.compile("|".join(spellings))
    return lambda text: shortened(pattern.sub(MASK, text))


def _spellings(username: str, password: str) -> Iterable[str]:
    """The password as it may come back: as it went over the wire, and as it is."""
    if not password:
        return
    for whole in (f"\0{username}\0{password}", password):
        yield re.escape(base64.b64encode(whole.encode()).decode().rstrip("="))
    words = password.split()
    # Of blanks alone nothing can be told from other blanks.
    yield r"\s+".join("".join(map(_sign, word)) for word in words) or re.escape(password)


def _sign(sign: str) -> str:
    """One sign as it may be written."""
    ways = {re.escape(sign), re.escape(escape(sign))}
    if not sign.isascii():
        wire = sign.encode()
        ways |= {f"\ufffd{{1,{len(wire)}}}", rf"{_BACKSLASHES}x{ord(sign):02x}"}
        ways.add(rf"{_BACKSLASHES}u{ord(sign):04x}")
        ways.add("".join(rf"{_BACKSLASHES}x{byte:02x}" for byte in wire))
    if sign == "\\":
        return r"\\{1,4}"
    one_of = f"(?:{'|'.join(sorted(ways))})" if len(ways) > 1 else ways.pop()
    return _BACKSLASHES + one_of if sign in _ESCAPED else one_of
