"""How the values of settings are read: each takes what was written, and refuses what is none.

In a file a value may have any type, in a variable it is always a text. Which key is read by which
of them is said where the keys are.
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.core.durations import parse_duration
from paceline.core.errors import InputError
from paceline.core.grammar import Frequency
from paceline.core.links import base_of
from paceline.core.sizes import MB, parse_size, print_size
from paceline.core.tables import text_of, whole_of

LEAST_MEMORY = 64 * MB


def text(value: object) -> str:
    written = text_of(value).strip()
    if not written:
        raise InputError("must not be empty")
    return written


def port(value: object) -> int:
    # A variable is always a text.
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    found = whole_of(number)
    if not 0 <= found <= 65_535:
        raise InputError(f"{found} is not a port; it is between 0 and 65535")
    return found


def url(value: object) -> str:
    """An address of the web, as the links are written that begin with it."""
    return base_of(text(value))


def addresses(value: object) -> tuple[str, ...]:
    """A list of addresses; in a variable they are told apart by spaces, for they may hold commas.

    What is wrong with one is told by its place in the list: the address itself may be a secret.
    """
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, list):
        raise InputError("must be a list of addresses such as mailto://user:password@example.com")
    urls = [entry.strip() if isinstance(entry, str) else "" for entry in value]
    for number, entry in enumerate(urls, start=1):
        scheme, mark, rest = entry.partition("://")
        if not (scheme and mark and rest) or any(map(str.isspace, entry)):
            hint = "Write it like mailto://user:password@example.com"
            raise InputError(f"number {number} is no address", hint=hint)
    return tuple(urls)


def frequency(value: object) -> str:
    return str(Frequency.parse(text(value)))


def one_of(*known: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        written = text(value).lower()
        if written not in known:
            raise InputError(f"{written!r} is none of {', '.join(known)}")
        return written

    return read


def whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise InputError(f"must be a whole number from {least} to {most}")
        return number

    return read


def duration(least_us: int, most_us: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        us = parse_duration(text(value))
        if not least_us <= us <= most_us:
            raise InputError(f"{value!r} is too {'short' if us < least_us else 'long'}")
        return us

    return read


def size(value: object) -> int:
    """Bytes; 0 is for no limit."""
    if value == 0 and not isinstance(value, bool):
        return 0
    found = parse_size(text(value))
    if 0 < found < LEAST_MEMORY:
        raise InputError(f"{value!r} is too little: a process needs {print_size(LEAST_MEMORY)}")
    return found
