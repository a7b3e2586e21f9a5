"""The groups a number is a member of, from the lists in which Wassenger tells them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.engine.ports import Group
from paceline.providers.answers import name_of, one_line

PAGE = 100
MOST_PAGES = 500
"""No number is a member of as many groups, even where a page holds but twenty."""

GROUP = "@g.us"
_ADMINS = ("admins", "admin")


def read_groups(listed: list[Any], own_phone: str) -> list[Group]:
    """The groups of one page. What is no group of people, a channel for one, is left out."""
    found = (_read_group(entry, own_phone) for entry in listed if isinstance(entry, dict))
    return [group for group in found if group is not None]


def _read_group(entry: Mapping[str, Any], own_phone: str) -> Group | None:
    name = name_of(entry.get("wid")) or name_of(entry.get("id")) or ""
    if not name.lower().endswith(GROUP):
        return None
    people = entry.get("participants")
    participants = people if isinstance(people, list) else []
    return Group(
        name.lower(),
        one_line(name_of(entry.get("name")) or ""),
        _size(entry, participants),
        _may_send(entry, participants, own_phone),
    )


def _size(entry: Mapping[str, Any], participants: list[Any]) -> int | None:
    total = entry.get("totalParticipants")
    if isinstance(total, int) and not isinstance(total, bool) and total >= 0:
        return total
    return len(participants) or None


def _may_send(entry: Mapping[str, Any], participants: list[Any], own_phone: str) -> bool:
    if entry.get("isReadOnly") is True:
        return False
    permissions = entry.get("permissions")
    only = permissions.get("send") if isinstance(permissions, dict) else None
    if only not in _ADMINS:
        return True
    # Wassenger says that only admins write here, but not whether we are one.
    return any(_is_admin(one, own_phone) for one in participants)


def _is_admin(participant: object, own_phone: str) -> bool:
    if not isinstance(participant, dict) or not own_phone:
        return False
    written = name_of(participant.get("phone")) or name_of(participant.get("wid")) or ""
    digits = written.partition("@")[0].removeprefix("+")
    admin = participant.get("isAdmin") is True or participant.get("admin") is True
    return admin and digits == own_phone.removeprefix("+")
