"""Amounts of memory, as people write them: ``512 MB``, ``2GB``. A MB is 1024 times 1024 bytes."""

from __future__ import annotations

import re

from paceline.core.errors import InputError

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30

_UNITS = {"": 1, "k": KB, "m": MB, "g": GB}
_SIZE = re.compile(r"(\d{1,12})(?:\.(\d{1,3}))?\s*([kmg]?)(?:i?b)?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Reads ``"512 MB"`` into bytes; a fraction is fine (``"1.5 GB"``)."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is not an amount of memory", hint="Write it like 512 MB")
    whole, fraction, unit = found[1], found[2] or "", _UNITS[found[3].lower()]
    parts = int("1" + "0" * len(fraction))
    return int(whole + fraction) * unit // parts


def print_size(size: int) -> str:
    """To the nearest MB, which is as exact as anybody wants to know."""
    return f"{(size + MB // 2) // MB} MB"
