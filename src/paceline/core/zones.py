"""IANA time zones by name, and the one way between a wall clock and an instant.

Everything here is exact: whole microseconds, no floats. Days and weeks are built on top of it in
``calendar.py``, business hours in ``hours.py``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from paceline.core.errors import InputError
from paceline.core.nearest import did_you_mean

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_NOT_A_PLACE = frozenset({"Factory", "localtime", "posixrules"})
"""Names in the zone database that mean another zone on every machine, or none at all."""


@cache
def zone(name: str) -> ZoneInfo:
    """The zone of that name. Spelling counts, because the name is stored and printed back."""
    if name not in zone_names():
        raise InputError(f"unknown time zone {name!r}{did_you_mean(name, zone_names(), limit=3)}")
    return ZoneInfo(name)


@cache
def zone_names() -> frozenset[str]:
    """Every zone name that may be written."""
    return frozenset(available_timezones() - _NOT_A_PLACE)


def microseconds(span: timedelta) -> int:
    """A ``timedelta`` as a plain count, without the rounding of ``total_seconds``."""
    return span // _MICROSECOND


def wall_at(at: int, name: str) -> datetime:
    """What a clock on the wall shows at an instant."""
    return (EPOCH + at * _MICROSECOND).astimezone(zone(name))


def offset_us(at: int, name: str) -> int:
    """How far the wall clock is ahead of UTC at an instant."""
    offset = wall_at(at, name).utcoffset()
    assert offset is not None, "a zone always knows its offset"
    return microseconds(offset)


def at_wall(wall: datetime, name: str) -> int:
    """The first instant at which a wall clock shows ``wall`` (given without a zone).

    A time in an overlap happens twice, and its first occurrence counts. A time in a gap never
    happens: the first instant after the gap stands in for it.
    """
    bare = wall.replace(tzinfo=None)
    at = microseconds(bare.replace(tzinfo=zone(name), fold=0) - EPOCH)
    if wall_at(at, name).replace(tzinfo=None, fold=0) == bare:
        return at
    # In a gap, fold=1 reckons with the offset after the change and so lands before the change.
    before = microseconds(bare.replace(tzinfo=zone(name), fold=1) - EPOCH)
    return first_change(before, at, name)


def first_change(low_at: int, high_at: int, name: str) -> int:
    """The instant in ``(low_at, high_at]`` at which the offset becomes another.

    The caller knows that it changes exactly once in between.
    """
    before_us = offset_us(low_at, name)
    while high_at - low_at > 1:
        middle_at = (low_at + high_at) // 2
        if offset_us(middle_at, name) == before_us:
            low_at = middle_at
        else:
            high_at = middle_at
    return high_at
