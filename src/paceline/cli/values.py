"""Values given as ``key=value``: TOML where it is TOML, else the bare text.

So ``rate=40/min`` needs no quotes around quotes, ``concurrency=3`` is a number, and
``daily.email=20`` reaches into a table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Any

from paceline.core.errors import InputError


def parse_values(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """The pairs as one table; ``option`` is named where one of them is wrong."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        names = [name.strip() for name in key.split(".")]
        if not equals or not all(names):
            raise InputError(
                f"{pair!r} is not key=value", key=option, hint=f"Write {option} rate=40/min"
            )
        _put(values, names, _value(text.strip()), option)
    return values


def _put(values: dict[str, Any], names: list[str], value: Any, option: str) -> None:
    table = values
    for name in names[:-1]:
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise InputError(f"{name} is both a value and a table", key=option)
        table = inner
    if names[-1] in table:
        raise InputError(f"{'.'.join(names)} is given twice", key=option)
    table[names[-1]] = value


def _value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # A text with line breaks could smuggle in further keys; then it is no single value.
    return _plain(value["value"]) if value.keys() == {"value"} else text


def _plain(value: Any) -> Any:
    """TOML's own dates as the texts people wrote, because what is stored is JSON."""
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return value
