"""A policy: every limit of an account in one immutable value, as data that people write and read.

It reads what ``paceline.toml`` decodes to and prints back as written. What the limits mean is in
``gates.py``; how each value is spelled, in ``grammar.py``, ``tables.py`` and ``hours.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from paceline.core.calendar import day_start, zone
from paceline.core.durations import Chance, Span, parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.grammar import Batch, Frequency, Ladder, Percent, Rate, Warmup
from paceline.core.hours import HORIZON_DAYS, Hours
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import REPLY
from paceline.core.tables import (
    Adaptive,
    Breaker,
    Caps,
    Reader,
    Throttle,
    parsed_by,
    read_key,
    refuse_unknown,
    share_of,
    text_of,
    toml_key,
    toml_value,
    whole_of,
)

__all__ = [
    "KEYS",
    "Adaptive",
    "Batch",
    "Breaker",
    "Caps",
    "Frequency",
    "Hours",
    "Ladder",
    "OnUnknown",
    "Percent",
    "Policy",
    "Rate",
    "Span",
    "Throttle",
    "Warmup",
    "merge",
]

OnUnknown = Literal["hold", "resend"]

MOST_CONCURRENT = 64
LONGEST_TIMEOUT_US = HOUR
OFF = "off"
"""Written for a limit that a preset has and this account shall not have."""

_NO_GAP = Span(0, 0)
_NO_CAPS = Caps()
_BOUNCE_PAUSE = Percent(500)
_RETRY = Ladder((MINUTE, 5 * MINUTE, 15 * MINUTE))
_THROTTLE = Throttle()


@dataclass(frozen=True, slots=True)
class Policy:
    """An account's limits. Without any of them it is bound by nothing but one send at a time."""

    rate: Rate | None = None
    concurrency: int = 1
    part_gap: Span = _NO_GAP
    hours: Hours | None = None
    """Knows the blackout dates too. Where only those are written, it is open all other days."""
    blackout: tuple[date, ...] = ()
    zone: str | None = None
    spacing: Span | None = None
    min_gap_us: int = 0
    batch: Batch | None = None
    daily: Mapping[str, int] = _NO_CAPS
    weekly: Mapping[str, int] = _NO_CAPS
    adaptive: Adaptive | None = None
    breaker: Breaker | None = None
    bounce_pause: Percent | None = _BOUNCE_PAUSE
    warmup: Warmup | None = None
    retry: Ladder = _RETRY
    throttle: Throttle = _THROTTLE
    on_unknown: OnUnknown = "hold"
    timeout_us: int = 30 * SECOND
    """The bound on one call of the provider."""
    per_recipient: Frequency | None = None

    def __post_init__(self) -> None:
        for key in ("daily", "weekly"):
            caps = read_key(key, Caps.from_mapping, getattr(self, key))
            object.__setattr__(self, key, caps or _NO_CAPS)
        if self.zone is not None:
            read_key("zone", parsed_by(zone), self.zone)
        _check_numbers(self)
        _check_spacing(self)
        self._join_blackout()
        _check_opening(self)

    def _join_blackout(self) -> None:
        """Hours and policy speak of the same dates, whichever of them was given them."""
        dates = set(self.blackout) | (self.hours.blackout if self.hours else set())
        object.__setattr__(self, "blackout", tuple(sorted(dates)))
        if dates:
            hours = self.hours or Hours.always(self.day_zone)
            object.__setattr__(self, "hours", replace(hours, blackout=frozenset(dates)))

    @property
    def day_zone(self) -> str:
        """The zone whose midnight starts a new day for the caps."""
        return self.zone or (self.hours.zone if self.hours is not None else "UTC")

    @property
    def capped(self) -> bool:
        """Whether sends are counted by the day or the week."""
        no_caps = self.daily is _NO_CAPS and self.weekly is _NO_CAPS
        return not no_caps or self.warmup is not None

    @property
    def paced(self) -> bool:
        """Whether two sends are ever kept apart."""
        return self.rate is not None or self.spacing is not None or self.min_gap_us > 0

    def cap_on(self, action: str, day_index: int) -> int | None:
        """The cap on a day's sends of one action, narrowed by the warm-up; day 0 is its first."""
        cap = self.daily.get(action)
        # Whoever is answered has written first: a reply needs no warming up.
        if self.warmup is None or action == REPLY:
            return cap
        ramp = self.warmup.cap_on(day_index)
        return ramp if cap is None else min(cap, ramp)

    @property
    def least_gap_us(self) -> int:
        """The least that two paced sends are ever apart."""
        return max(self.min_gap_us, self.spacing.low_us if self.spacing is not None else 0)

    @property
    def longest_gap_us(self) -> int:
        """The most that is ever drawn."""
        return max(self.min_gap_us, self.spacing.high_us if self.spacing is not None else 0)

    def draw_gap_us(self, rng: Chance) -> int:
        """The gap to keep after a send: drawn from the spacing, never under the least gap."""
        return max(self.min_gap_us, self.spacing.draw(rng) if self.spacing is not None else 0)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], *, where: str = "policy") -> Policy:
        """Reads decoded TOML; whatever is wrong is reported with ``where`` and its key."""
        try:
            refuse_unknown(mapping, KEYS)
            values = {KEYS[key].field: _read(key, value) for key, value in mapping.items()}
            if isinstance(values.get("hours"), str):
                values["hours"] = read_key("hours", _hours_reader(mapping), values["hours"])
            return cls(**values)
        except InputError as wrong:
            raise wrong.within(where) from None

    def to_mapping(self) -> dict[str, Any]:
        """What differs from the defaults, as it is written in TOML or stored as JSON."""
        written: dict[str, Any] = {}
        for key, entry in KEYS.items():
            value = getattr(self, entry.field)
            if value != getattr(_DEFAULT, entry.field):
                written[key] = OFF if value is None else entry.write(value)
        return written

    def to_toml(self, name: str) -> str:
        """The text of the section ``[policy.NAME]``."""
        lines = [f"[policy.{toml_key(name)}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in self.to_mapping().items()]
        return "\n".join(lines) + "\n"


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Puts settings on top of each other, later ones winning: default, preset, account's own.

    Caps are merged per action type: an account that sets its e-mail cap keeps the others.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            if key in ("daily", "weekly") and isinstance(value, Mapping):
                merged[key] = {**(below if isinstance(below, Mapping) else {}), **value}
            else:
                merged[key] = value
    return merged


def _check_numbers(policy: Policy) -> None:
    if not 1 <= policy.concurrency <= MOST_CONCURRENT:
        raise InputError(
            f"{policy.concurrency} is not between 1 and {MOST_CONCURRENT}", key="concurrency"
        )
    if not 0 < policy.timeout_us <= LONGEST_TIMEOUT_US:
        longest = print_duration(LONGEST_TIMEOUT_US)
        text = print_duration(policy.timeout_us)
        raise InputError(f"{text} is not above zero and at most {longest}", key="timeout")
    if policy.min_gap_us < 0:
        raise InputError("must not be negative", key="min_gap")
    if policy.on_unknown not in ("hold", "resend"):
        raise InputError(f"{policy.on_unknown!r} is neither 'hold' nor 'resend'", key="on_unknown")


def _check_spacing(policy: Policy) -> None:
    """The adaptive delay stretches the spacing, so both must agree on what is possible."""
    adaptive, spacing = policy.adaptive, policy.spacing
    if adaptive is None:
        return
    bounds = adaptive.between
    if spacing is None:
        raise InputError("there is no spacing to adapt", key="adaptive", hint="Set spacing too")
    if not (bounds.holds(spacing.low_us) and bounds.holds(spacing.high_us)):
        raise InputError(f"spacing {spacing} is outside adaptive bounds {bounds}", key="spacing")
    if policy.min_gap_us > bounds.high_us:
        least = print_duration(policy.min_gap_us)
        raise InputError(f"min_gap {least} is above adaptive bounds {bounds}", key="min_gap")


def _check_opening(policy: Policy) -> None:
    """Refuses blackout dates that leave nothing open for longer than anyone looks ahead."""
    hours = policy.hours
    if hours is None:
        return
    for day in policy.blackout:
        if hours.next_open(day_start(day, hours.zone)) is None:
            raise InputError(f"nothing is open for {HORIZON_DAYS} days from {day}", key="blackout")


class _Key(NamedTuple):
    """How one key of the TOML section is read into its field and written again."""

    field: str
    read: Reader[Any]
    write: Callable[[Any], Any] = str


def _read(key: str, value: object) -> Any:
    entry = KEYS[key]
    if value == OFF and key in _MAY_BE_OFF:
        return None
    return read_key(key, entry.read, value)


def _hours_reader(mapping: Mapping[str, object]) -> Reader[Hours]:
    """Hours that name no zone are meant in the zone of the policy."""
    zone_name = mapping.get("zone")
    default_zone = zone_name if isinstance(zone_name, str) and zone_name != OFF else None
    return parsed_by(lambda text: Hours.parse(text, default_zone=default_zone))


def _dates_of(value: object) -> tuple[date, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"expected a list of dates, not {value!r}")
    return tuple(_date_of(entry) for entry in value)


def _date_of(value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(text_of(value))
    except ValueError:
        raise InputError(f"{value!r} is not a date", hint="Write it like 2026-12-25") from None


def _zone_of(value: object) -> str:
    return zone(text_of(value)).key


def _table(value: Any) -> Any:
    return value.to_mapping()


def _same(value: Any) -> Any:
    return value


_DURATION = parsed_by(parse_duration)

KEYS: dict[str, _Key] = {
    "rate": _Key("rate", parsed_by(Rate.parse)),
    "concurrency": _Key("concurrency", whole_of, _same),
    "part_gap": _Key("part_gap", parsed_by(Span.parse)),
    "hours": _Key("hours", text_of),
    "blackout": _Key("blackout", _dates_of, lambda dates: [day.isoformat() for day in dates]),
    "zone": _Key("zone", _zone_of),
    "spacing": _Key("spacing", parsed_by(Span.parse)),
    "min_gap": _Key("min_gap_us", _DURATION, print_duration),
    "batch": _Key("batch", parsed_by(Batch.parse)),
    "daily": _Key("daily", Caps.from_mapping, dict),
    "weekly": _Key("weekly", Caps.from_mapping, dict),
    "adaptive": _Key("adaptive", Adaptive.from_mapping, _table),
    "breaker": _Key("breaker", Breaker.from_mapping, _table),
    "bounce_pause": _Key("bounce_pause", share_of),
    "warmup": _Key("warmup", parsed_by(Warmup.parse)),
    "retry": _Key("retry", parsed_by(Ladder.parse)),
    "throttle": _Key("throttle", Throttle.from_mapping, _table),
    "on_unknown": _Key("on_unknown", text_of),
    "timeout": _Key("timeout_us", _DURATION, print_duration),
    "per_recipient": _Key("per_recipient", parsed_by(Frequency.parse)),
}
"""Every key of a policy section, in the order in which it prints."""

_DEFAULT = Policy()
_LIMITS = {"rate", "spacing", "batch", "warmup", "per_recipient"}
_MAY_BE_OFF = _LIMITS | {"hours", "zone", "adaptive", "breaker", "bounce_pause"}
