"""Signals: what a provider's answer leads to beyond its own message, as a table people can change.

A signal is a provider (or any), an outcome's kind or code, and perhaps an action type. Its rule
says who waits (the account, the campaign, or only people never written to before), for how long,
and how the pace comes back afterwards. What becomes of the message itself is decided by the kind of
its outcome (``retry.py``); how long one may hold anything back in ``usage.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from paceline.core.calendar import next_day_start
from paceline.core.durations import parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.instants import DAY, MINUTE, SECOND, Instant
from paceline.core.nearest import did_you_mean
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.tables import (
    Reader,
    Throttle,
    parsed_by,
    read_key,
    refuse_unknown,
    text_of,
    toml_value,
)

LONGEST_DOUBLED_US = 15 * MINUTE
LONGEST_WAIT_US = 30 * DAY
"""No hold is longer (see ``usage.LONGEST_HOLD_US``): what should last longer needs a person."""

ANY = "*"
SIGNAL_KINDS = tuple(
    kind for kind in OutcomeKind if kind not in (OutcomeKind.ACCEPTED, OutcomeKind.WITHDRAWN)
)
"""A message that was taken, or never offered, is no sign of trouble."""

_KIND_NAMES = tuple(str(kind) for kind in SIGNAL_KINDS)
_CODE = "code:"
_HINT = 'Write it like "* throttled", "unipile limit_exceeded" or "* 131048 message"'


class Scope(StrEnum):
    """Who waits because of a signal."""

    ACCOUNT = "account"
    CAMPAIGN = "campaign"
    NEW_CONTACTS = "new contacts"

    @classmethod
    def parse(cls, text: str) -> Scope:
        plain = text.strip().lower().replace("_", " ").replace("-", " ")
        if plain not in tuple(cls):
            known = ", ".join(cls)
            nearest = did_you_mean(plain, map(str, cls))
            raise InputError(
                f"{text!r} is no scope{nearest}", hint=None if nearest else f"Use one of {known}"
            )
        return cls(plain)


@dataclass(frozen=True, slots=True)
class Lasting:
    """For how long: a duration, perhaps one that doubles; until the day ends; until resumed."""

    us: int = 0
    doubling: bool = False
    day_end: bool = False
    resumed: bool = False
    """Until a person resumes what was stopped."""

    def __post_init__(self) -> None:
        if self.us and not SECOND <= self.us <= LONGEST_WAIT_US:
            longest = print_duration(LONGEST_WAIT_US)
            raise InputError(f"{print_duration(self.us)} is not between 1s and {longest}")
        if self.doubling and self.us > LONGEST_DOUBLED_US:
            longest = print_duration(LONGEST_DOUBLED_US)
            raise InputError(f"what doubles may begin with {longest} at most")

    @classmethod
    def parse(cls, text: str) -> Lasting:
        """Reads ``"20s doubling"``, ``"24h"``, ``"day end"``, ``"until resumed"`` or ``"none"``."""
        words = " ".join(text.split()).lower()
        if words == "none":
            return cls()
        if words == "day end":
            return cls(day_end=True)
        if words == "until resumed":
            return cls(resumed=True)
        base = words.removesuffix(" doubling")
        try:
            us = parse_duration(base)
        except InputError:
            hint = "Write it like 24h, 20s doubling, day end, until resumed or none"
            raise InputError(f"{text!r} is no length of time", hint=hint) from None
        if us == 0:
            raise InputError(f"{text!r} is no time at all", hint="Write none")
        return cls(us, doubling=base != words)

    @property
    def nothing(self) -> bool:
        return not (self.us or self.day_end or self.resumed)

    def until_at(self, now: Instant, setbacks: int, day_zone: str) -> Instant | None:
        """When it is over; ``None`` when nothing is held back or only a person ends it."""
        if self.day_end:
            return next_day_start(now, day_zone)
        if not self.us:
            return None
        return now + (doubled_us(self.us, setbacks) if self.doubling else self.us)

    def __str__(self) -> str:
        if self.us:
            return f"{print_duration(self.us)}{' doubling' if self.doubling else ''}"
        return "day end" if self.day_end else "until resumed" if self.resumed else "none"


def doubled_us(base_us: int, setbacks: int) -> int:
    """The base, doubled for every setback in a row, within reason."""
    return min(base_us << min(setbacks, 10), LONGEST_DOUBLED_US)


@dataclass(frozen=True, slots=True)
class Ramp:
    """How the account's pace comes back after the hold: at once, or slow at first."""

    throttle: Throttle | None = None
    """How slow, and until when; ``None`` with ``policy`` set means the policy's own throttle."""
    policy: bool = False

    @classmethod
    def read(cls, value: object) -> Ramp:
        """Reads ``"none"``, ``"policy"`` or a table like ``{ slow_by = 2, recover = "1d" }``."""
        if isinstance(value, Mapping):
            return cls(Throttle.from_mapping(value))
        text = text_of(value).strip()
        if text.startswith("{"):
            return cls(Throttle.parse(text))
        if text not in ("none", "policy"):
            hint = 'Write none, policy, or { slow_by = 2, recover = "1d" }'
            raise InputError(f"{text!r} is no way back", hint=hint)
        return cls(policy=text == "policy")

    def to_value(self) -> Any:
        if self.throttle is not None:
            return self.throttle.to_mapping()
        return "policy" if self.policy else "none"

    def __str__(self) -> str:
        return str(self.throttle) if self.throttle else str(self.to_value())


