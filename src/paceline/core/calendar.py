"""Days and weeks by the wall clock of a zone, exact through every change of its offset.

A day starts at the first instant whose wall date is that date: where midnight is skipped, that is
when the clock jumps. Days cut time into pieces without gap or overlap, so every send counts for
exactly one day. Business hours, which go by the wall time itself, are in ``hours.py``.

Lanes ask these questions for every message, so answers are remembered. What is remembered depends
on the zone database alone; forgetting it changes nothing but speed.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from paceline.core import zones
from paceline.core.instants import DAY, Instant

zone = zones.zone

OffsetPiece = tuple[Instant, Instant, int]
"""From, to (excluded), and the offset from UTC that holds in between."""

_ONE_DAY = timedelta(days=1)


def offset_pieces(zone: str, from_at: Instant, to_at: Instant) -> list[OffsetPiece]:
    """Cuts ``[from_at, to_at)`` where the zone's offset changes."""
    pieces: list[OffsetPiece] = []
    for utc_day in range(from_at // DAY, -(-to_at // DAY)):
        for piece_at, piece_end_at, offset_us in _pieces_of(utc_day, zone):
            start_at, end_at = max(piece_at, from_at), min(piece_end_at, to_at)
            if start_at >= end_at:
                continue
            if pieces and pieces[-1][2] == offset_us:
                start_at = pieces.pop()[0]
            pieces.append((start_at, end_at, offset_us))
    return pieces


@lru_cache(maxsize=32_768)
def _pieces_of(utc_day: int, zone: str) -> tuple[OffsetPiece, ...]:
    """The pieces of one UTC day.

    Looking at both ends of the day is enough: in the whole zone database no two changes of a
    zone's offset are less than 95 hours apart.
    """
    start_at, end_at = utc_day * DAY, (utc_day + 1) * DAY
    before_us, after_us = zones.offset_us(start_at, zone), zones.offset_us(end_at - 1, zone)
    if before_us == after_us:
        return ((start_at, end_at, before_us),)
    change_at = zones.first_change(start_at, end_at - 1, zone)
    return (start_at, change_at, before_us), (change_at, end_at, after_us)


@lru_cache(maxsize=32_768)
def day_start(day: date, zone: str) -> Instant:
    """The first instant of a date; a date the zone leaves out starts with the next one."""
    return zones.at_wall(datetime(day.year, day.month, day.day), zone)


def day_of(at: Instant, zone: str) -> date:
    """The date whose day contains the instant."""
    return place_of(at, zone).day


def day_start_of(at: Instant, zone: str) -> Instant:
    """When the day that contains the instant started."""
    return place_of(at, zone).day_at


def next_day_start(at: Instant, zone: str) -> Instant:
    """When the next day starts."""
    return place_of(at, zone).next_day_at


def week_start(at: Instant, zone: str) -> Instant:
    """When the week that contains the instant started, on its Monday."""
    return place_of(at, zone).week_at


def next_week_start(at: Instant, zone: str) -> Instant:
    """When the next week starts, on Monday."""
    return place_of(at, zone).next_week_at


class Place(NamedTuple):
    """One day of a zone and the week around it."""

    day_at: Instant
    next_day_at: Instant
    day: date
    week_at: Instant
    next_week_at: Instant


_latest: dict[str, Place] = {}
"""The place found last in each zone. Consecutive questions are nearly always about one day."""


def place_of(at: Instant, zone: str) -> Place:
    """The day and the week that contain an instant."""
    latest = _latest.get(zone)
    if latest is not None and latest.day_at <= at < latest.next_day_at:
        return latest
    day = zones.wall_at(at, zone).date()
    # Where the clock is put back over midnight, the old date returns for a while after the new
    # day has started; those instants belong to the new day.
    while day_start(day + _ONE_DAY, zone) <= at:
        day += _ONE_DAY
    place = _latest[zone] = _place_around(day, zone)
    return place


@lru_cache(maxsize=4_096)
def _place_around(day: date, zone: str) -> Place:
    monday = day - day.weekday() * _ONE_DAY
    return Place(
        day_at=day_start(day, zone),
        next_day_at=day_start(day + _ONE_DAY, zone),
        day=day,
        week_at=day_start(monday, zone),
        next_week_at=day_start(monday + 7 * _ONE_DAY, zone),
    )
