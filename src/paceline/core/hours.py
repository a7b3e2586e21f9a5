"""Business hours: which instants are open, by the wall clock of one zone.

An instant is open when its local time lies in an interval of its local weekday and its local date
is not blacked out. That is worked out per UTC day, where nothing is ever skipped or repeated, so a
change of offset needs no special case; the result is remembered and shared by equal hours.
How hours are written is in ``week.py``; when a day starts, in ``calendar.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from paceline.core.calendar import offset_pieces, zone
from paceline.core.errors import InputError
from paceline.core.instants import DAY, MINUTE, Instant
from paceline.core.week import WHOLE_DAY, Week, parse_week, print_week, tidy_week

HORIZON_DAYS = 400
"""How far ahead an opening or a closing is looked for: a year and a generous holiday."""

MOST_BLACKOUT_DATES = 2_000

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH_WEEKDAY = date(1970, 1, 1).weekday()
_MOST_REMEMBERED_DAYS = 1_000

Stretch = tuple[Instant, Instant]
"""Open from, open until (excluded)."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Weekly opening hours in one zone, less the dates that are blacked out."""

    week: Week
    zone: str
    blackout: frozenset[date] = frozenset()
    _known: dict[int, tuple[Stretch, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        zone(self.zone)
        if len(self.blackout) > MOST_BLACKOUT_DATES:
            raise InputError(f"more than {MOST_BLACKOUT_DATES} blackout dates")
        object.__setattr__(self, "week", tidy_week(self.week))
        object.__setattr__(self, "_known", _remembered(self.week, self.zone, self.blackout))

    @classmethod
    def parse(
        cls, text: str, blackout: Iterable[date] = (), *, default_zone: str | None = None
    ) -> Hours:
        """Reads ``"Mon-Thu 09:00-12:00 13:00-18:00, Fri 09:00-16:00 Europe/Paris"``."""
        week, zone_name = parse_week(text)
        chosen = zone_name or default_zone
        if chosen is None:
            raise InputError(
                f"hours {text!r} name no time zone", hint="End them with one, like Europe/Paris"
            )
        return cls(week, chosen, frozenset(blackout))

    @classmethod
    def window(cls, start_hour: int, end_hour: int, zone: str) -> Hours:
        """The same whole hours every day, as a run's window is given; 24 is midnight."""
        if not (0 <= start_hour <= 24 and 0 <= end_hour <= 24):
            raise InputError(f"window {start_hour}-{end_hour} must lie between 0 and 24")
        if start_hour == end_hour:
            raise InputError(f"window {start_hour}-{end_hour} is empty")
        if start_hour > end_hour:
            raise InputError(
                f"window {start_hour}-{end_hour} crosses midnight",
                hint="A window opens and closes on the same day; 24 is midnight",
            )
        return cls((((start_hour * 60, end_hour * 60),),) * 7, zone)

    @classmethod
    def always(cls, zone: str, blackout: Iterable[date] = ()) -> Hours:
        """Open all day, every day but the blacked out ones."""
        return cls((WHOLE_DAY,) * 7, zone, frozenset(blackout))

    def __str__(self) -> str:
        return f"{print_week(self.week)} {self.zone}"

    def is_open(self, at: Instant) -> bool:
        return any(start_at <= at < end_at for start_at, end_at in self._stretches(at // DAY))

    def next_open(self, at: Instant) -> Instant | None:
        """``at`` itself if open, else the next opening, or nothing within the horizon."""
        first_day = at // DAY
        for utc_day in range(first_day, first_day + HORIZON_DAYS):
            for start_at, end_at in self._stretches(utc_day):
                if at < end_at:
                    return max(at, start_at)
        return None

    def closes_at(self, at: Instant) -> Instant:
        """When the open stretch around ``at`` ends; ``at`` itself if it is closed.

        Intervals that touch are one stretch, also across midnight. Hours that do not close within
        the horizon are said to close at its end.
        """
        if not self.blackout and self.week == (WHOLE_DAY,) * 7:
            return at + HORIZON_DAYS * DAY
        first_day, close_at = at // DAY, at
        for utc_day in range(first_day, first_day + HORIZON_DAYS):
            for start_at, end_at in self._stretches(utc_day):
                if start_at <= close_at < end_at:
                    close_at = end_at
            if close_at < (utc_day + 1) * DAY:
                break
        return close_at

    def _stretches(self, utc_day: int) -> tuple[Stretch, ...]:
        known = self._known.get(utc_day)
        if known is None:
            if len(self._known) >= _MOST_REMEMBERED_DAYS:
                self._known.clear()
            known = self._known[utc_day] = _open_stretches(self, utc_day)
        return known


@lru_cache(maxsize=512)
def _remembered(week: Week, zone: str, blackout: frozenset[date]) -> dict[int, tuple[Stretch, ...]]:
    """One memory for all equal hours: a thousand accounts in one office share it."""
    return {}


def _open_stretches(hours: Hours, utc_day: int) -> tuple[Stretch, ...]:
    """What is open of one UTC day, in order, touching stretches joined."""
    stretches: list[Stretch] = []
    for piece in offset_pieces(hours.zone, utc_day * DAY, (utc_day + 1) * DAY):
        for start_at, end_at in _open_in_piece(hours, *piece):
            touches = stretches and stretches[-1][1] == start_at
            stretches.append((stretches.pop()[0] if touches else start_at, end_at))
    return tuple(stretches)


def _open_in_piece(
    hours: Hours, from_at: Instant, to_at: Instant, offset_us: int
) -> Iterable[Stretch]:
    """What is open while the offset stays the same, where wall time is just UTC plus offset."""
    for local_day in range((from_at + offset_us) // DAY, -(-(to_at + offset_us) // DAY)):
        if hours.blackout and date.fromordinal(local_day + _EPOCH_ORDINAL) in hours.blackout:
            continue
        midnight_at = local_day * DAY - offset_us
        for start, end in hours.week[(local_day + _EPOCH_WEEKDAY) % 7]:
            start_at = max(from_at, midnight_at + start * MINUTE)
            end_at = min(to_at, midnight_at + end * MINUTE)
            if start_at < end_at:
                yield start_at, end_at
