"""What Wassenger says about a device as a whole, and what that means for sending from it.

The same words come when the device is asked for and, unasked, as a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Verdict = Literal["fine", "away", "stopped"]
"""It can send; it will again by itself; somebody has to do something first."""


class Standing(NamedTuple):
    verdict: Verdict
    reason: str = ""


FINE = Standing("fine")

SESSIONS: Mapping[str, Verdict] = {
    "online": "fine",
    "offline": "away",
    "timeout": "away",
    "conflict": "away",
    "loading": "away",
    "starting": "away",
    "authorize": "stopped",
    "unauthorized": "stopped",
    "unpaired": "stopped",
    "new": "stopped",
}
"""How the phone's session at WhatsApp stands."""

DEVICES: Mapping[str, Verdict] = {
    "operative": "fine",
    "disabled": "stopped",
    "suspended": "stopped",
    "removed": "stopped",
    "banned": "stopped",
}
"""How the device stands at Wassenger. Whatever else it is called, it cannot send now."""


def standing_of_session(status: object) -> Standing | None:
    """What a session's status means; None for a word that nobody knows."""
    word = status.strip().lower() if isinstance(status, str) else ""
    if word not in SESSIONS:
        return None
    match SESSIONS[word]:
        case "away":
            return Standing("away", f"offline: Wassenger says the WhatsApp session is '{word}'")
        case "stopped":
            return Standing(
                "stopped", f"not paired: Wassenger says the WhatsApp session is '{word}'"
            )
        case _:
            return FINE


def standing_of_device(said: Mapping[str, Any]) -> Standing:
    """From the answer of ``GET /devices/{id}``; the session first, which says more."""
    session = said.get("session")
    status = session.get("status") if isinstance(session, dict) else None
    # A word nobody knows stops nothing: the next send will tell.
    standing = standing_of_session(status) or FINE
    if standing.verdict == "stopped":
        return standing
    status = said.get("status")
    word = status.strip().lower() if isinstance(status, str) else ""
    verdict = DEVICES.get(word, "away") if word else "fine"
    if verdict == "fine":
        return standing
    return Standing(verdict, f"not operative: Wassenger says the device is '{word[:40]}'")
