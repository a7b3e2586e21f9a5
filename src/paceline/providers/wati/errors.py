"""WATI's answers as a table, and how one is read with it.

WATI has no codes of its own, and says no in two ways: with a status of HTTP, or with 200 and
``result: false``. The codes here are made from its words. Where WhatsApp has a number for the same
thing, that is the code, so that signals mean the same for every way to WhatsApp; and a number that
WATI passes on means what it means at Meta (``whatsapp_cloud/errors.py``). Whatever is in no row
leaves the message in doubt where it comes with a 500, because WATI may have taken it by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.providers.answers import Answer, ErrorRow, ErrorTable, Said
from paceline.providers.whatsapp_cloud.errors import ERRORS as WHATSAPP

_K = OutcomeKind

REFUSED = "refused"
INVALID = "invalid-number"

ERRORS: tuple[ErrorRow, ...] = (
    # Somebody has to do something before anything can be sent.
    ErrorRow(400, "no-such-channel", _K.UNAUTHORISED, "there is no such number to send from"),
    ErrorRow(400, "no-credit", _K.UNAUTHORISED, "the balance at WATI is used up"),
    # The plan has so many calls.
    ErrorRow(429, "usage-limit", _K.EXHAUSTED, "the calls of the plan are used up"),
    # This message will never be accepted.
    ErrorRow(200, "131047", _K.REJECTED, "has not written for 24 hours: a template is needed"),
    ErrorRow(200, INVALID, _K.REJECTED, "not a number that WhatsApp knows"),
    ErrorRow(200, "132001", _K.REJECTED, "no such template, or not approved"),
    ErrorRow(400, "132000", _K.REJECTED, "a blank of the template is missing, or left empty"),
    ErrorRow(409, "several-conversations", _K.REJECTED, "several numbers talk to this person"),
    # No, and no word that is known.
    ErrorRow(200, REFUSED, _K.TRANSIENT, "refused, for a reason nobody knows"),
)

BY_STATUS: Mapping[int, OutcomeKind] = {
    400: _K.REJECTED,
    401: _K.UNAUTHORISED,
    403: _K.UNAUTHORISED,
    404: _K.REJECTED,
    409: _K.REJECTED,
    413: _K.REJECTED,
    414: _K.REJECTED,
    415: _K.REJECTED,
    422: _K.REJECTED,
    429: _K.THROTTLED,
    501: _K.TRANSIENT,
    503: _K.UNAVAILABLE,
}
"""What a status means by itself, where no code is known."""

WORDS: Mapping[str, str] = {
    "ticket has been expired": "131047",
    "24 hour": "131047",
    "24-hour": "131047",
    "24h": "131047",
    "re-engagement": "131047",
    "channel not found": "no-such-channel",
    "insufficient credit": "no-credit",
    "insufficient balance": "no-credit",
    "insufficient wallet": "no-credit",
    "usage limit": "usage-limit",
    "monthly limit": "usage-limit",
    "quota": "usage-limit",
    "multiple open conversations": "several-conversations",
    "valid whatsapp number": INVALID,
    "invalid whatsapp": INVALID,
    "invalid phone": INVALID,
    "invalid number": INVALID,
    "template not found": "132001",
    "template does not exist": "132001",
    "template name does not exist": "132001",
    "template is not approved": "132001",
    "blank text": "132000",
    "missing parameter": "132000",
}
"""What is said, in lower case, by those who have certainly sent nothing when they say it."""

WHOEVER_SAYS_IT = frozenset({401, 413, 414, 415})
"""Refusals for good that count even from somebody in between, in whose words nobody is given up
otherwise."""

WORDLESS = frozenset({403, 404})
"""What WATI itself may say without a word."""

YES = frozenset({"success", "true", "ok", "pending", "sent"})
NO = frozenset({"false", "error", "fail", "failed", "failure"})

_FOR_GOOD = frozenset({_K.REJECTED, _K.UNAUTHORISED})
_VERDICTS = ("result", "success", "ok")
_VALID = ("isValidWhatsAppNumber", "validWhatsAppNumber")
_LISTS = ("recipients", "receivers")
_SPOKEN = ("message", "info", "error", "detail", "title", "errors")
_NUMBERS = re.compile(r"\(#(\d{1,7})\)|\b(13\d{4})\b")
_DEEPEST = 3


def says_yes(said: Said) -> bool:
    verdict = _verdict(said)
    return verdict is True or verdict in YES


def says_no(said: Said) -> bool:
    verdict = _verdict(said)
    return verdict is False or verdict in NO


def _verdict(said: Said) -> bool | str | None:
    """What WATI itself calls the outcome, under whichever of its names, a no before a yes."""
    found = [said[key] for key in _VERDICTS if isinstance(said.get(key), bool | str)]
    words = [one if isinstance(one, bool) else one.strip().lower() for one in found]
    denied = [one for one in words if one is False or one in NO]
    return next(iter(denied or words), None)


def entry_in(said: Said) -> Said | None:
    """What an answer says of the one person a template was for, where it lists anybody."""
    for key in _LISTS:
        listed = said.get(key)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            return listed[0]
    return None


def lists_nobody(said: Said) -> bool:
    return any(said.get(key) == [] for key in _LISTS)


def is_refused(said: Said) -> bool:
    """Whether an answer that came with success is a refusal all the same."""
    entry = entry_in(said) or {}
    return says_no(said) or _is_invalid(said) or _is_invalid(entry) or bool(entry.get("errors"))


def _is_invalid(told: Said) -> bool:
    return any(told.get(key) is False for key in _VALID)


def _code_of(said: Said) -> str:
    told = " ".join(_texts(said)).lower()
    for match in _NUMBERS.finditer(told):
        number = match[1] or match[2]
        if number in _KNOWN:
            return number
    for words, code in WORDS.items():
        if words in told:
            return code
    return INVALID if _is_invalid(said) or _is_invalid(entry_in(said) or {}) else ""


def _words_of(said: Said) -> Iterator[object]:
    yield from dict.fromkeys(_texts(said))


def _texts(said: Said) -> Iterator[str]:
    """All that is said, wherever WATI puts it."""
    for told in (said, entry_in(said) or {}):
        for key in _SPOKEN:
            yield from _spoken(told.get(key))


def _spoken(told: object, deep: int = 0) -> Iterator[str]:
    if isinstance(told, str):
        yield told
    elif isinstance(told, list) and deep < _DEEPEST:
        for one in told[:3]:
            yield from _spoken(one, deep + 1)
    elif isinstance(told, dict) and deep < _DEEPEST:
        for key in _SPOKEN:
            yield from _spoken(told.get(key), deep + 1)


_OWN = {row.code for row in ERRORS}

TABLE = ErrorTable(
    (*ERRORS, *(row for row in WHATSAPP if row.code not in _OWN)),
    BY_STATUS,
    code_of=_code_of,
    words_of=_words_of,
)

_KNOWN = frozenset(TABLE.by_code)


def is_wati_s(answer: Answer) -> bool:
    """Whether an answer is WATI's own and not a page of somebody in between."""
    wordless = answer.status in WORDLESS and not answer.body.strip()
    return answer.said() is not None or wordless


def read_refusal(answer: Answer, now: Instant) -> Outcome:
    """The outcome of a call that WATI, or somebody on the way to it, did not say yes to."""
    outcome = TABLE.outcome_of(answer, now)
    if answer.succeeded:
        return outcome if TABLE.code_of(answer.said()) else outcome._replace(code=REFUSED)
    if outcome.kind not in _FOR_GOOD or answer.status in WHOEVER_SAYS_IT or is_wati_s(answer):
        return outcome
    return transient(outcome.reason, outcome.code)
