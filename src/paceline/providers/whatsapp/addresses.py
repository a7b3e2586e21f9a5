"""Addresses as WhatsApp writes them, and as targets are written here.

A person is ``+4915112345678`` here and ``4915112345678@s.whatsapp.net`` there, a group is
``…@g.us`` in both. Some people hide their number: they are known by ``…@lid`` alone.
"""

from __future__ import annotations

import re

PEOPLE = "s.whatsapp.net"
HIDDEN = "lid"
GROUPS = "g.us"

_PHONE = re.compile(r"\+?([1-9]\d{6,14})")
_JID = re.compile(r"(\d[\d-]{4,39})(?::\d+)?@([a-z.]+)")


def jid_of(target: str) -> str | None:
    """Where a message to this target goes; None if it can go nowhere."""
    written = target.strip().lower()
    phone = _PHONE.fullmatch(written)
    if phone:
        return f"{phone[1]}@{PEOPLE}"
    jid = _JID.fullmatch(written)
    if jid is None:
        return None
    user, server = jid[1], "s.whatsapp.net" if jid[2] == "c.us" else jid[2]
    if server not in (PEOPLE, HIDDEN, GROUPS) or ("-" in user and server != GROUPS):
        return None
    return f"{user}@{server}"


def address_of(jid: str) -> str:
    """The same the other way round: a person by their number, where it is known."""
    user, _, server = jid.partition("@")
    user = user.partition(":")[0]
    return f"+{user}" if server == PEOPLE and user.isdecimal() else f"{user}@{server}"


def is_group(jid: str) -> bool:
    return jid.endswith(f"@{GROUPS}")


def is_person(jid: str) -> bool:
    """Whether it is somebody known by their number."""
    return jid.endswith(f"@{PEOPLE}")
