"""What the library says when something fails, as a table, and what that means for a message.

It says it in words only. The words are those of whatsmeow, the library inside; each row was looked
up in the one that is shipped. What matters most is *when* it failed: all that is fetched before a
message goes out (members, devices, keys) is reported as "failed to …", and then nothing was sent.
Whatever is in no row leaves a message that was handed over in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.core.instants import Instant, iso
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.providers.answers import one_line, shortened
from paceline.providers.whatsapp.wire import Standing, StandingState

_K = OutcomeKind


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One failure, by the words it is told in."""

    says: str
    kind: OutcomeKind
    code: str
    means: str


EVER: tuple[ErrorRow, ...] = (
    # Whenever it is said, nothing was sent, or it was refused.
    ErrorRow("rate-overlimit", _K.THROTTLED, "rate-overlimit", "too fast"),
    ErrorRow("that group does not exist", _K.REJECTED, "no-such-group", "the group is gone"),
    ErrorRow("you're not participating in that group", _K.REJECTED, "not-in-group", "not a member"),
    ErrorRow(
        "the store doesn't contain a device JID", _K.UNAUTHORISED, "not-paired", "it is not paired"
    ),
    ErrorRow("no LID found for", _K.REJECTED, "not-on-whatsapp", "nobody on WhatsApp has it"),
    ErrorRow(
        "can't send message to unknown server", _K.REJECTED, "target", "not somebody to write to"
    ),
    ErrorRow(
        "message recipient must be a user JID", _K.REJECTED, "target", "not somebody to write to"
    ),
    ErrorRow("no signal session established", _K.TRANSIENT, "no-session", "keys are missing"),
    ErrorRow("client is nil", _K.UNAVAILABLE, "not-connected", "there is no connection"),
)

AFTER: tuple[ErrorRow, ...] = (
    # The message was written. Whether it arrived nobody knows.
    ErrorRow(
        "timed out waiting for message send response", _K.UNKNOWN, "timeout", "no answer in time"
    ),
    ErrorRow("websocket disconnected before", _K.UNKNOWN, "disconnected", "cut off meanwhile"),
)

BEFORE: tuple[ErrorRow, ...] = (
    ErrorRow("websocket not connected", _K.UNAVAILABLE, "not-connected", "there is no connection"),
    ErrorRow("websocket disconnected before", _K.UNAVAILABLE, "disconnected", "cut off meanwhile"),
    ErrorRow("info query timed out", _K.TRANSIENT, "timeout", "no answer in time"),
)
"""The same words mean less where they are said of what is fetched beforehand."""

BY_NUMBER: Mapping[int, tuple[OutcomeKind, str]] = {
    400: (_K.TRANSIENT, "refused; often everything is until the session is opened anew"),
    401: (_K.REJECTED, "this account may not write there"),
    403: (_K.REJECTED, "this account may not write there"),
    404: (_K.REJECTED, "there is nobody there"),
    405: (_K.REJECTED, "not possible there"),
    406: (_K.REJECTED, "not a message WhatsApp takes"),
    420: (_K.THROTTLED, "too fast"),
    429: (_K.THROTTLED, "too fast"),
    463: (_K.EXHAUSTED, "WhatsApp lets this account write to nobody new for a while"),
    487: (_K.REJECTED, "not a message WhatsApp takes"),
    488: (_K.REJECTED, "not a message WhatsApp takes"),
    491: (_K.REJECTED, "not a message WhatsApp takes"),
    500: (_K.TRANSIENT, "WhatsApp failed"),
    503: (_K.UNAVAILABLE, "WhatsApp is away"),
    552: (_K.TRANSIENT, "WhatsApp failed"),
}
"""What WhatsApp's own numbers mean. It says no with them, so nothing is left in doubt."""

BY_UPLOAD: Mapping[int, tuple[OutcomeKind, str]] = {
    400: (_K.REJECTED, "not a file WhatsApp takes"),
    413: (_K.REJECTED, "the file is too large"),
    415: (_K.REJECTED, "not a file WhatsApp takes"),
    429: (_K.THROTTLED, "too fast"),
    503: (_K.UNAVAILABLE, "WhatsApp is away"),
    507: (_K.UNAVAILABLE, "WhatsApp is away"),
}

_SERVER_SAID = re.compile(r"server returned error (\d+)|info query returned status (\d+)")
_UPLOAD_SAID = re.compile(r"upload failed with status code (\d+)")
_SEND_FAILED = "failed to send message node"


