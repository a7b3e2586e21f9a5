"""The groups a number is a member of, from the lists in which WAHA tells them. Pure.

WAHA passes on what its engine knows, so a group is written in three ways: GOWS with capitals, NOWEB
as a table by id, WEBJS as a chat with the group inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.engine.ports import Group
from paceline.providers.answers import name_of, one_line
from paceline.providers.waha.wire import GROUP, HIDDEN, PERSON

PAGE = 20
"""All members come with every group, and there may be a thousand of them."""
MOST_PAGES = 500
"""No number is a member of as many groups."""

_ADMINS = ("admin", "superadmin")
_ADMIN_FIELDS = ("IsAdmin", "IsSuperAdmin", "isAdmin", "isSuperAdmin")
_PEOPLE = "@s.whatsapp.net"


def listed_in(read: object) -> list[dict[str, Any]] | None:
    """The groups of one page, as they are written; None if it is no such list."""
    entries = list(read.values()) if isinstance(read, dict) else read
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        return None
    return entries


def read_groups(listed: list[dict[str, Any]], own: frozenset[str]) -> list[Group]:
    """The groups of one page. ``own`` are the ids under which the number itself is a member. What
    is no group of people, or one that the number has left, is left out."""
    found = (_read_group(entry, own) for entry in listed)
    return [group for group in found if group is not None]


def own_ids(me: object) -> frozenset[str]:
    """The ids of a number among the members of a group: its phone, and the one it hides behind."""
    told = me if isinstance(me, dict) else {}
    return frozenset(plain for key in ("id", "lid") if (plain := plain_id(told.get(key))))


def plain_id(raw: object) -> str:
    """Somebody's id in one spelling: without the device, and with the one name for a server."""
    if isinstance(raw, dict):
        raw = raw.get("_serialized")
    user, at, server = (name_of(raw) or "").lower().partition("@")
    if not at:
        return ""
    return f"{user.partition(':')[0]}@{server}".replace(_PEOPLE, PERSON)


def _read_group(entry: Mapping[str, Any], own: frozenset[str]) -> Group | None:
    inner = entry.get("groupMetadata")
    told: Mapping[str, Any] = {**entry, **inner} if isinstance(inner, dict) else entry
    name = plain_id(told.get("JID") or told.get("id"))
    if not name.endswith(GROUP):
        return None
    people = told.get("Participants") or told.get("participants")
    members = [one for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    us = [one for one in members if own & set(_ids_of(one))]
    if members and not us and _knows_itself(own):
        return None
    return Group(
        name,
        one_line(_first(told, "Name", "subject", "name")),
        _size(told, members),
        _may_send(told, us),
    )


def _knows_itself(own: frozenset[str]) -> bool:
    """Whether nobody in a list of members could be us without our noticing."""
    return {PERSON, HIDDEN} <= {f"@{one.partition('@')[2]}" for one in own}


def _ids_of(member: Mapping[str, Any]) -> Iterator[str]:
    for key in ("JID", "PhoneNumber", "LID", "id", "phoneNumber", "lid", "pn"):
        plain = plain_id(member.get(key))
        if plain:
            yield plain


def _size(told: Mapping[str, Any], members: list[dict[str, Any]]) -> int | None:
    for key in ("ParticipantCount", "size"):
        total = told.get(key)
        if isinstance(total, int) and not isinstance(total, bool) and total > 0:
            return total
    return len(members) or None


def _may_send(told: Mapping[str, Any], us: list[dict[str, Any]]) -> bool:
    admin = any(
        one.get("admin") in _ADMINS or any(one.get(key) is True for key in _ADMIN_FIELDS)
        for one in us
    )
    only_admins = any(told.get(key) is True for key in ("IsAnnounce", "announce"))
    return admin or not (only_admins or told.get("isReadOnly") is True)


def _first(told: Mapping[str, Any], *keys: str) -> str:
    return next((name for key in keys if (name := name_of(told.get(key)))), "")
