"""What can be set on a sandbox account, and how it is checked.

Every key is described where it is declared. A rate is the chance of a fate per send, as a number
or a percentage; an ``…_at`` lists the account's sends, counted from 1, that meet it for certain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PositiveInt,
    ValidationError,
    model_validator,
)

from paceline.core.durations import Span, parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.grammar import Percent
from paceline.core.instants import MINUTE, SECOND, Instant, iso, parse_instant
from paceline.core.nearest import did_you_mean
from paceline.engine.ports import Account
from paceline.providers.options import first_wrong
from paceline.providers.sandbox.fates import DRAWN_FATES, Fate

Period = tuple[Instant, Instant]

MOST_GROUPS = 100_000


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"{raw!r} is not a text")
    return raw


def _read_duration(raw: Any) -> int:
    try:
        return parse_duration(_text(raw))
    except InputError as error:
        raise ValueError(str(error)) from error


def _read_optional_duration(raw: Any) -> int | None:
    return None if raw is None or raw == "none" else _read_duration(raw)


def _read_span(raw: Any) -> Span:
    try:
        return raw if isinstance(raw, Span) else Span.parse(_text(raw))
    except InputError as error:
        raise ValueError(str(error)) from error


def _read_rate(raw: Any) -> Any:
    if not isinstance(raw, str) or not raw.strip().endswith("%"):
        return raw
    try:
        return Percent.parse(raw).basis_points / 10_000
    except InputError as error:
        raise ValueError(str(error)) from error


def _read_period(raw: Any) -> Period:
    start, dots, end = _text(raw).partition("..")
    if not dots:
        raise ValueError(
            f"{raw!r} is not a period, write it like 2026-11-15T09:00Z..2026-11-15T10:00Z"
        )
    try:
        period = parse_instant(start), parse_instant(end)
    except InputError as error:
        raise ValueError(str(error)) from error
    if period[0] >= period[1]:
        raise ValueError(f"the period {raw!r} ends before it begins")
    return period


def _read_numbers(raw: Any) -> range:
    """The first and the last of some numbers, ``"1..250"``, or a single one; ``"none"`` is none."""
    if isinstance(raw, range):
        return raw
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else _text(raw).strip()
    if text == "none":
        return range(0)
    first, dots, last = text.partition("..")
    written = (first, last) if dots else (first, first)
    if not all(part.strip().isdecimal() and len(part.strip()) <= 9 for part in written):
        raise ValueError(f"{raw!r} is no range of numbers, write it like 1..250")
    numbers = range(int(written[0]), int(written[1]) + 1)
    if not numbers or len(numbers) > MOST_GROUPS:
        raise ValueError(f"{raw!r} ends before it begins, or has more than {MOST_GROUPS} numbers")
    return numbers


def _print_numbers(numbers: range) -> str:
    if len(numbers) <= 1:
        return str(numbers[0]) if numbers else "none"
    return f"{numbers[0]}..{numbers[-1]}"


def _print_period(period: Period) -> str:
    return f"{iso(period[0])}..{iso(period[1])}"


_Duration = Annotated[int, BeforeValidator(_read_duration), PlainSerializer(print_duration)]
_OptionalDuration = Annotated[
    int | None,
    BeforeValidator(_read_optional_duration),
    PlainSerializer(lambda us: None if us is None else print_duration(us)),
]
_Span = Annotated[Span, BeforeValidator(_read_span), PlainSerializer(str)]
_Rate = Annotated[float, BeforeValidator(_read_rate), Field(ge=0, le=1)]
_Period = Annotated[Period, BeforeValidator(_read_period), PlainSerializer(_print_period)]
_Numbers = tuple[PositiveInt, ...]
_Range = Annotated[range, BeforeValidator(_read_numbers), PlainSerializer(_print_numbers)]


class SandboxSettings(BaseModel):
    """One account's character."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    seed: int = 0
    """Everything left to chance follows from this, the account's name and the message's key."""

    latency: _Span = Span.parse("20ms..80ms")
    """How long an answer takes; the effect itself happens somewhere in between."""
    timeout_latency: _Duration = 30 * SECOND
    """How long a call hangs before it is given up for lost."""

    bounce_rate: _Rate = 0
    bounce_at: _Numbers = ()
    reject_rate: _Rate = 0
    reject_at: _Numbers = ()
    transient_rate: _Rate = 0
    transient_at: _Numbers = ()
    throttle_rate: _Rate = 0
    throttle_at: _Numbers = ()
    unavailable_rate: _Rate = 0
    unavailable_at: _Numbers = ()
    timeout_rate: _Rate = 0
    """Timeouts whose message did go out."""
    timeout_at: _Numbers = ()
    lost_rate: _Rate = 0
    """Timeouts whose message did not."""
    lost_at: _Numbers = ()

    throttle_every: PositiveInt | None = None
    """Every so many sends one is throttled."""
    retry_after: _OptionalDuration = MINUTE
    """What a throttled answer asks for; ``"none"`` leaves the caller to guess."""
    quota_per_minute: PositiveInt | None = None
    """Accepted in any 60 s; more is throttled until the oldest of them has left the minute."""
    quota_per_day: PositiveInt | None = None
    """Accepted in a day of UTC; more is answered as exhausted."""

    ban_after: PositiveInt | None = None
    """After so many accepted sends the account is banned, and again after each ban."""
    ban_for: _OptionalDuration = None
    """How long a ban lasts; without it, for ever."""
    unauthorised: bool = False
    """The credentials are bad: the account cannot be opened."""
    unauthorised_after: PositiveInt | None = None
    """After so many accepted sends the credentials turn bad."""
    unavailable: tuple[_Period, ...] = ()
    """Outages, each from an instant to another: ``"2026-11-15T09:00Z..2026-11-15T09:10Z"``."""

    finds: bool = True
    """Whether a message can be looked up by its key afterwards."""
    proves_absence: bool = True
    """Whether a look-up that finds nothing proves that nothing was sent."""
    find_lag: _Duration = 0
    """Reads lag behind writes by so much; until then a look-up is unclear."""
    deduplicates: bool = False
    """Whether a key that was accepted before is accepted again without a second message."""

    upload_latency: _Span = Span.parse("100ms..400ms")
    upload_failure_rate: _Rate = 0
    upload_failure_at: _Numbers = ()
    handle_expires: _OptionalDuration = None
    """How long an uploaded file can be sent; without it, for ever."""

    groups: _Range = range(0)
    """The numbers of the groups the account is a member of, from the first to the last:
    ``"1..1000"``. Accounts whose numbers overlap have those groups in common."""
    read_only_groups: _Range = range(0)
    """Those of them in which only admins may write, and the account is none."""

    @model_validator(mode="after")
    def _rates_share_one_whole(self) -> Self:
        total = sum(self.rates.values())
        if total > 1 + 1e-9:
            raise ValueError(f"the rates add up to {total:.0%}, which is more than every send")
        return self

    @cached_property
    def rates(self) -> dict[Fate, float]:
        """The chance of each fate that has one."""
        rates = {fate: getattr(self, f"{fate}_rate") for fate in DRAWN_FATES}
        return {fate: rate for fate, rate in rates.items() if rate}

    @cached_property
    def numbered(self) -> dict[int, Fate]:
        """The sends that are certain to meet a fate; the first that names a number has it."""
        numbered: dict[int, Fate] = {}
        for fate in DRAWN_FATES:
            for number in getattr(self, f"{fate}_at"):
                numbered.setdefault(number, fate)
        return numbered

    @cached_property
    def easy(self) -> bool:
        """Whether nothing in here ever refuses, loses or recognises a send.

        What is left are faults of the message itself, and what its address asks for.
        """
        account = self.unauthorised or self.unauthorised_after or self.ban_after or self.unavailable
        limits = self.throttle_every or self.quota_per_minute or self.quota_per_day
        return not (account or limits or self.numbered or self.rates or self.deduplicates)

    def is_away(self, now: Instant) -> bool:
        """Whether an outage is on."""
        return any(start <= now < end for start, end in self.unavailable)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, as people write it, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> SandboxSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    try:
        written = json.dumps(raw)
    except TypeError:  # not as they are stored
        return _checked(raw)
    return _read(written)


