"""Instants: plain whole microseconds since the Unix epoch, and how people read and write them.

No clock lives here; "now" is always an argument. Durations are in ``durations.py``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from paceline.core import zones
from paceline.core.errors import InputError
from paceline.core.zones import EPOCH

Instant = int
"""Microseconds since 1970-01-01T00:00:00Z. Names of such values end in ``_at``."""

MILLISECOND = 1_000
SECOND = 1_000 * MILLISECOND
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_YEARS = range(1970, 3000)
"""What may be written. Beyond it, adding a horizon would leave what a ``datetime`` can hold."""


def from_datetime(aware: datetime) -> Instant:
    """The instant of a ``datetime`` that knows its zone."""
    if aware.utcoffset() is None:
        raise InputError(f"{aware.isoformat()} has no time zone")
    return zones.microseconds(aware - EPOCH)


def to_datetime(at: Instant) -> datetime:
    """The instant as a ``datetime`` in UTC."""
    return EPOCH + timedelta(microseconds=at)


def iso(at: Instant) -> str:
    """ISO 8601 in UTC, with a fraction only where there is one: ``2026-11-15T09:00:00Z``."""
    return to_datetime(at).replace(tzinfo=None).isoformat() + "Z"


def local_text(at: Instant, zone: str) -> str:
    """As an operator reads it, to the minute: ``2026-11-16 09:00 America/New_York``."""
    return f"{zones.wall_at(at, zone):%Y-%m-%d %H:%M} {zone}"


def parse_instant(text: str, zone: str = "UTC") -> Instant:
    """Reads ISO 8601; without an offset of its own it is a wall-clock time in ``zone``."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            f"{text!r} is not a date and time", hint="Write it like 2026-11-15T09:00:00Z"
        ) from None
    if parsed.year not in _YEARS:
        raise InputError(f"{text!r} is not between the years {_YEARS[0]} and {_YEARS[-1]}")
    if parsed.tzinfo is None:
        return zones.at_wall(parsed, zone)
    return from_datetime(parsed.astimezone(UTC))


def earlier(one: Instant | None, other: Instant | None) -> Instant | None:
    """The earlier of two instants, either of which may be missing."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
