"""The single values of a campaign file: each read, checked, and complained about by its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.core.calendar import zone as known_zone
from paceline.core.durations import parse_duration
from paceline.core.errors import InputError
from paceline.core.grammar import MOST_RETRIES
from paceline.core.hours import Hours
from paceline.core.instants import DAY, Instant, parse_instant
from paceline.core.model import REPLY, RETRIES
from paceline.core.nearest import did_you_mean
from paceline.core.week import parse_week

LONGEST_NAME = 200
MOST_DAYS = 365


def refuse_unknown(raw: Mapping[str, Any], keys: Iterable[str], prefix: str) -> None:
    for key in raw:
        if key not in keys:
            raise InputError(f"unknown key '{prefix}{key}'{did_you_mean(key, keys)}")


def text_of(raw: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = raw.get(key, default)
    if value is None:
        raise InputError("is missing", key=key)
    if not isinstance(value, str):
        raise InputError("must be a text", key=key)
    if not value.strip():
        raise InputError("must not be empty", key=key)
    return value.strip()


def name_of(raw: Mapping[str, Any]) -> str:
    name = text_of(raw, "name")
    if name.startswith("("):
        raise InputError("a name cannot start with a bracket", key="name")
    if "/" in name or "\\" in name:
        # It is part of paths, of addresses and of files that people name after it.
        raise InputError("a name cannot have a / or a \\ in it", key="name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"must be one line of at most {LONGEST_NAME} characters", key="name")
    return name


def zone_of(raw: Mapping[str, Any]) -> str:
    try:
        return known_zone(text_of(raw, "zone", "UTC")).key
    except InputError as error:
        raise InputError(error.reason, key="zone", hint=error.hint) from None


def action_of(raw: Mapping[str, Any]) -> str:
    action = text_of(raw, "action", "message")
    if action == REPLY:
        raise InputError(f"'{REPLY}' is for answers; a campaign answers nobody", key="action")
    return action


def choice_of(raw: Mapping[str, Any], key: str, default: str, known: tuple[str, ...]) -> Any:
    value = text_of(raw, key, default)
    if value not in known:
        raise InputError(f"must be one of {', '.join(known)}, not '{value}'", key=key)
    return value


def whole_of(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not -100 <= value <= 100:
        raise InputError("must be a whole number from -100 to 100", key=key)
    return value


def retries_of(raw: Mapping[str, Any]) -> int | None:
    """How often each message is tried again at most; None for as often as the policy says."""
    value = raw.get(RETRIES)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_RETRIES:
        raise InputError(f"must be a whole number from 0 to {MOST_RETRIES}", key=RETRIES)
    return value


def yes_or_no(raw: Mapping[str, Any], key: str) -> bool:
    value = raw.get(key, False)
    if not isinstance(value, bool):
        raise InputError("must be true or false", key=key)
    return value


def accounts_of(raw: Mapping[str, Any], assignment: str) -> tuple[str, ...]:
    value = raw.get("accounts")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise InputError("must name at least one account", key="accounts")
    if len(set(names)) != len(names):
        raise InputError("names an account twice", key="accounts")
    if assignment == "fixed" and len(names) > 1:
        raise InputError("'fixed' takes a single account", key="accounts")
    return tuple(names)


def hours_of(raw: Mapping[str, Any], key: str, zone: str) -> Hours | None:
    if raw.get(key) is None:
        return None
    text = text_of(raw, key)
    try:
        return Hours.parse(text, default_zone=zone)
    except InputError as error:
        raise error.within(key) from None


def recipient_hours_of(raw: Mapping[str, Any]) -> str | None:
    if raw.get("recipient_hours") is None:
        return None
    text = text_of(raw, "recipient_hours")
    try:
        _, zone = parse_week(text)
    except InputError as error:
        raise error.within("recipient_hours") from None
    if zone is not None:
        raise InputError(
            f"'{zone}' is not needed: every recipient has their own zone, in the column 'zone'",
            key="recipient_hours",
        )
    return text


def instant_of(raw: Mapping[str, Any], key: str, zone: str) -> Instant | None:
    value = raw.get(key)
    if value is None:
        return None
    # TOML has dates of its own; people write either.
    text = value.isoformat() if hasattr(value, "isoformat") else text_of(raw, key)
    try:
        return parse_instant(text, zone)
    except InputError as error:
        raise error.within(key) from None


def duration_of(raw: Mapping[str, Any], key: str) -> int | None:
    if raw.get(key) is None:
        return None
    text = text_of(raw, key)
    try:
        duration_us = parse_duration(text)
    except InputError as error:
        raise error.within(key) from None
    if not duration_us:
        raise InputError("must be above zero", key=key)
    return duration_us


def days_of(raw: Mapping[str, Any], key: str) -> int:
    """Over how many days: a whole number of them, one unless written."""
    duration_us = duration_of(raw, key)
    if duration_us is None:
        return 1
    days, rest_us = divmod(duration_us, DAY)
    if rest_us or not 1 <= days <= MOST_DAYS:
        raise InputError(f"must be whole days, at most {MOST_DAYS}", key=key, hint='"5d"')
    return days