def settings_of(account: Account) -> SandboxSettings:
    """Those of an account. Every lane that begins opens its own; and its record, which nobody
    changes, is mostly the very same, so it need not be spelled out to find them again."""
    known = _KNOWN.get(account.name)
    if known is not None and known[0] is account.settings:
        return known[1]
    if len(_KNOWN) >= MOST_KNOWN:
        _KNOWN.clear()
    settings = read_settings(account.settings)
    _KNOWN[account.name] = (account.settings, settings)
    return settings


MOST_KNOWN = 4_096
_KNOWN: dict[str, tuple[Mapping[str, Any], SandboxSettings]] = {}
"""By the account's name, with what they were read from."""


@lru_cache(maxsize=256)
def _read(written: str) -> SandboxSettings:
    """Once for all accounts that have the same: a lane that starts opens its account anew."""
    return _checked(json.loads(written))


def _checked(raw: Mapping[str, Any]) -> SandboxSettings:
    for key in raw:
        if key not in SandboxSettings.model_fields:
            meant = did_you_mean(key, SandboxSettings.model_fields)
            raise InputError(f"the sandbox has no such setting{meant}", key=key)
    try:
        return SandboxSettings.model_validate(dict(raw))
    except ValidationError as error:
        raise first_wrong(error) from None
