"""The small values a policy is written in: rates, batches, ladders, percentages, warm-ups.

Each reads a short text, refuses nonsense with a reason, and prints back to the same value. All
arithmetic is on whole numbers, so that a limit is never missed by a rounding error. Settings that
are tables rather than texts are in ``tables.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from paceline.core.durations import LONGEST_US, parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, WEEK

MOST_RETRIES = 10
MOST_BURST = 10_000
_WHOLE_PERCENT = 10_000

_PERIODS = {"s": SECOND, "min": MINUTE, "h": HOUR, "day": DAY, "week": WEEK}
"""How a period is printed after the slash, and what it means."""

_PERIOD_WORDS = _PERIODS | {"sec": SECOND, "m": MINUTE, "hour": HOUR, "d": DAY, "w": WEEK}

_RATE = re.compile(
    r"([0-9]{1,12})(?:\.([0-9]{1,6}))?\s*/\s*([0-9a-z.]+)(?:\s+burst\s+([0-9]{1,9}))?"
)
_BATCH = re.compile(r"([0-9]{1,9})\s+then\s+(\S.*)")
_DOUBLING = re.compile(r"(\S.*?)\s+doubling(?:\s+x([0-9]{1,4}))?")
_PERCENT = re.compile(r"([0-9]{1,5})(?:\.([0-9]{1,2}))?\s*%")
_WARMUP = re.compile(
    r"(?:start\s+)?([0-9]{1,9})\s*,?\s*\+\s*([0-9.]+\s*%)\s*(?:/|a\s|per\s)\s*day,?\s+to\s+([0-9]{1,9})"
)
_COUNTED = re.compile(r"([0-9]{1,9})\s*/\s*([0-9a-z.]+)")


@dataclass(frozen=True, slots=True, order=True)
class Percent:
    """A share, in hundredths of a percent."""

    basis_points: int

    def __post_init__(self) -> None:
        if not 0 <= self.basis_points <= 10 * _WHOLE_PERCENT:
            raise InputError(f"{self} is not between 0% and 1000%")

    @classmethod
    def parse(cls, text: str) -> Percent:
        """Reads ``"5%"`` or ``"2.5%"``."""
        match = _PERCENT.fullmatch(text.strip())
        if match is None:
            raise InputError(
                f"{text!r} is not a percentage",
                hint="Write it like 5% or 2.5%, two decimals at most",
            )
        whole, fraction = match.groups()
        return cls(int(whole) * 100 + int((fraction or "").ljust(2, "0")))

    def __str__(self) -> str:
        whole, fraction = divmod(self.basis_points, 100)
        return f"{whole}.{fraction:02}".rstrip("0") + "%" if fraction else f"{whole}%"

    def exceeded_by(self, part: int, whole: int) -> bool:
        """Whether ``part`` of ``whole`` is more than this share; nothing of nothing is not."""
        return part * _WHOLE_PERCENT > self.basis_points * whole

    @property
    def is_share(self) -> bool:
        """Whether it can be the share of a whole: no rate of errors is above 100 %."""
        return self.basis_points <= _WHOLE_PERCENT


@dataclass(frozen=True, slots=True)
class Rate:
    """So many sends in every period: a token bucket that holds ``burst`` tokens."""

    count: int
    per_us: int
    burst: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or self.per_us < 1:
            raise InputError("a rate must be above zero")
        if self.count > self.per_us:
            raise InputError("a rate may not be above one send per microsecond")
        if self.per_us > LONGEST_US:
            raise InputError(f"a rate's period may not be above {print_duration(LONGEST_US)}")
        if not 1 <= self.burst <= MOST_BURST:
            raise InputError(f"burst {self.burst} is not between 1 and {MOST_BURST}")

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Reads ``"40/min"``, ``"2.5/s"``, ``"1/20s"`` or ``"40/min burst 3"``."""
        match = _RATE.fullmatch(text.strip())
        if match is None:
            raise InputError(
                f"{text!r} is not a rate", hint="Write it like 40/min or 2.5/s burst 3"
            )
        whole, fraction, period, burst = match.groups()
        count, periods = int(whole), 1
        if fraction is not None:
            # 2.5 in one second is 5 in two: whole numbers, and the same thing.
            count, periods = int(whole + fraction), 10 ** len(fraction)
            shared = gcd(count, periods)
            count, periods = count // shared, periods // shared
        return cls(count, _period_us(period, text) * periods, int(burst or 1))

    def __str__(self) -> str:
        burst = f" burst {self.burst}" if self.burst > 1 else ""
        return f"{_print_pace(self.count, self.per_us)}{burst}"

    @property
    def interval_us(self) -> int:
        """The time one token takes, rounded up so that the rate is never exceeded."""
        return -(-self.per_us // self.count)

    @property
    def per_minute(self) -> float:
        """For people and charts; limits are kept with ``interval_us``."""
        return self.count * MINUTE / self.per_us


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often one recipient may be written to."""

    count: int
    per_us: int

    def __post_init__(self) -> None:
        if self.count < 1 or not 1 <= self.per_us <= LONGEST_US:
            raise InputError("a frequency must be above zero, over ten years at most")

    @classmethod
    def parse(cls, text: str) -> Frequency:
        """Reads ``"1/day"`` or ``"2/10d"``."""
        match = _COUNTED.fullmatch(text.strip())
        if match is None:
            raise InputError(f"{text!r} is not a frequency", hint="Write it like 1/day or 2/week")
        return cls(int(match[1]), _period_us(match[2], text))

    def __str__(self) -> str:
        return f"{self.count}/{_print_period(self.per_us)}"


@dataclass(frozen=True, slots=True)
class Batch:
    """After so many sends, a pause on top of the spacing."""

    size: int
    pause_us: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError("a batch needs at least one send")
        if self.pause_us < 1:
            raise InputError("the pause after a batch must be above zero")

    @classmethod
    def parse(cls, text: str) -> Batch:
        """Reads ``"75 then 30s"``."""
        match = _BATCH.fullmatch(text.strip())
        if match is None:
            raise InputError(f"{text!r} is not a batch", hint="Write it like 75 then 30s")
        return cls(int(match[1]), parse_duration(match[2]))

    def __str__(self) -> str:
        return f"{self.size} then {print_duration(self.pause_us)}"


@dataclass(frozen=True, slots=True)
class Ladder:
    """How long to wait before each retry, and with that how often to retry."""

    delays_us: tuple[int, ...]
    doubling: bool = False
    """Written as a base that doubles. The delays say it all; this only remembers the spelling."""

    def __post_init__(self) -> None:
        if self.doubling and not self.delays_us:
            raise InputError("a ladder that doubles needs a base")
        if len(self.delays_us) > MOST_RETRIES:
            raise InputError(f"{len(self.delays_us)} retries are more than {MOST_RETRIES}")
        if any(not 1 <= delay_us <= LONGEST_US for delay_us in self.delays_us):
            raise InputError(
                f"a retry's delay must be above zero and at most {print_duration(LONGEST_US)}"
            )
        if self.doubling and not all(
            delay_us == self.delays_us[0] << rung for rung, delay_us in enumerate(self.delays_us)
        ):
            raise InputError("these delays do not double")

    @classmethod
    def doubled(cls, base_us: int, retries: int = 3) -> Ladder:
        """The base, twice the base, four times the base, …"""
        if not 1 <= retries <= MOST_RETRIES:
            raise InputError(f"{retries} retries are not between 1 and {MOST_RETRIES}")
        return cls(tuple(base_us << rung for rung in range(retries)), doubling=True)

    @classmethod
    def parse(cls, text: str) -> Ladder:
        """Reads ``"1m,5m,15m"``, ``"3s doubling"``, ``"3s doubling x5"`` or ``"none"``."""
        stripped = text.strip()
        if stripped == "none":
            return cls(())
        match = _DOUBLING.fullmatch(stripped)
        if match is not None:
            return cls.doubled(parse_duration(match[1]), int(match[2] or 3))
        return cls(tuple(parse_duration(rung) for rung in stripped.split(",")))

    def __str__(self) -> str:
        if self.doubling:
            times = "" if self.retries == 3 else f" x{self.retries}"
            return f"{print_duration(self.delays_us[0])} doubling{times}"
        return ",".join(print_duration(delay_us) for delay_us in self.delays_us) or "none"

    @property
    def retries(self) -> int:
        return len(self.delays_us)

    def delay_us(self, n: int) -> int:
        """The wait before retry ``n``, which counts from 1 up to ``retries``."""
        if not 1 <= n <= self.retries:
            raise ValueError(f"retry {n} is not on a ladder of {self.retries}")
        return self.delays_us[n - 1]


@dataclass(frozen=True, slots=True)
class Warmup:
    """A daily cap for a young account that grows from day to day until it reaches a limit."""

    start: int
    grow: Percent
    limit: int

    def __post_init__(self) -> None:
        if self.start < 1:
            raise InputError("a warm-up must start with at least one send a day")
        if not self.grow.basis_points:
            raise InputError("a warm-up must grow by more than 0%")
        if self.limit < self.start:
            raise InputError(f"a warm-up's limit {self.limit} is below its start {self.start}")

    @classmethod
    def parse(cls, text: str) -> Warmup:
        """Reads ``"20 +10%/day to 200"``, or the same as people say it: ``"start 20, +10 % a day
        to 200"``."""
        match = _WARMUP.fullmatch(text.strip())
        if match is None:
            raise InputError(f"{text!r} is not a warm-up", hint="Write it like 20 +10%/day to 200")
        return cls(int(match[1]), Percent.parse(match[2]), int(match[3]))

    def __str__(self) -> str:
        return f"{self.start} +{self.grow}/day to {self.limit}"

    def cap_on(self, day_index: int) -> int:
        """The cap on a day, rounded down; day 0 is the first."""
        days, points = max(0, day_index), self.grow.basis_points
        # Growth never falls behind a straight line, which spares the powers of a long-gone ramp.
        if self.start * (_WHOLE_PERCENT + days * points) >= self.limit * _WHOLE_PERCENT:
            return self.limit
        grown: int = self.start * (_WHOLE_PERCENT + points) ** days // _WHOLE_PERCENT**days
        return min(self.limit, grown)


def _period_us(word: str, text: str) -> int:
    """The period after the slash: a word such as ``min``, or a duration such as ``20s``."""
    named_us = _PERIOD_WORDS.get(word)
    if named_us is not None:
        return named_us
    if not word[0].isdigit():
        known = ", ".join(_PERIODS)
        raise InputError(f"unknown period {word!r} in {text!r}", hint=f"Use one of {known}")
    return parse_duration(word)


@lru_cache(maxsize=1_024)
def _print_pace(count: int, per_us: int) -> str:
    """Remembered: a lane says with every message what it waits for."""
    for word, unit_us in _PERIODS.items():
        periods, rest = divmod(per_us, unit_us)
        places = _decimal_places(periods)
        # Below one in a unit people rather say "1/20s"; what could be cancelled was not read
        # from a decimal, and would come back as another pair of numbers.
        if rest or places is None or (periods > 1 and gcd(count, periods) > 1):
            continue
        if count < periods:
            continue
        digits = str(count * 10**places // periods)
        cut = len(digits) - places
        return f"{digits[:cut]}.{digits[cut:]}/{word}" if places else f"{digits}/{word}"
    return f"{count}/{print_duration(per_us)}"


def _print_period(us: int) -> str:
    for word, unit_us in _PERIODS.items():
        if us == unit_us:
            return word
    return print_duration(us)


def _decimal_places(divisor: int) -> int | None:
    """Digits after the point that dividing by it takes, or nothing if they never end."""
    for places in range(7):
        if divisor and 10**places % divisor == 0:
            return places
    return None
