"""The settings of a policy that are tables: adaptive delay, breaker, throttle, and caps.

Each reads what a TOML table decodes to, prints back as an inline table, and refuses unknown keys
with the nearest known one. The readers for single values are shared with ``policy.py``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from paceline.core.durations import Span, parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.grammar import Percent, Rate
from paceline.core.instants import MINUTE, SECOND
from paceline.core.nearest import did_you_mean

T = TypeVar("T")
Reader = Callable[[object], T]

MOST_CAP = 1_000_000_000
MOST_FACTOR = 100
_FACTOR_PLACES = 4
_ABOVE_5 = Percent(500)
_ABOVE_20 = Percent(2_000)
_BETWEEN = Span(2 * SECOND, 10 * SECOND)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
ACTIONS = ("email", "message", "connection_request", "inmail", "reply")
"""Everything that is counted: what campaigns send, and answers."""


def text_of(value: object) -> str:
    """A text, or a complaint that says what was found instead."""
    if not isinstance(value, str):
        raise InputError(f"expected a text in quotes, not {value!r}")
    return value


def whole_of(value: object) -> int:
    """A whole number; ``true`` is none, although Python would take it for 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"expected a whole number, not {value!r}")
    return value


def parsed_by(parse: Callable[[str], T]) -> Reader[T]:
    """A reader for values that are written as a text."""
    return lambda value: parse(text_of(value))


def factor_of(value: object) -> Decimal:
    """A factor such as 1.5, kept as the decimal that was written and not as its binary shadow."""
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise InputError(f"expected a number such as 1.5, not {value!r}")
    factor = Decimal(str(value))
    if not factor.is_finite() or not 1 < factor <= MOST_FACTOR:
        raise InputError(f"{value} is not above 1 and at most {MOST_FACTOR}")
    if factor != round(factor, _FACTOR_PLACES):
        raise InputError(f"{value} has more than {_FACTOR_PLACES} decimals")
    return factor


def share_of(value: object) -> Percent:
    """A percentage of failures or bounces, which is never above the whole."""
    share = Percent.parse(text_of(value))
    if not share.is_share:
        raise InputError(f"{share} is more than all")
    return share


def read_key(key: str, read: Reader[T], value: object) -> T:
    """Reads one value; whatever is wrong with it is reported under its key."""
    try:
        return read(value)
    except InputError as wrong:
        inner = f"{key}.{wrong.key}" if wrong.key else key
        raise InputError(wrong.reason, key=inner, hint=wrong.hint) from None


def read_table(value: object, readers: Mapping[str, Reader[Any]]) -> dict[str, Any]:
    """Reads a table whose keys are all known."""
    if not isinstance(value, Mapping):
        raise InputError(f"expected a table such as {{ {next(iter(readers))} = … }}, not {value!r}")
    refuse_unknown(value, readers)
    return {key: read_key(key, readers[key], entry) for key, entry in value.items()}


