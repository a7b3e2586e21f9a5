"""Google's answers as tables, and how one is read with them: those of Gmail and those of whoever
makes the tokens.

The reason of an error decides, then the status, by Google's name for it or as a number. Where one
reason stands for several things the words beside it tell them apart.

No answer here says that an address does not exist: Gmail takes a letter to anybody, and what comes
of it is told later, by a letter that comes back. So nobody is suppressed by any of these.

After a five of Gmail's own the letter may be out: it goes through many hands there, and which of
them has failed is not told. It is looked for, like one whose answer was lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core.errors import InputError
from paceline.core.instants import Instant, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.providers.answers import Answer, ErrorRow, ErrorTable

_K = OutcomeKind

STALE = "authError"
"""The token is not good any more, or never was: another one may be."""
NOT_DELEGATED = frozenset({"insufficientPermissions", "unauthorized_client"})
"""A scope is missing: Gmail's own word for it, and that of whoever makes the tokens."""
SENDING_LIMIT = "sendingLimitExceeded"
"""Our name for a rate limit that is about a day's letters; Google's own does not tell it apart."""

ERRORS: tuple[ErrorRow, ...] = (
    # Somebody has to do something in one of Google's consoles first.
    ErrorRow(401, STALE, _K.UNAUTHORISED, "the token is refused, and a new one as well"),
    ErrorRow(400, "failedPrecondition", _K.UNAUTHORISED, "the mailbox has no Gmail, or is stopped"),
    ErrorRow(403, "accessNotConfigured", _K.UNAUTHORISED, "the API is not enabled in the project"),
    ErrorRow(403, "domainPolicy", _K.UNAUTHORISED, "the domain's administrator forbids it"),
    ErrorRow(403, "insufficientPermissions", _K.UNAUTHORISED, "a scope was not delegated"),
    ErrorRow(403, "forbidden", _K.UNAUTHORISED, "the mailbox is not the service account's to use"),
    # Too fast, or too much.
    ErrorRow(403, "rateLimitExceeded", _K.THROTTLED, "too fast"),
    ErrorRow(403, "userRateLimitExceeded", _K.THROTTLED, "too fast"),
    ErrorRow(429, SENDING_LIMIT, _K.EXHAUSTED, "the mailbox has sent its day's letters"),
    ErrorRow(403, "dailyLimitExceeded", _K.EXHAUSTED, "the project's quota of the day is used up"),
    ErrorRow(403, "quotaExceeded", _K.EXHAUSTED, "the project's quota is used up"),
    # This letter will never be accepted.
    ErrorRow(400, "invalidArgument", _K.REJECTED, "not a letter Gmail takes, or nobody to send to"),
    ErrorRow(400, "badRequest", _K.REJECTED, "not a letter Gmail takes"),
    ErrorRow(413, "uploadTooLarge", _K.REJECTED, "too large"),
    # It may be out.
    ErrorRow(500, "backendError", _K.UNKNOWN, "Gmail failed: it may be out"),
    ErrorRow(500, "internalError", _K.UNKNOWN, "Gmail failed: it may be out"),
)

BY_STATUS: Mapping[int, OutcomeKind] = {
    401: _K.UNAVAILABLE,
    413: _K.REJECTED,
    429: _K.THROTTLED,
    503: _K.UNAVAILABLE,
}
"""What a status means by itself, where no reason is known: the body may be HTML, or nothing. A 401
that is not Google's own is that of somebody in between, and no reason to stop the account."""

BY_NAME: Mapping[str, str] = {
    "UNAUTHENTICATED": STALE,
    "PERMISSION_DENIED": "forbidden",
    "RESOURCE_EXHAUSTED": "rateLimitExceeded",
    "FAILED_PRECONDITION": "failedPrecondition",
    "INVALID_ARGUMENT": "invalidArgument",
    "INTERNAL": "backendError",
    "UNKNOWN": "backendError",
    "UNAVAILABLE": "backendError",
    "DEADLINE_EXCEEDED": "backendError",
    "ABORTED": "backendError",
    "CANCELLED": "backendError",
}
"""Google's names of statuses, as the reasons they are as good as, where no reason is known."""


@dataclass(frozen=True, slots=True)
class Finer:
    """A reason that means something else when it comes with certain words."""

    reasons: frozenset[str]
    says: re.Pattern[str]
    code: str


FINER: tuple[Finer, ...] = (
    Finer(
        frozenset({"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"}),
        re.compile(r"mail sending|sending (?:limit|quota)", re.IGNORECASE),
        SENDING_LIMIT,
    ),
)

_LIMIT = re.compile(r"(?!\w*size)\w{0,40}limitExceeded(?:Unreg)?", re.IGNORECASE)
"""Google has many limits, each with a name of its own, and another for whoever is not registered. A
limit of a size is no matter of pace."""

_RETRY_AT = re.compile(
    r"retry after (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)", re.IGNORECASE
)


