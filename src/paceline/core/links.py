"""What an address of the web may be made of to stand in the header of a letter.

One rule for all: whoever takes an address as a setting writes it so that every link below it is one
that letters bear, and whoever writes letters looks once more. Pure.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from paceline.core.errors import InputError
from paceline.core.hosts import host_name

LONGEST = 900
"""Characters: a line has 998 at most (RFC 5322, 2.1.1), and begins with the header's name."""
LONGEST_BASE = 800
"""Characters of an address that links begin with; what names a message comes after it."""

_LINK = re.compile(rf"https?://[\x21-\x3b\x3d\x3f-\x7e]{{1,{LONGEST}}}")
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER, _PATH = "%:!$&'()*+,;=", "%/:@!$&'()*+,;="
"""What stands in them as it is, besides letters and digits."""
_HINT = "Write it like https://paceline.example.com"


def is_link(text: str) -> bool:
    """Whether a letter can bear it, between < and >."""
    return len(text) <= LONGEST and _LINK.fullmatch(text) is not None


def base_of(written: str) -> str:
    """An address with nothing after its path, as links begin with it: the host in ASCII (IDNA), and
    escaped what has to be."""
    wrong = InputError(f"{written!r} is not an http or https address", hint=_HINT)
    try:
        parts = urlsplit(written)
        host, port = parts.hostname, parts.port
        user = quote(parts.netloc.rpartition("@")[0], safe=_USER)
        path = quote(parts.path, safe=_PATH).rstrip("/")
    except ValueError:
        raise wrong from None
    named = host_name((host or "").removesuffix("."))
    if parts.scheme not in ("http", "https") or not named or not _is_one_word(written):
        raise wrong
    if parts.query or parts.fragment:
        raise InputError(f"{written!r} has more than a path", hint=_HINT)
    if _NO_ESCAPE.search(path) or {".", ".."} & set(unquote(path).split("/")):
        raise InputError(f"{written!r} has a path that nobody can call so", hint=_HINT)
    shown = f"[{named}]" if ":" in named else named
    at = f"{user}@{shown}" if user else shown
    base = f"{parts.scheme}://{at}{'' if port is None else f':{port}'}{path}"
    if len(base) > LONGEST_BASE or not is_link(base):
        raise InputError(f"{written[:100]!r} cannot begin the links in a letter", hint=_HINT)
    return base


def _is_one_word(written: str) -> bool:
    return written.isprintable() and not any(map(str.isspace, written))
