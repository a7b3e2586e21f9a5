"""Meta's answers as a table, and how one is read with it.

The code in the body decides, and only where none is known the status of HTTP. Codes come in the
answer to a call and, for the same message, later in a report (``webhooks.py``): they mean the same.
Whatever takes the service away for a while is ``unavailable`` and uses up nobody's retries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paceline.core.instants import DAY, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.providers.answers import Answer, ErrorRow, ErrorTable, Said

_K = OutcomeKind

PAIR_WAIT_US = 6 * SECOND
"""One message in six seconds is what a single person may be sent for any length of time."""
PERSON_WAIT_US = DAY
"""What Meta asks for before somebody who has had enough advertising is tried again."""

TOO_OLD = frozenset({"131052", "131053"})
"""Codes that say of a message with a file that Meta could not get at the file."""
MISFIT = frozenset({"100", "131008", "131009"})
"""Codes that say that something in the request is wrong: perhaps the file, which may be gone."""

ERRORS: tuple[ErrorRow, ...] = (
    # Somebody has to do something before anything can be sent.
    ErrorRow(401, "0", _K.UNAUTHORISED, "the access token is refused"),
    ErrorRow(500, "3", _K.UNAUTHORISED, "the app lacks a capability or a permission"),
    ErrorRow(403, "10", _K.UNAUTHORISED, "the permission was not granted, or was removed"),
    ErrorRow(400, "33", _K.UNAUTHORISED, "the phone number was deleted"),
    ErrorRow(401, "190", _K.UNAUTHORISED, "the access token has expired"),
    ErrorRow(404, "803", _K.UNAUTHORISED, "there is no such phone number id"),
    ErrorRow(400, "2500", _K.UNAUTHORISED, "the address of the API is wrong"),
    ErrorRow(403, "131005", _K.UNAUTHORISED, "the permission was not granted, or was removed"),
    ErrorRow(400, "131037", _K.UNAUTHORISED, "the number's display name is not approved"),
    ErrorRow(400, "131042", _K.UNAUTHORISED, "there is a problem with the payment method"),
    ErrorRow(500, "131045", _K.UNAUTHORISED, "the number has to be registered again"),
    ErrorRow(400, "133010", _K.UNAUTHORISED, "the number is not registered"),
    # The account was restricted for what it has sent.
    ErrorRow(403, "368", _K.BANNED, "blocked for breaking a policy"),
    ErrorRow(403, "131031", _K.BANNED, "the business account is locked"),
    # Too fast.
    ErrorRow(400, "4", _K.THROTTLED, "too many calls of the app"),
    ErrorRow(400, "80007", _K.THROTTLED, "too many calls for the business account"),
    ErrorRow(429, "130429", _K.THROTTLED, "too many messages a second"),
    ErrorRow(400, "131056", _K.THROTTLED, "too many messages to this person", PAIR_WAIT_US),
    ErrorRow(400, "133016", _K.THROTTLED, "registered and deregistered too often"),
    # Enough for today.
    ErrorRow(400, "131048", _K.EXHAUSTED, "too many were reported as spam"),
    ErrorRow(400, "131064", _K.EXHAUSTED, "limited for templates in the wrong category"),
    # Away for the moment.
    ErrorRow(503, "2", _K.UNAVAILABLE, "Meta is down or overloaded"),
    ErrorRow(500, "131016", _K.UNAVAILABLE, "a service is not available"),
    ErrorRow(500, "131057", _K.UNAVAILABLE, "the business account is under maintenance"),
    ErrorRow(503, "133004", _K.UNAVAILABLE, "the server is not available"),
    ErrorRow(503, "2494100", _K.UNAVAILABLE, "the number is under maintenance"),
    # Perhaps later.
    ErrorRow(400, "1", _K.TRANSIENT, "something unknown, perhaps at Meta"),
    ErrorRow(500, "131000", _K.TRANSIENT, "something unknown went wrong"),
    ErrorRow(400, "131049", _K.TRANSIENT, "enough advertising for this person", PERSON_WAIT_US),
    # This message will never be accepted.
    ErrorRow(400, "100", _K.REJECTED, "a parameter is wrong"),
    ErrorRow(400, "130472", _K.REJECTED, "this person is part of an experiment of Meta's"),
    ErrorRow(403, "130497", _K.REJECTED, "the account may not write to this country"),
    ErrorRow(400, "131008", _K.REJECTED, "a parameter is missing"),
    ErrorRow(400, "131009", _K.REJECTED, "a parameter has a bad value"),
    ErrorRow(400, "131021", _K.REJECTED, "that is the number itself"),
    ErrorRow(400, "131026", _K.REJECTED, "cannot be delivered: not on WhatsApp, or too old a one"),
    ErrorRow(400, "131030", _K.REJECTED, "not on the list of a number for tests"),
    ErrorRow(400, "131047", _K.REJECTED, "has not written for 24 hours: a template is needed"),
    ErrorRow(400, "131050", _K.REJECTED, "this person wants no advertising"),
    ErrorRow(400, "131051", _K.REJECTED, "not a kind of message there is"),
    ErrorRow(400, "131052", _K.REJECTED, "the file cannot be fetched"),
    ErrorRow(400, "131053", _K.REJECTED, "the file cannot be used"),
    ErrorRow(400, "131062", _K.REJECTED, "cannot be sent to this kind of address"),
    ErrorRow(400, "131063", _K.REJECTED, "advertising is switched off for this API"),
    ErrorRow(400, "132000", _K.REJECTED, "the template has another number of blanks"),
    ErrorRow(404, "132001", _K.REJECTED, "no such template in this language, or not approved"),
    ErrorRow(400, "132005", _K.REJECTED, "the template becomes too long"),
    ErrorRow(400, "132007", _K.REJECTED, "what fills the template breaks a policy"),
    ErrorRow(400, "132008", _K.REJECTED, "what fills the template is not allowed"),
    ErrorRow(400, "132012", _K.REJECTED, "a blank of the template takes something else"),
    ErrorRow(400, "132015", _K.REJECTED, "the template is paused for its low quality"),
    ErrorRow(400, "132016", _K.REJECTED, "the template is disabled for its low quality"),
    ErrorRow(400, "132068", _K.REJECTED, "the template's flow is blocked"),
    ErrorRow(400, "132069", _K.REJECTED, "the template's flow is held back"),
    ErrorRow(400, "135000", _K.REJECTED, "something in the request is wrong"),
    ErrorRow(400, "137000", _K.REJECTED, "this person has another phone now"),
)


class Range(NamedTuple):
    """Codes that mean the same, as far as they are not listed by themselves."""

    first: int
    last: int
    kind: OutcomeKind
    means: str


RANGES = (
    Range(200, 299, _K.UNAUTHORISED, "the permission was not granted, or was removed"),
    Range(132000, 132999, _K.REJECTED, "something is wrong with the template"),
)

BY_STATUS: Mapping[int, OutcomeKind] = {
    401: _K.UNAUTHORISED,
    403: _K.UNAUTHORISED,
    413: _K.REJECTED,
    415: _K.REJECTED,
    429: _K.THROTTLED,
    501: _K.TRANSIENT,
    503: _K.UNAVAILABLE,
}
"""What a status means by itself, where no code is known."""

WHOEVER_SAYS_IT = frozenset({401, 413, 415})
"""Refusals for good that count even from somebody in between, in whose words nobody is given up
otherwise."""

NO_SUCH_OBJECT = 33
"""The subcode that says of code 100 that the id in the address is nobody's."""

