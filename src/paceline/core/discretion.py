"""Keeping people's addresses out of texts that are not about them alone.

Providers repeat whom a message was for in what they answer, and such an answer goes far: it pauses
accounts and campaigns, is counted among the reasons of an alert, and told to operators elsewhere.
Whose message it was stands beside it where that matters. Without the address the same trouble reads
the same for everybody, and somebody who is to be forgotten is not in there to be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

RECIPIENT = "(recipient)"

NAMES = ("name", "first_name", "last_name")
"""Fields of a target that say who somebody is."""

SHORTEST = 3
"""Characters; what is shorter is found in half of all words."""

_NUMBER = re.compile(r"\+?(\d{7,15})")
_BETWEEN = r"[\s().\-/]*"
_BEGINS, _ENDS = r"(?<![\w+-])(?<!\w[.@])", r"(?![\w-])(?![.@+]\w)"


def discreet(text: str, target: str, fields: Mapping[str, str]) -> str:
    """What was said of one message, without saying whose."""
    if not text:
        return text
    names = [fields[key] for key in NAMES if key in fields]
    return without(text, [target], names, RECIPIENT)


def without(text: str, addresses: Iterable[str], names: Iterable[str], instead: str) -> str:
    """A text in which something else stands for these addresses, however they are spelled, and for
    these names as they are."""
    told = [one for one in addresses if len(one) >= SHORTEST and _may_hold(text, one)]
    spelled = [_spellings(address) for address in told]
    spelled += [
        f"(?-i:{re.escape(name)})" for name in names if len(name) >= SHORTEST and name in text
    ]
    if not text or not spelled:
        return text
    # The longest first: a name may be the beginning of an address.
    found = "|".join(sorted(spelled, key=len, reverse=True))
    return re.sub(f"{_BEGINS}(?:{found}){_ENDS}", lambda _: instead, text, flags=re.IGNORECASE)


def _may_hold(text: str, address: str) -> bool:
    """Mostly nobody is named, and that is seen at once: to make a pattern of an address takes far
    longer than to look for it."""
    if not (text.isascii() and address.isascii()) or _NUMBER.fullmatch(address):
        return True
    return address.lower() in text.lower()


def _spellings(address: str) -> str:
    """An address as a pattern. A number may be written with or without its plus, in groups, or as
    the name under which WhatsApp knows it."""
    number = _NUMBER.fullmatch(address)
    if number is None:
        return re.escape(address)
    return rf"(?:\+|00)?{_BETWEEN.join(number[1])}(?:@(?:s\.whatsapp\.net|c\.us))?"