def of_send(text: str) -> Outcome:
    """What became of a message for which the library gave an error."""
    before = text.startswith("failed to ") and not text.startswith(_SEND_FAILED)
    if before or text == f"{_SEND_FAILED}: websocket not connected":
        return of_query(text)
    return _by_words(text, EVER) or _by_number(text) or _by_words(text, AFTER) or _doubt(text)


def of_query(text: str) -> Outcome:
    """What a message comes to for which something could not be fetched: nothing was sent."""
    found = _by_words(text, EVER) or _by_number(text) or _by_words(text, BEFORE)
    return found or _outcome(_K.TRANSIENT, text, "failed")


def of_upload(text: str) -> Outcome:
    said = _UPLOAD_SAID.search(text)
    if said is None:
        return of_query(text)
    number = int(said[1])
    kind, means = BY_UPLOAD.get(number, (_K.TRANSIENT, "the upload failed"))
    return _outcome(kind, f"{means} ({number})", f"upload-{number}")


def _by_words(text: str, rows: tuple[ErrorRow, ...]) -> Outcome | None:
    row = next((row for row in rows if row.says in text), None)
    return None if row is None else _outcome(row.kind, f"{row.means} ({text})", row.code)


def _by_number(text: str) -> Outcome | None:
    said = _SERVER_SAID.search(text)
    if said is None:
        return None
    number = int(said[1] or said[2])
    kind, means = BY_NUMBER.get(number, (_K.TRANSIENT, "WhatsApp refused it"))
    return _outcome(kind, f"{means} ({text})", str(number))


def _doubt(text: str) -> Outcome:
    return _outcome(_K.UNKNOWN, text, "")


def _outcome(kind: OutcomeKind, reason: str, code: str) -> Outcome:
    return Outcome(kind, shortened(one_line(reason)), code)


# ------------------------------------------------------------------ the account as a whole


@dataclass(frozen=True, slots=True)
class StandingRow:
    """What follows when the connection stands so: for a message, and for whoever opens it."""

    kind: OutcomeKind
    means: str
    final: bool = False
    """Whether somebody has to do something about it."""
    hint: str = ""


STANDINGS: Mapping[StandingState, StandingRow] = {
    "offline": StandingRow(_K.UNAVAILABLE, "offline"),
    "ended": StandingRow(_K.UNAVAILABLE, "offline"),
    "unpaired": StandingRow(
        _K.UNAUTHORISED, "not paired", True, "pair it with: paceline account pair {name}"
    ),
    "logged_out": StandingRow(
        _K.UNAUTHORISED, "logged out", True, "pair it again with: paceline account pair {name}"
    ),
    "replaced": StandingRow(
        _K.UNAUTHORISED,
        "used elsewhere",
        True,
        "see to it that only one program uses its session",
    ),
    "banned": StandingRow(_K.BANNED, "banned by WhatsApp", True),
    "outdated": StandingRow(
        _K.UNAUTHORISED, "too old for WhatsApp", True, "install a newer neonize"
    ),
}
"""All but ``ready``, when there is nothing to say."""

BANS: Mapping[int, str] = {
    1: "sent to too many people who do not know the number",
    2: "blocked by too many people",
    3: "made too many groups",
    4: "sent the same message too often",
    5: "sent to broadcast lists too often",
}
"""Why WhatsApp bans for a time, by the library's numbers."""

LOGOUTS: Mapping[int, str] = {
    2: "the device was removed on the phone",
    3: "banned for a time",
    4: "the phone itself was logged out",
    5: "WhatsApp has logged the account out, which often means that it is banned",
}
"""Why a session has ended, by the library's numbers."""


def told(standing: Standing, name: str = "", until_at: Instant | None = None) -> str:
    """How the account stands, in one line."""
    row = STANDINGS.get(standing.state)
    if row is None:
        return standing.reason
    text = f"{row.means}: {standing.reason}" if standing.reason else row.means
    if until_at is not None:
        text = f"{text}, until {iso(until_at)}"
    hint = row.hint.format(name=name) if name else ""
    return shortened(one_line(f"{text}; {hint}" if hint else text))


def of_standing(
    standing: Standing, now: Instant, until_at: Instant | None, name: str
) -> Outcome | None:
    """Why nothing can be sent while the connection stands so; None if it can."""
    row = STANDINGS.get(standing.state)
    if row is None:
        return None
    wait_us = None if until_at is None else max(0, until_at - now)
    code = standing.code or standing.state.replace("_", "-")
    return Outcome(row.kind, told(standing, name, until_at), code, None, wait_us)