_FOR_GOOD = frozenset({_K.REJECTED, _K.UNAUTHORISED})


def error_in(said: Said | None) -> Mapping[str, Any]:
    """Meta's own words in an answer; empty if they are somebody else's."""
    error = said.get("error") if said else None
    return error if isinstance(error, dict) else {}


def code_in(error: Mapping[str, Any]) -> str:
    """The code of an error, as it comes in answers and in reports."""
    code = error.get("code")
    if isinstance(code, str):
        code = code.strip()
        return code if code.isascii() and code.isdecimal() and len(code) <= 10 else ""
    return str(code) if isinstance(code, int) and not isinstance(code, bool) and code >= 0 else ""


def words_in(error: Mapping[str, Any]) -> Iterator[object]:
    """What an error says, each thing once: a title is often repeated."""
    data = error.get("error_data")
    details = data.get("details") if isinstance(data, dict) else None
    words = (error.get("message") or error.get("title"), details, error.get("error_user_msg"))
    yield from dict.fromkeys(word for word in words if isinstance(word, str))


TABLE = ErrorTable(
    ERRORS,
    BY_STATUS,
    code_of=lambda said: code_in(error_in(said)),
    words_of=lambda said: words_in(error_in(said)),
)


def kind_of(status: int, code: str) -> OutcomeKind:
    """What a code means; and where nobody knows it, what the status does."""
    if code and code not in TABLE.by_code:
        for known in RANGES:
            if known.first <= int(code) <= known.last:
                return known.kind
    return TABLE.kind_of(status, code)


def is_nobody_s(answer: Answer) -> bool:
    """Whether Meta says that it has nothing under the id in the address."""
    error = error_in(answer.said())
    return code_in(error) == "100" and error.get("error_subcode") == NO_SUCH_OBJECT


def read_refusal(answer: Answer, now: Instant) -> Outcome:
    """The outcome of a call that was not answered with success."""
    outcome = TABLE.outcome_of(answer, now)
    error = error_in(answer.said())
    kind = _K.UNAUTHORISED if is_nobody_s(answer) else kind_of(answer.status, code_in(error))
    if kind in _FOR_GOOD and not error and answer.status not in WHOEVER_SAYS_IT:
        # A page of somebody in between: Meta itself has refused nothing.
        return transient(outcome.reason, outcome.code)
    return outcome._replace(kind=kind)