_AT_ONCE = Ramp()


@dataclass(frozen=True, slots=True)
class Rule:
    """What a signal leads to."""

    scope: Scope
    lasts: Lasting
    ramp: Ramp = _AT_ONCE

    def __post_init__(self) -> None:
        if self.lasts.resumed and self.scope is Scope.NEW_CONTACTS:
            hint = "Say how long, or let the campaign or the account wait"
            raise InputError("new contacts cannot be resumed by hand", key="for", hint=hint)

    @classmethod
    def from_mapping(cls, value: object, onto: Rule | None = None) -> Rule:
        """A rule as it is written; what is not said is as in ``onto``."""
        if not isinstance(value, Mapping):
            raise InputError(f'expected a table such as {{ scope = "account" }}, not {value!r}')
        refuse_unknown(value, dict.fromkeys(RULE_KEYS))
        read = {key: read_key(key, RULE_KEYS[key], entry) for key, entry in value.items()}
        if onto is None and "scope" not in read:
            raise InputError("is missing", key="scope", hint=f"One of {', '.join(Scope)}")
        if onto is None and "for" not in read:
            raise InputError("is missing", key="for", hint="Write it like 24h or until resumed")
        return cls(
            read["scope"] if onto is None else read.get("scope", onto.scope),
            read["for"] if onto is None else read.get("for", onto.lasts),
            read.get("ramp", _AT_ONCE if onto is None else onto.ramp),
        )

    def to_mapping(self) -> dict[str, Any]:
        table: dict[str, Any] = {"scope": str(self.scope), "for": str(self.lasts)}
        return table if self.ramp == _AT_ONCE else table | {"ramp": self.ramp.to_value()}

    def __str__(self) -> str:
        return toml_value(self.to_mapping())


RULE_KEYS: dict[str, Reader[Any]] = {
    "scope": parsed_by(Scope.parse),
    "for": parsed_by(Lasting.parse),
    "ramp": Ramp.read,
}


@dataclass(frozen=True, slots=True)
class Signal:
    """Which answers are meant. A code may have ``*`` and ``?`` in it; ``*`` is any provider."""

    provider: str
    kind: OutcomeKind | None
    code: str
    action: str = ""

    @classmethod
    def parse(cls, text: str) -> Signal:
        """Reads ``"PROVIDER WHAT [ACTION]"``; WHAT is a kind, a code, or ``kind:code``."""
        words = text.split()
        if len(words) not in (2, 3):
            raise InputError(f"{text!r} is no signal", hint=_HINT)
        kind, code = _what(words[1], text)
        return cls(words[0], kind, code, words[2] if len(words) == 3 else "")

    def __str__(self) -> str:
        kind = str(self.kind) if self.kind is not None else ""
        if kind and self.code:
            what = f"{kind}:{self.code}"
        elif kind:
            what = kind
        else:
            what = f"{_CODE}{self.code}" if _looks_like_a_kind(self.code) else self.code
        return " ".join(word for word in (self.provider, what, self.action) if word)

    def fits(self, provider: str, action: str, outcome: Outcome) -> bool:
        return (
            self.provider in (ANY, provider)
            and self.kind in (None, outcome.kind)
            and self.action in ("", action)
            and (not self.code or (bool(outcome.code) and fnmatchcase(outcome.code, self.code)))
        )

    @property
    def rank(self) -> tuple[int, bool, bool, bool, str]:
        """The more exactly a signal says what it means, the more it counts."""
        plain_code = bool(self.code) and not any(sign in self.code for sign in "*?[")
        exactness = 2 if plain_code else 1 if self.code else 0
        named = self.provider != ANY
        return exactness, named, bool(self.action), self.kind is not None, str(self)


