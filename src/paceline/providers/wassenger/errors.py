"""Wassenger's answers as a table, and how one is read with it.

A code decides, then the status in the body, then that of HTTP: gateways in between put their own on
top. Every 500 that is not listed leaves the message in doubt, because a message is handed to
WhatsApp while the call is under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.providers.answers import Answer, ErrorRow, ErrorTable, Said

_K = OutcomeKind
_CODE = re.compile(r"[a-z0-9]+(?:[_:.-][a-z0-9]+)*")
_CODE_FIELDS = ("errorCode", "code", "error")

ERRORS: tuple[ErrorRow, ...] = (
    # Somebody has to do something before anything can be sent.
    ErrorRow(401, "unauthorized", _K.UNAUTHORISED, "the API key is refused"),
    ErrorRow(404, "device_not_found", _K.UNAUTHORISED, "there is no such device"),
    ErrorRow(402, "insufficient_credits", _K.UNAUTHORISED, "the subscription is used up"),
    ErrorRow(503, "session_expired", _K.UNAUTHORISED, "the phone has to be paired again"),
    # Too fast, or away for the moment.
    ErrorRow(429, "rate_limit_exceeded", _K.THROTTLED, "too fast"),
    ErrorRow(503, "device_not_connected", _K.UNAVAILABLE, "the phone is not connected"),
    # This message will never be accepted.
    ErrorRow(400, "invalid_phone_number", _K.REJECTED, "not a phone number"),
    ErrorRow(400, "message_too_long", _K.REJECTED, "too long"),
)

BY_STATUS: Mapping[int, OutcomeKind] = {
    400: _K.REJECTED,
    401: _K.UNAUTHORISED,
    402: _K.UNAUTHORISED,
    403: _K.UNAUTHORISED,
    404: _K.REJECTED,
    409: _K.TRANSIENT,
    413: _K.REJECTED,
    415: _K.REJECTED,
    422: _K.REJECTED,
    429: _K.THROTTLED,
    501: _K.TRANSIENT,
    503: _K.UNAVAILABLE,
}
"""What a status means by itself, where no code is known."""

WHOEVER_SAYS_IT = frozenset({401, 413, 415})
"""Refusals for good that count even from somebody in between, in whose words nobody is given up
otherwise."""

_FOR_GOOD = frozenset({_K.REJECTED, _K.UNAUTHORISED})


def _code_of(said: Said) -> str:
    for field in _CODE_FIELDS:
        found = said.get(field)
        if isinstance(found, str) and len(found) <= 64 and _CODE.fullmatch(found):
            return found
    return ""


def _words_of(said: Said) -> Iterator[object]:
    yield said.get("message")
    errors = said.get("errors")
    for error in errors[:3] if isinstance(errors, list) else ():
        if isinstance(error, dict):
            words = (error.get("path"), error.get("message"))
            yield " ".join(word for word in words if isinstance(word, str))
    # Some call the reason an error, and the code nothing.
    if "message" not in said and not _code_of(said):
        yield said.get("error")


TABLE = ErrorTable(ERRORS, BY_STATUS, code_of=_code_of, words_of=_words_of)


def as_told(answer: Answer) -> Answer:
    """The same with the status that its body tells, where that is one of an error."""
    said = answer.said()
    status = said.get("status") if said is not None else None
    if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
        return replace(answer, status=status)
    return answer


def read_refusal(answer: Answer, now: Instant) -> Outcome:
    """The outcome of a call that was not answered with success."""
    outcome = TABLE.outcome_of(answer, now)
    if outcome.kind not in _FOR_GOOD or answer.status in WHOEVER_SAYS_IT:
        return outcome
    # A page of somebody in between: Wassenger itself has refused nothing.
    return outcome if answer.said() is not None else transient(outcome.reason, outcome.code)