def _error_in(said: Mapping[str, Any]) -> Mapping[str, Any]:
    error = said.get("error")
    return error if isinstance(error, dict) else {}


def _reason_in(error: Mapping[str, Any]) -> str:
    listed = error.get("errors")
    first = listed[0] if isinstance(listed, list) and listed else None
    reason = first.get("reason") if isinstance(first, dict) else None
    return reason if isinstance(reason, str) else ""


def _code_of(said: Mapping[str, Any]) -> str:
    error = _error_in(said)
    reason, status = _reason_in(error), error.get("status")
    if reason not in _KNOWN and error.get("code") in (403, 429):
        reason = _limit_in(reason) or reason
    if reason not in _KNOWN and isinstance(status, str):
        reason = BY_NAME.get(status, reason)
    for finer in FINER:
        if reason in finer.reasons and finer.says.search(str(error.get("message"))):
            return finer.code
    return reason


def _limit_in(reason: str) -> str:
    """The limit that one without a row of its own is as good as; empty where it is none of pace."""
    if not _LIMIT.fullmatch(reason):
        return ""
    return "dailyLimitExceeded" if "daily" in reason.lower() else "rateLimitExceeded"


_KNOWN = frozenset(row.code for row in ERRORS)

TABLE = ErrorTable(
    ERRORS, BY_STATUS, code_of=_code_of, words_of=lambda said: (_error_in(said).get("message"),)
)


def outcome_of(answer: Answer, now: Instant) -> Outcome:
    """The outcome of a call to Gmail that was not answered with success."""
    outcome = TABLE.outcome_of(answer, now)
    if answer.status == 401 and outcome.kind is _K.UNAVAILABLE and _is_googles(answer):
        return outcome._replace(kind=_K.UNAUTHORISED, retry_after_us=None)
    if outcome.kind not in (_K.THROTTLED, _K.EXHAUSTED) or outcome.retry_after_us is not None:
        return outcome
    return outcome._replace(retry_after_us=_asked_us(outcome.reason, now))


def _is_googles(answer: Answer) -> bool:
    """Whether it is an error as Google writes them, which has its status in it."""
    return _error_in(answer.said() or {}).get("code") == answer.status


def is_stale(answer: Answer) -> bool:
    """Whether Gmail itself says that the token is not good. Nothing was done then."""
    return answer.status == 401 and TABLE.code_of(answer.said()) == STALE


def _asked_us(words: str, now: Instant) -> int | None:
    """Until when an answer asks to wait, in its words. An instant that has passed makes no sense:
    Gmail has been seen to name one and to refuse after it."""
    found = _RETRY_AT.search(words)
    try:
        wait_us = 0 if found is None else parse_instant(found[1]) - now
    except InputError:
        return None
    return wait_us if wait_us > 0 else None


# ------------------------------------------------------------------------------ tokens

TOKEN_ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow(
        400, "invalid_grant", _K.UNAUTHORISED, "no such mailbox or key, or our clock is wrong"
    ),
    ErrorRow(401, "unauthorized_client", _K.UNAUTHORISED, "the scopes were not delegated"),
    ErrorRow(403, "access_denied", _K.UNAUTHORISED, "the delegation does not cover this mailbox"),
    ErrorRow(401, "invalid_client", _K.UNAUTHORISED, "there is no such service account"),
    ErrorRow(401, "deleted_client", _K.UNAUTHORISED, "the service account was deleted"),
    ErrorRow(401, "disabled_client", _K.UNAUTHORISED, "the service account was disabled"),
    ErrorRow(400, "invalid_scope", _K.UNAUTHORISED, "a scope that there is not"),
    ErrorRow(403, "org_internal", _K.UNAUTHORISED, "the project is for another organisation"),
    ErrorRow(400, "admin_policy_enforced", _K.UNAUTHORISED, "the administrator forbids it"),
    ErrorRow(500, "internal_failure", _K.UNAVAILABLE, "Google has trouble"),
    ErrorRow(503, "temporarily_unavailable", _K.UNAVAILABLE, "Google has trouble"),
)


def _token_code(said: Mapping[str, Any]) -> str:
    found = said.get("error")
    return found if isinstance(found, str) else ""


TOKEN_TABLE = ErrorTable(
    TOKEN_ERRORS,
    {},
    code_of=_token_code,
    words_of=lambda said: (said.get("error"), said.get("error_description")),
)


def no_token(answer: Answer, now: Instant) -> Outcome:
    """What it means for a letter that there is no token for it. It was not sent, so it is never in
    doubt; and no account is suspended for what a proxy says, or for Google's own trouble."""
    outcome = TOKEN_TABLE.outcome_of(answer, now)
    known = TOKEN_TABLE.by_code.get(outcome.code)
    refused = answer.status in (400, 401, 403) and TOKEN_TABLE.code_of(answer.said()) != ""
    kind = _K.UNAUTHORISED if refused else _K.UNAVAILABLE
    return outcome._replace(
        kind=kind if known is None else known.kind,
        reason=f"no token from Google: {outcome.reason}",
    )
