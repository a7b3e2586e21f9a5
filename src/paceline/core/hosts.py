"""Names that a server can have, as they are called and said to others: in ASCII, label by label."""

from __future__ import annotations

import ipaddress
import re

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LITERAL = re.compile(r"\[(?:ipv6:)?([0-9a-f:.]{2,45})\]", re.IGNORECASE)
LONGEST = 253


def host_name(text: str) -> str | None:
    """A name or a number by which a server is called; None where none can be called so."""
    if _is_number(text):
        return text.lower()
    name = text.lower() if text.isascii() else _in_ascii(text)
    labels = name.split(".")
    fits = len(name) <= LONGEST and all(_LABEL.fullmatch(label) for label in labels)
    # What ends in a number is meant as an address (RFC 1123, 2.1), and would be one.
    return name if fits and not labels[-1].isdecimal() else None


def own_name(text: str) -> str | None:
    """What a server may be told as our name: a host's, or an address in brackets (RFC 5321, 4.1.3);
    None where that says no such thing."""
    literal = _LITERAL.fullmatch(text)
    if literal is not None:
        return text if _is_number(literal[1]) else None
    if _is_number(text):
        return f"[IPv6:{text}]" if ":" in text else f"[{text}]"
    return host_name(text)


def _in_ascii(text: str) -> str:
    # Comes with what checks addresses, and is hardly ever needed.
    import idna

    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except UnicodeError:
        return ""


def _is_number(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