def _what(word: str, text: str) -> tuple[OutcomeKind | None, str]:
    if word.startswith(_CODE) and len(word) > len(_CODE):
        return None, word.removeprefix(_CODE)
    kind, colon, code = word.partition(":")
    if kind in _KIND_NAMES and (code or not colon):
        return OutcomeKind(kind), code
    if word in tuple(OutcomeKind):
        raise InputError(f"{word!r} in {text!r} is no sign of trouble", hint=_HINT)
    if _looks_like_a_kind(word):
        meant = did_you_mean(word, _KIND_NAMES)
        as_code = f" As a code of the provider write {_CODE}{word}" if meant else ""
        raise InputError(f"unknown kind of answer {word!r}{meant}{as_code}")
    return None, word


def _looks_like_a_kind(word: str) -> bool:
    """Whether a code would be taken for a kind, or for one that was mistyped."""
    return bool(did_you_mean(word.partition(":")[0], (*_KIND_NAMES, "accepted", "withdrawn")))


_SLOWLY = {"slow_by": 2, "recover": "1d"}

DEFAULT_TABLE: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Too fast: everything waits, longer each time, and goes on slower.
        "* throttled": {"scope": "account", "for": "1m doubling", "ramp": "policy"},
        "* unavailable": {"scope": "account", "for": "20s doubling"},
        "* exhausted": {"scope": "account", "for": "day end"},
        "* banned": {"scope": "account", "for": "until resumed"},
        "* unauthorised": {"scope": "account", "for": "until resumed"},
        # LinkedIn by way of Unipile. Invitations have a limit of their own, and people who were
        # written to before can be written to again without one.
        "unipile limit_exceeded": {"scope": "account", "for": "day end", "ramp": "policy"},
        "unipile limit_exceeded connection_request": {"scope": "new contacts", "for": "1d"},
        "unipile cannot_resend_*": {"scope": "new contacts", "for": "1d"},
        # WhatsApp: strangers have reported the number. Whoever knows it is still written to.
        "* 131048": {"scope": "new contacts", "for": "1d", "ramp": _SLOWLY},
        "* 131064": {"scope": "new contacts", "for": "1d", "ramp": _SLOWLY},
        # Meta has locked the number, or blocks it for breaking its rules.
        "* 368": {"scope": "account", "for": "until resumed"},
        "* 131031": {"scope": "account", "for": "until resumed"},
        # One person was written to too often. Everybody else goes on.
        "* 131056": {"scope": "account", "for": "none"},
        # The template is not there, or is not to be used: it would be so for everybody.
        "* 131063": {"scope": "campaign", "for": "until resumed"},
        "* 132000": {"scope": "campaign", "for": "until resumed"},
        "* 132001": {"scope": "campaign", "for": "until resumed"},
        "* 132015": {"scope": "campaign", "for": "until resumed"},
        "* 132016": {"scope": "campaign", "for": "until resumed"},
    }
)
"""What holds as long as nobody has said otherwise, written as ``paceline signals set`` takes it."""


class Signals:
    """The whole table: the defaults, and what an operator put over them."""

    def __init__(self, own: Mapping[str, Any] | None = None) -> None:
        self.own: dict[str, Rule] = {}
        for text, value in (own or {}).items():
            signal = str(read_key(text, parsed_by(Signal.parse), text))
            self.own[signal] = read_key(signal, Rule.from_mapping, value)

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Every signal with what it leads to, the defaults in their order and then the rest."""
        return {**_defaults(), **self.own}

    @cached_property
    def _ordered(self) -> tuple[tuple[Signal, Rule], ...]:
        entries = [(Signal.parse(text), rule) for text, rule in self.rules.items()]
        return tuple(sorted(entries, key=lambda entry: entry[0].rank, reverse=True))

    def find(self, provider: str, action: str, outcome: Outcome) -> tuple[Signal, Rule] | None:
        """The rule for an answer: of those that fit, the one that says most exactly what it
        means. A code counts for more than a provider, that for more than an action, that for more
        than a kind."""
        for signal, rule in self._ordered:
            if signal.fits(provider, action, outcome):
                return signal, rule
        return None

    def rule_for(self, provider: str, action: str, outcome: Outcome) -> Rule | None:
        found = self.find(provider, action, outcome)
        return None if found is None else found[1]

    def to_mapping(self) -> dict[str, Any]:
        """What an operator has said, as it is stored."""
        return {text: rule.to_mapping() for text, rule in self.own.items()}


@lru_cache(maxsize=1)
def _defaults() -> dict[str, Rule]:
    return {text: Rule.from_mapping(table) for text, table in DEFAULT_TABLE.items()}


def signals_from(own: Mapping[str, Any] | None) -> Signals:
    """The table with what is stored over it, read once for all lanes that see the same."""
    return _parsed(json.dumps(own, sort_keys=True)) if own else DEFAULT_SIGNALS


@lru_cache(maxsize=16)
def _parsed(text: str) -> Signals:
    return Signals(json.loads(text))


DEFAULT_SIGNALS = Signals()
