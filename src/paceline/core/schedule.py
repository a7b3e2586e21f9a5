"""When a reminder fires: once, or by a cron rule, by the wall clock of one zone.

A rule is worked out on the wall clock and then turned into instants. So a time that a change of
offset skips fires as soon as the clocks go on, together with every other one that is skipped, and
a time that comes twice fires the first time only. Windows are in ``hours.py``; what becomes of a
firing that nobody was there for is the engine's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile

from cronsim import CronSim, CronSimError

from paceline.core import zones
from paceline.core.errors import InputError
from paceline.core.instants import HOUR, Instant, iso, parse_instant

USUAL_HOUR = 9
"""At which hour somebody is reminded who was only told the day."""

EXAMPLE = 'like "0 9 * * MON-FRI": minute, hour, day of the month, month, weekday'

_FIELDS = 5
_LOOKS_BACK_US = 26 * HOUR
"""From how far back the wall clock is followed: no change of offset is larger."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Either an instant or a cron expression; never both."""

    zone: str
    at: Instant | None = None
    cron: str | None = None

    @classmethod
    def once(cls, text: str, zone: str) -> Rule:
        """Reads ``2026-11-20``, which is that day at nine, or ``2026-11-20 14:30``."""
        bare = text.strip()
        try:
            day = datetime.strptime(bare, "%Y-%m-%d")
        except ValueError:
            return cls(zone, at=parse_instant(bare, zone))
        return cls(zone, at=zones.at_wall(day.replace(hour=USUAL_HOUR), zone))

    @classmethod
    def by_cron(cls, text: str, zone: str) -> Rule:
        """Reads five fields, and refuses what never comes, like the 30th of February."""
        zones.zone(zone)
        tidy = " ".join(text.split()).upper()
        if len(tidy.split()) != _FIELDS:
            raise InputError(f"{text!r} is no cron rule: it takes five fields", hint=EXAMPLE)
        try:
            rule = cls(zone, cron=tidy)
            found = rule.after(0)
        except CronSimError as error:
            raise InputError(f"{text!r} is no cron rule: {error}", hint=EXAMPLE) from None
        if found is None:
            raise InputError(f"{text!r} never comes", hint=EXAMPLE)
        return rule

    @classmethod
    def parse(cls, stored: str, zone: str) -> Rule:
        """As ``str`` prints it, and as it is stored."""
        if len(stored.split()) == _FIELDS:
            return cls(zone, cron=stored)
        return cls(zone, at=parse_instant(stored))

    def __str__(self) -> str:
        return self.cron if self.cron is not None else iso(self.at or 0)

    @property
    def recurs(self) -> bool:
        return self.cron is not None

    def after(self, at: Instant) -> Instant | None:
        """The first firing after that instant; None if there is none any more."""
        return next(self.firings(at), None)

    def firings(self, after: Instant) -> Iterator[Instant]:
        """All firings after that instant, in order, each once; a cron rule has no end."""
        if self.cron is None:
            if self.at is not None and self.at > after:
                yield self.at
            return
        wall = zones.wall_at(after - _LOOKS_BACK_US, self.zone).replace(tzinfo=None)
        latest = after
        for fires in CronSim(self.cron, wall):
            at = zones.at_wall(fires, self.zone)
            # Several that lie in one gap are one and the same afterwards.
            if at > latest:
                latest = at
                yield at

    def between(self, after: Instant, until: Instant, most: int) -> tuple[list[Instant], bool]:
        """The last firings after the one instant and not after the other, at most so many; and
        whether there were more before them. A rule for every minute that nobody looked after for a
        year is not gone through from its beginning."""
        back_us = HOUR
        while True:
            since = max(after, until - back_us)
            found = list(takewhile(lambda at: at <= until, self.firings(since)))
            if since == after or len(found) > most:
                return found[-most:], len(found) > most
            back_us *= 8

    def next_few(self, after: Instant, count: int) -> list[Instant]:
        """The next firings, for people to see."""
        return list(islice(self.firings(after), count))
