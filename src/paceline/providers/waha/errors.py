"""WAHA's answers as a table, and how one is read with it.

WAHA has no codes of its own. What it refuses it says in words: how the session stands instead of
working, or what its engine could not do, and there WhatsApp's own number may be among them. The
codes here are made from those. Whatever is in no row leaves the message in doubt where it comes
with a 500, because a message is handed to WhatsApp while the call is under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.providers.answers import Answer, ErrorRow, ErrorTable, Said
from paceline.providers.waha.status import standing_of, word_of

_K = OutcomeKind
_NOT_POSSIBLE = "not possible there"
_NOT_TAKEN = "not a message WhatsApp takes"

ERRORS: tuple[ErrorRow, ...] = (
    # The session does not work: nothing was sent.
    ErrorRow(422, "session-starting", _K.UNAVAILABLE, "the session is not connected"),
    ErrorRow(422, "session-stopped", _K.UNAVAILABLE, "the session is stopped"),
    ErrorRow(422, "session-not-working", _K.UNAVAILABLE, "the session is in some other state"),
    ErrorRow(422, "session-scan-qr-code", _K.UNAUTHORISED, "the phone has to be paired"),
    ErrorRow(422, "session-passkey-required", _K.UNAUTHORISED, "the phone has to be paired"),
    ErrorRow(
        422, "session-passkey-confirmation-required", _K.UNAUTHORISED, "the phone has to be paired"
    ),
    ErrorRow(422, "session-failed", _K.UNAUTHORISED, "logged out, or not paired in time"),
    ErrorRow(422, "plus-only", _K.UNAUTHORISED, "this WAHA cannot do it, another edition can"),
    # The engine could not do it, and so has sent nothing.
    ErrorRow(500, "not-connected", _K.UNAVAILABLE, "the session has lost its connection"),
    ErrorRow(500, "no-session", _K.TRANSIENT, "keys are missing, and are fetched meanwhile"),
    ErrorRow(500, "rate-overlimit", _K.THROTTLED, "too fast"),
    ErrorRow(500, "not-on-whatsapp", _K.REJECTED, "nobody on WhatsApp has the number"),
    ErrorRow(500, "no-such-group", _K.REJECTED, "the group is gone"),
    ErrorRow(500, "not-in-group", _K.REJECTED, "not a member of the group"),
    # WhatsApp itself has said no, with a number.
    ErrorRow(500, "400", _K.TRANSIENT, "refused; often everything is until the session restarts"),
    ErrorRow(500, "401", _K.REJECTED, "this number may not write there"),
    ErrorRow(500, "403", _K.REJECTED, "this number may not write there"),
    ErrorRow(500, "404", _K.REJECTED, "there is nobody there"),
    ErrorRow(500, "405", _K.REJECTED, _NOT_POSSIBLE),
    ErrorRow(500, "406", _K.REJECTED, _NOT_TAKEN),
    ErrorRow(500, "420", _K.THROTTLED, "too fast"),
    ErrorRow(500, "429", _K.THROTTLED, "too fast"),
    ErrorRow(500, "463", _K.EXHAUSTED, "this number may write to nobody new for a while"),
    ErrorRow(500, "500", _K.TRANSIENT, "WhatsApp failed"),
    ErrorRow(500, "503", _K.UNAVAILABLE, "WhatsApp is away"),
)

BY_STATUS: Mapping[int, OutcomeKind] = {
    400: _K.REJECTED,
    401: _K.UNAUTHORISED,
    403: _K.UNAUTHORISED,
    404: _K.TRANSIENT,
    413: _K.REJECTED,
    415: _K.REJECTED,
    422: _K.REJECTED,
    429: _K.THROTTLED,
    501: _K.REJECTED,
    503: _K.UNAVAILABLE,
}
"""What a status means by itself, where no code is known."""

WORDS: Mapping[str, str] = {
    "only in plus version": "plus-only",
    "websocket not connected": "not-connected",
    "no sessions": "no-session",
    "no signal session established": "no-session",
    "rate-overlimit": "rate-overlimit",
    "no lid found for": "not-on-whatsapp",
    "no lid for user": "not-on-whatsapp",
    "that group does not exist": "no-such-group",
    "you're not participating in that group": "not-in-group",
}
"""What is said, in lower case, by those who have certainly sent nothing when they say it."""

WHOEVER_SAYS_IT = frozenset({401, 413, 415})
"""Refusals for good that count even from somebody in between, in whose words nobody is given up
otherwise."""

_FOR_GOOD = frozenset({_K.REJECTED, _K.UNAUTHORISED})
_SESSION = "session-"
_NOT_AS_EXPECTED = "session status is not as expected"
_WHATSAPP_SAID = re.compile(r"server returned error (\d{3})\b")


def _is_about_the_session(said: Said) -> bool:
    error = said.get("error")
    told = isinstance(error, str) and error.lower().startswith(_NOT_AS_EXPECTED)
    return told or ("expected" in said and isinstance(said.get("status"), str))


def _code_of(said: Said) -> str:
    if _is_about_the_session(said):
        code = _SESSION + word_of(said.get("status")).lower().replace("_", "-")
        return code if any(row.code == code for row in ERRORS) else f"{_SESSION}not-working"
    told = " ".join(_texts(said)).lower()
    number = _WHATSAPP_SAID.search(told)
    if number is not None:
        return number[1]
    return next((code for words, code in WORDS.items() if words in told), "")


def _texts(said: Said) -> Iterator[str]:
    """Everything that explains. The rest of an answer may repeat the message itself, and more."""
    exception = said.get("exception")
    inner = exception if isinstance(exception, dict) else {}
    for raw in (said.get("message"), inner.get("message"), inner.get("details")):
        for text in raw[:3] if isinstance(raw, list) else (raw,):
            if isinstance(text, str):
                yield text


def _words_of(said: Said) -> Iterator[str]:
    if _is_about_the_session(said):
        standing = standing_of(said.get("status"))
        if standing is not None and standing.reason:
            yield standing.reason
            return
    told = list(dict.fromkeys(_texts(said)))
    # The details of an engine's failure are its message without the number before it.
    yield from (text for text in told if not any(text != one and text in one for one in told))
    error = said.get("error")
    # Most often only the status in words.
    if not told and isinstance(error, str):
        yield error


TABLE = ErrorTable(ERRORS, BY_STATUS, code_of=_code_of, words_of=_words_of)


def read_refusal(answer: Answer, now: Instant, engine: str = "") -> Outcome:
    """The outcome of a call that was not answered with success."""
    outcome = TABLE.outcome_of(answer, now)
    standing = standing_of("FAILED", engine) if outcome.code == f"{_SESSION}failed" else None
    if standing is not None and standing.verdict == "away":
        return outcome._replace(kind=_K.UNAVAILABLE, reason=standing.reason)
    if outcome.kind is _K.UNKNOWN and outcome.code.isdecimal():
        # A number that nobody has written down, but WhatsApp's own: it has said no.
        return transient(outcome.reason, outcome.code)
    if outcome.kind not in _FOR_GOOD or answer.status in WHOEVER_SAYS_IT:
        return outcome
    # A page of somebody in between: WAHA itself has refused nothing.
    return outcome if answer.said() is not None else transient(outcome.reason, outcome.code)
