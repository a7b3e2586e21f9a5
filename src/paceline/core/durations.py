"""Durations and spans of durations, as people write them: ``200ms``, ``1h30m``, ``5m..20m``.

Values are whole microseconds. Everything that is read here prints back to the same value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND, WEEK

LONGEST_US = 3_660 * DAY
"""Ten years. Anything longer is a slip of the pen, and would overflow a date before long."""

_UNITS = {
    "w": WEEK,
    "d": DAY,
    "h": HOUR,
    "min": MINUTE,
    "m": MINUTE,
    "s": SECOND,
    "ms": MILLISECOND,
    "us": 1,
}
_PIECE = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?\s*(min|ms|us|w|d|h|m|s)\s*")
_HINT = "Write it like 200ms, 30s, 5m or 1h30m"


def parse_duration(text: str) -> int:
    """Reads ``"1h30m"`` into microseconds; a fraction is fine while it is exact (``"1.5s"``)."""
    stripped = text.strip()
    if stripped.startswith("-"):
        raise InputError(f"duration {text!r} is negative")
    position, total_us, last_unit_us = 0, 0, LONGEST_US
    while position < len(stripped):
        piece = _PIECE.match(stripped, position)
        if piece is None:
            break
        whole, fraction, unit = piece.groups()
        if _UNITS[unit] >= last_unit_us:
            raise InputError(f"duration {text!r} must name each unit once, the largest first")
        last_unit_us = _UNITS[unit]
        total_us += _exact(whole, fraction or "", last_unit_us, text)
        position = piece.end()
    if not stripped or position < len(stripped):
        raise InputError(f"{text!r} is not a duration", hint=_HINT)
    if total_us > LONGEST_US:
        raise InputError(f"duration {text!r} is longer than {print_duration(LONGEST_US)}")
    return total_us


def _exact(whole: str, fraction: str, unit_us: int, text: str) -> int:
    parts = int("1" + "0" * len(fraction))
    value_us, rest = divmod(int(whole + fraction) * unit_us, parts)
    if rest:
        raise InputError(f"duration {text!r} is finer than a microsecond")
    return value_us


def print_duration(us: int) -> str:
    """The shortest text people read at a glance: ``1m30s``, ``200ms``, ``2w``, ``0s``.

    Weeks appear only alone, since nobody counts in weeks and days. A negative value, which only
    a difference can be, is shown with its sign.
    """
    if us < 0:
        return f"-{print_duration(-us)}"
    if us and us % WEEK == 0:
        return f"{us // WEEK}w"
    text = ""
    for unit, unit_us in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        count, us = divmod(us, unit_us)
        text += f"{count}{unit}" if count else ""
    if us >= SECOND or (us and text):
        return f"{text}{_decimal(us, SECOND)}s"
    if us >= MILLISECOND:
        return f"{_decimal(us, MILLISECOND)}ms"
    return f"{us}us" if us else text or "0s"


def _decimal(us: int, unit_us: int) -> str:
    whole, rest = divmod(us, unit_us)
    digits = len(str(unit_us)) - 1
    return f"{whole}.{rest:0{digits}}".rstrip("0") if rest else str(whole)


class Chance(Protocol):
    """Where draws come from: a ``random.Random``, or anything that draws as one does."""

    def randint(self, low: int, high: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Span:
    """A duration that is drawn anew each time between two bounds, or is always the same."""

    low_us: int
    high_us: int

    def __post_init__(self) -> None:
        if self.low_us < 0:
            raise InputError(f"span {self} is negative")
        if self.low_us > self.high_us:
            raise InputError(f"span {self} is the wrong way round", hint="Put the shorter first")

    @classmethod
    def parse(cls, text: str) -> Span:
        """Reads ``"5m..20m"``, or ``"3s"`` for a span without play."""
        low, dots, high = text.partition("..")
        low_us = parse_duration(low)
        return cls(low_us, parse_duration(high) if dots else low_us)

    def __str__(self) -> str:
        low = print_duration(self.low_us)
        return low if self.low_us == self.high_us else f"{low}..{print_duration(self.high_us)}"

    def draw(self, rng: Chance) -> int:
        """A duration between the bounds, both included, each equally likely."""
        return (
            self.low_us if self.low_us == self.high_us else rng.randint(self.low_us, self.high_us)
        )

    def holds(self, us: int) -> bool:
        """Whether a duration lies between the bounds."""
        return self.low_us <= us <= self.high_us

    def clamp(self, us: int) -> int:
        """The duration, moved to the nearer bound if it lies outside."""
        return min(max(us, self.low_us), self.high_us)