def refuse_unknown(found: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Refuses the first key that nobody knows, and names the one that was probably meant."""
    for key in found:
        if key not in known:
            raise InputError(f"unknown key {key!r}{did_you_mean(str(key), known)}")


def toml_value(value: object) -> str:
    """A decoded TOML value, written again."""
    if isinstance(value, str):
        # A JSON text is a TOML text, but for the one control character JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        entries = ", ".join(f"{toml_key(key)} = {toml_value(v)}" for key, v in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(entry) for entry in value)}]"
    return str(value)


def toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def table_of(text: str) -> dict[str, Any]:
    """Decodes an inline table, as it is given in an environment variable."""
    try:
        table = tomllib.loads(f"table = {text.strip()}")["table"]
    except tomllib.TOMLDecodeError:
        table = None
    if not isinstance(table, dict):
        raise InputError(f"{text!r} is not a table", hint='Write it like { above = "5%" }')
    return table


def _plain(factor: Decimal) -> int | float:
    return int(factor) if factor == int(factor) else float(factor)


@dataclass(frozen=True, slots=True)
class Adaptive:
    """While errors are above a share, the spacing is longer by a factor, within bounds."""

    above: Percent = _ABOVE_5
    slow_by: Decimal = Decimal("1.5")
    between: Span = _BETWEEN

    @classmethod
    def from_mapping(cls, value: object) -> Adaptive:
        readers: dict[str, Reader[Any]] = {
            "above": share_of,
            "slow_by": factor_of,
            "between": parsed_by(Span.parse),
        }
        return cls(**read_table(value, readers))

    @classmethod
    def parse(cls, text: str) -> Adaptive:
        return cls.from_mapping(table_of(text))

    def to_mapping(self) -> dict[str, Any]:
        return {
            "above": str(self.above),
            "slow_by": _plain(self.slow_by),
            "between": str(self.between),
        }

    def __str__(self) -> str:
        return toml_value(self.to_mapping())


@dataclass(frozen=True, slots=True)
class Breaker:
    """Above this share of failures among the last ``window`` attempts, the campaign is paused."""

    above: Percent = _ABOVE_20
    samples: int = 20
    """As long as fewer attempts are settled, nothing can be said."""
    window: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= self.window:
            raise InputError(f"{self.samples} is not between 1 and window", key="samples")
        if self.window > 10_000:
            raise InputError(f"{self.window} is above 10000", key="window")

    @classmethod
    def from_mapping(cls, value: object) -> Breaker:
        readers: dict[str, Reader[Any]] = {
            "above": share_of,
            "samples": whole_of,
            "window": whole_of,
        }
        return cls(**read_table(value, readers))

    @classmethod
    def parse(cls, text: str) -> Breaker:
        return cls.from_mapping(table_of(text))

    def to_mapping(self) -> dict[str, Any]:
        table: dict[str, Any] = {"above": str(self.above)}
        if self.samples != 20:
            table["samples"] = self.samples
        if self.window != 100:
            table["window"] = self.window
        return table

    def __str__(self) -> str:
        return toml_value(self.to_mapping())


@dataclass(frozen=True, slots=True)
class Throttle:
    """How much slower the account goes after the provider said "too fast", and for how long."""

    to: Rate | None = None
    slow_by: Decimal = Decimal("1.5")
    """Used where there is no ``to``."""
    recover_us: int = 30 * MINUTE

    def __post_init__(self) -> None:
        if self.recover_us < 1:
            raise InputError("must be above zero", key="recover")

    @classmethod
    def from_mapping(cls, value: object) -> Throttle:
        readers: dict[str, Reader[Any]] = {
            "to": parsed_by(Rate.parse),
            "slow_by": factor_of,
            "recover": parsed_by(parse_duration),
        }
        table = read_table(value, readers)
        if "to" in table and "slow_by" in table:
            raise InputError("give either 'to' or 'slow_by', not both")
        if "recover" in table:
            table["recover_us"] = table.pop("recover")
        return cls(**table)

    @classmethod
    def parse(cls, text: str) -> Throttle:
        return cls.from_mapping(table_of(text))

    def to_mapping(self) -> dict[str, Any]:
        pace = {"to": str(self.to)} if self.to else {"slow_by": _plain(self.slow_by)}
        return {**pace, "recover": print_duration(self.recover_us)}

    def __str__(self) -> str:
        return toml_value(self.to_mapping())


class Caps(Mapping[str, int]):
    """How many sends of each action type a period allows: a mapping that never changes."""

    __slots__ = ("_counts",)

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts = dict(sorted((counts or {}).items()))
        for action, count in self._counts.items():
            if action not in ACTIONS:
                # A cap under a name that nothing is counted under would be none at all.
                known = did_you_mean(action, ACTIONS) or f" (there are: {', '.join(ACTIONS)})"
                raise InputError(f"{action!r} is no action type{known}")
            if not 0 <= whole_of(count) <= MOST_CAP:
                raise InputError(f"cap {count} is not between 0 and {MOST_CAP}", key=action)

    @classmethod
    def from_mapping(cls, value: object) -> Caps:
        if not isinstance(value, Mapping):
            raise InputError(f"expected a table such as {{ email = 20 }}, not {value!r}")
        return cls({text_of(k): read_key(str(k), whole_of, count) for k, count in value.items()})

    @classmethod
    def parse(cls, text: str) -> Caps:
        return cls.from_mapping(table_of(text))

    def __getitem__(self, action: str) -> int:
        return self._counts[action]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __hash__(self) -> int:
        return hash(tuple(self._counts.items()))

    def __str__(self) -> str:
        return toml_value(self._counts)

    def __repr__(self) -> str:
        return f"Caps({self._counts!r})"
