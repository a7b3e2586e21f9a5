"""The week as people write it: ``Mon-Thu 09:00-12:00 13:00-18:00, Fri 09:00-16:00``.

Text in, seven tuples of intervals out, and back. What the intervals mean in a zone is in
``hours.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from paceline.core.errors import InputError
from paceline.core.nearest import did_you_mean

Interval = tuple[int, int]
"""Minutes after local midnight: open from, open until (excluded)."""

Day = tuple[Interval, ...]
Week = tuple[Day, ...]
"""Seven days, Monday first."""

WHOLE_DAY: Day = ((0, 24 * 60),)

DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONG_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY_NUMBERS = {
    name.casefold(): number
    for names in (DAY_NAMES, _LONG_NAMES)
    for number, name in enumerate(names)
}
_INTERVAL = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")
_DASH = re.compile(r"\s*[-–]\s*")
_DIGIT = re.compile(r"[0-9]")
_EVERY_DAY = tuple(range(7))
_HINT = "Write them like Mon-Fri 09:00-18:00 America/New_York"


def parse_week(text: str) -> tuple[Week, str | None]:
    """The week, and the name of the zone if one is written at the end."""
    groups = [group.split() for group in _DASH.sub("-", text).split(",")]
    zone_name = None
    if groups[-1] and _is_zone(groups[-1]):
        zone_name = groups[-1].pop()
    week: list[list[Interval]] = [[] for _ in range(7)]
    for group in groups:
        days, intervals = _parse_group(group, text)
        for day in days:
            week[day].extend(intervals)
    return tidy_week(week), zone_name


def _is_zone(words: Sequence[str]) -> bool:
    """The last word is a zone if it stands where only an interval or a zone may stand."""
    last = words[-1]
    if _DIGIT.match(last) or _day_number(last) is not None:
        return False
    return any(_DIGIT.match(word) for word in words[:-1])


def _parse_group(words: Sequence[str], text: str) -> tuple[Sequence[int], list[Interval]]:
    times = [word for word in words if _DIGIT.match(word)]
    if not times:
        raise InputError(f"hours {text!r} lack times such as 09:00-18:00", hint=_HINT)
    before = words.index(times[0])
    for word in words[before:]:
        if word not in times:
            raise InputError(
                f"{word!r} is out of place in hours {text!r}",
                hint="Put a comma before further days, and the time zone once, at the end",
            )
    days = [day for word in words[:before] for day in _parse_days(word)]
    if len(set(days)) < len(days):
        raise InputError(f"hours {text!r} name a day twice")
    return days or _EVERY_DAY, [_parse_interval(word) for word in times]


def _parse_days(word: str) -> list[int]:
    """One day or a range of days; a range may run over the end of the week."""
    first, dash, last = word.partition("-")
    start, end = _known_day(first), _known_day(last if dash else first)
    return [(start + step) % 7 for step in range((end - start) % 7 + 1)]


def _day_number(word: str) -> int | None:
    return _DAY_NUMBERS.get(word.casefold())


def _known_day(word: str) -> int:
    number = _day_number(word)
    if number is None:
        raise InputError(f"unknown day {word!r}{did_you_mean(word, DAY_NAMES)}")
    return number


def _parse_interval(word: str) -> Interval:
    match = _INTERVAL.fullmatch(word)
    if match is None:
        raise InputError(f"{word!r} is not an interval such as 09:00-18:00")
    start_hour, start_minute, end_hour, end_minute = map(int, match.groups())
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    if start_minute > 59 or end_minute > 59 or start >= 24 * 60 or end > 24 * 60:
        raise InputError(f"{word!r} is not within a day", hint="Use 00:00 to 24:00")
    _check_forward(start, end)
    return start, end


def _check_forward(start: int, end: int) -> None:
    written = _print_interval((start, end))
    if start == end:
        raise InputError(f"interval {written} is empty")
    if start > end:
        hint = f"Split it: {_clock(start)}-24:00, and 00:00-{_clock(end)} on the next day"
        raise InputError(f"interval {written} crosses midnight", hint=hint)


def tidy_week(week: Iterable[Iterable[Interval]]) -> Week:
    """The one way to write a week down: sorted, touching intervals joined, nothing overlapping."""
    tidy = tuple(_tidy_day(day) for day in week)
    if len(tidy) != 7:
        raise InputError(f"a week has seven days, not {len(tidy)}")
    if not any(tidy):
        raise InputError("hours never open", hint=_HINT)
    return tidy


def _tidy_day(day: Iterable[Interval]) -> Day:
    joined: list[Interval] = []
    for start, end in sorted(day):
        _check_forward(start, end)
        if start < 0 or end > 24 * 60:
            raise InputError(f"interval {_print_interval((start, end))} is not within a day")
        if joined and start < joined[-1][1]:
            first, second = _print_interval(joined[-1]), _print_interval((start, end))
            raise InputError(f"intervals {first} and {second} overlap")
        touches = joined and start == joined[-1][1]
        joined.append((joined.pop()[0] if touches else start, end))
    return tuple(joined)


def print_week(week: Week) -> str:
    """Days that share their hours are named together; hours of every day need no names."""
    days_of: dict[Day, list[int]] = {}
    for number, day in enumerate(week):
        if day:
            days_of.setdefault(day, []).append(number)
    groups = []
    for day, numbers in days_of.items():
        times = " ".join(_print_interval(interval) for interval in day)
        groups.append(times if len(numbers) == 7 else f"{_print_days(numbers)} {times}")
    return ", ".join(groups)


def _print_days(numbers: Sequence[int]) -> str:
    words: list[str] = []
    first = previous = numbers[0]
    for number in (*numbers[1:], 99):
        if number != previous + 1:
            run = DAY_NAMES[first]
            words.append(run if first == previous else f"{run}-{DAY_NAMES[previous]}")
            first = number
        previous = number
    return " ".join(words)


def _print_interval(interval: Interval) -> str:
    return f"{_clock(interval[0])}-{_clock(interval[1])}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
