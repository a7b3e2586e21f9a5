"""What WAHA says about a session as a whole, and what that means for sending from it.

The same words come when the session is asked for, when a message is refused because of it and,
unasked, as a report.
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
    "WORKING": "fine",
    "STARTING": "away",
    "STOPPED": "away",
    "SCAN_QR_CODE": "stopped",
    "FAILED": "stopped",
    "PASSKEY_REQUIRED": "stopped",
    "PASSKEY_CONFIRMATION_REQUIRED": "stopped",
}
"""How a session stands. A connection that is lost shows as starting; one that somebody has stopped
was stopped on purpose, or for a restart, and comes back paired. Failed is what a session is after
the phone has logged it out, or nobody has scanned its code."""

HINTS: Mapping[str, str] = {
    "STOPPED": "; start it in WAHA",
    "SCAN_QR_CODE": "; scan its code with the phone",
    "FAILED": "; restart it in WAHA, or pair it again",
}

STARTS_AGAIN = frozenset({"WEBJS"})
"""Engines that fail for a moment, for a browser that died, and start again by themselves."""

TAKES_IDS = frozenset({"GOWS", "NOWEB"})
"""Engines that send a message under the id it is given."""


def standing_of(status: object, engine: str = "") -> Standing | None:
    """What a session's status means; None for a word that nobody knows."""
    word = word_of(status)
    if word not in SESSIONS:
        return None
    verdict = SESSIONS[word]
    if word == "FAILED" and engine in STARTS_AGAIN:
        verdict = "away"
    if verdict == "fine":
        return FINE
    what = "offline" if verdict == "away" else "not paired"
    return Standing(verdict, f"{what}: WAHA says the session is '{word}'{HINTS.get(word, '')}")


def standing_of_session(said: Mapping[str, Any]) -> Standing:
    """From the answer of ``GET /api/sessions/{session}``. Only one that works can send, so a word
    that nobody knows is waited out."""
    status = said.get("status")
    known = standing_of(status, engine_of(said))
    told = f"'{word_of(status)[:40]}'" if word_of(status) else "nowhere to be seen"
    return known or Standing("away", f"offline: WAHA says the session is {told}")


def engine_of(said: Mapping[str, Any]) -> str:
    """Which engine a session runs on; empty where it does not say, as when it is stopped."""
    engine = said.get("engine")
    return word_of(engine.get("engine") if isinstance(engine, dict) else engine)


def word_of(raw: object) -> str:
    return raw.strip().upper() if isinstance(raw, str) else ""
