"""Bars for a terminal: how many on which day, as wide as there is room and as long as is bearable.

Lines of text only; what is counted is decided elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from rich.console import Console

MOST_ROWS = 60
"""More days than that are shown as weeks, and more weeks as months."""
WIDEST = 60
"""A bar that is longer is not read any better."""
NARROWEST = 8

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ONE_DAY = timedelta(days=1)


def chart(days: Mapping[str, int], console: Console) -> Iterator[str]:
    """A line for every day from the first to the last, or for every week or month."""
    counts = {date.fromisoformat(day): count for day, count in days.items() if count}
    if not counts:
        return
    rows = _rows(counts)
    most = max(count for _, count in rows)
    label = max(len(name) for name, _ in rows)
    number = len(str(most))
    width = max(NARROWEST, min(WIDEST, console.width - label - number - 3))
    blocks = console.encoding.lower().startswith("utf")
    for name, count in rows:
        bar = _bar(count, most, width, blocks=blocks)
        yield f"{name:<{label}}  {bar} {count}" if count else name


def _rows(counts: Mapping[date, int]) -> list[tuple[str, int]]:
    first, last = min(counts), max(counts)
    if (last - first).days < MOST_ROWS:
        days = [first + number * _ONE_DAY for number in range((last - first).days + 1)]
        return [(f"{day:%a} {day.isoformat()}", counts.get(day, 0)) for day in days]
    weeks: Counter[date] = Counter()
    for day, count in counts.items():
        weeks[day - day.weekday() * _ONE_DAY] += count
    monday, final = min(weeks), max(weeks)
    number = (final - monday).days // 7 + 1
    if number <= MOST_ROWS:
        mondays = [monday + 7 * n * _ONE_DAY for n in range(number)]
        return [(f"week of {day.isoformat()}", weeks.get(day, 0)) for day in mondays]
    return _months(counts)


def _months(counts: Mapping[date, int]) -> list[tuple[str, int]]:
    months: Counter[int] = Counter()
    for day, count in counts.items():
        months[day.year * 12 + day.month - 1] += count
    span = range(min(months), max(months) + 1)
    return [(f"{month // 12}-{month % 12 + 1:02}", months.get(month, 0)) for month in span]


def _bar(count: int, most: int, width: int, *, blocks: bool) -> str:
    """As long as its share of the longest; whatever is not nothing is seen."""
    if not blocks:
        return "#" * max(1, round(count * width / most)) if count else ""
    eighths = max(1, round(count * width * 8 / most)) if count else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
