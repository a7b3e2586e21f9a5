"""What may become of one send, and the addresses that choose it themselves.

Names only; what each fate does is in ``behaviour.py``.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Fate(StrEnum):
    """What the imaginary provider does with a send that it does not simply accept."""

    BOUNCE = "bounce"
    REJECT = "reject"
    TRANSIENT = "transient"
    THROTTLE = "throttle"
    UNAVAILABLE = "unavailable"
    EXHAUSTED = "exhausted"
    BAN = "ban"
    UNAUTHORISED = "unauthorised"
    TIMEOUT = "timeout"  # it happened, but nobody was told
    LOST = "lost"  # it did not happen, and nobody was told
    SLOW = "slow"


DRAWN_FATES = (
    Fate.BOUNCE,
    Fate.REJECT,
    Fate.TRANSIENT,
    Fate.THROTTLE,
    Fate.UNAVAILABLE,
    Fate.TIMEOUT,
    Fate.LOST,
)
"""Those with a ``…_rate`` and an ``…_at`` in the settings, in the order in which they are drawn."""

_EVERY_TIME = {
    "bounce": Fate.BOUNCE,
    "reject": Fate.REJECT,
    "transient": Fate.TRANSIENT,
    "timeout": Fate.TIMEOUT,
    "slow": Fate.SLOW,
    "stubborn": Fate.THROTTLE,
}
_EVERY_OTHER_TIME = {
    "flaky": Fate.TRANSIENT,
    "throttle": Fate.THROTTLE,
    "unavailable": Fate.UNAVAILABLE,
    "exhausted": Fate.EXHAUSTED,
    "ban": Fate.BAN,
    "unauthorised": Fate.UNAUTHORISED,
    "lost": Fate.LOST,
}
_WORD = re.compile(rf"({'|'.join([*_EVERY_TIME, *_EVERY_OTHER_TIME])})(?![a-z])")
_TAG = re.compile(rf"\+{_WORD.pattern}")


def speaks(target: str) -> bool:
    """Whether the address means something to the sandbox."""
    return _word(target) is not None


def fate_of_address(target: str, nth: int) -> Fate | None:
    """What the address asks for on the ``nth`` send to it (1 is the first)."""
    word = _word(target)
    if word is None:
        return None
    if word in _EVERY_TIME:
        return _EVERY_TIME[word]
    return _EVERY_OTHER_TIME[word] if nth % 2 else None


def _word(target: str) -> str | None:
    address = target.lower()
    match = _WORD.match(address)
    # Hardly any address has a tag, so the others are not searched for one.
    if match is None and "+" in address:
        match = _TAG.search(address.partition("@")[0])
    return match.group(1) if match else None
