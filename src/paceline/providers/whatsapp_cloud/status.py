"""What Meta says about a number as a whole, and what that means for sending from it.

A word that does not surely stop a number stops nothing: the next message will tell, and the table
of errors knows how long to wait. What a person should know all the same is a remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Verdict = Literal["fine", "away", "stopped"]
"""It can send; it will again by itself; somebody has to do something first."""

FIELDS = ("status", "quality_rating", "platform_type")
"""What is asked for."""


class Standing(NamedTuple):
    verdict: Verdict
    reason: str = ""
    """What is wrong; of one that can send, what a person should know."""


STATUSES: Mapping[str, tuple[Verdict, str]] = {
    "CONNECTED": ("fine", ""),
    "UNKNOWN": ("fine", ""),
    "FLAGGED": ("fine", "flagged: its quality is low, and its limit may be lowered"),
    "RATE_LIMITED": ("fine", "rate limited: it has sent too fast"),
    "RESTRICTED": ("fine", "restricted: it can begin no more conversations for now"),
    "DISCONNECTED": ("away", "offline"),
    "OFFLINE": ("away", "offline"),
    "PENDING": ("stopped", "not registered"),
    "UNVERIFIED": ("stopped", "not registered"),
    "MIGRATED": ("stopped", "not registered"),
    "DELETED": ("stopped", "not registered"),
    "BANNED": ("stopped", "banned"),
}
"""How a number stands."""

QUALITIES: Mapping[str, str] = {"YELLOW": "medium", "RED": "low"}
"""What its recipients think of it, where that is worth a remark."""

PLATFORM = "CLOUD_API"
ELSEWHERE = frozenset({"ON_PREMISE", "NOT_APPLICABLE"})
"""Where a number is registered that cannot be sent from by this API."""


def standing_of(said: Mapping[str, Any]) -> Standing:
    """From the answer that describes the number."""
    status = _word(said.get("status"))
    verdict, words = STATUSES.get(status, ("fine", ""))
    if verdict != "fine":
        return Standing(verdict, f"{words}: Meta says the number is '{status}'")
    platform = _word(said.get("platform_type"))
    if platform in ELSEWHERE:
        return Standing(
            "stopped", f"not registered: Meta says the number's platform is '{platform}'"
        )
    quality = _word(said.get("quality_rating"))
    told = f"its quality is {QUALITIES[quality]} ({quality})" if quality in QUALITIES else ""
    return Standing("fine", "; ".join(remark for remark in (words, told) if remark))


def _word(raw: object) -> str:
    return raw.strip().upper() if isinstance(raw, str) else ""
