"""What Gmail answers, as far as it is known, each with where that is told.

Words were read at the place that is named; the JSON around them is that of the guide, or of the
report, where it has one. ``ASSUMED`` was read nowhere: it is how Google's services are known to
speak. Numbers and addresses that belong to somebody are replaced, and long words shortened.
"""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.outcome import OutcomeKind
from tests.providers.gmail.fake import error
from tests.providers.loopback import Scripted, said

K = OutcomeKind

GUIDE = "developers.google.com/workspace/gmail/api/guides/handle-errors"
ASSUMED = "assumed"


class Body(NamedTuple):
    answer: Scripted
    kind: OutcomeKind
    code: str
    source: str


def plain(status: int, reason: str, message: str, domain: str = "usageLimits") -> Scripted:
    """As the guide has it: without a name for the status."""
    return error(status, reason, message, domain=domain, name=None)


QUOTA = (
    "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service "
    "'gmail.googleapis.com' for consumer 'project_number:100000000001'."
)
EXHAUSTED = "Resource has been exhausted (e.g. check quota)."
UNUSED = (
    "Gmail API has not been used in project 100000000001 before or it is disabled. Enable it by "
    "visiting https://console.developers.google.com/apis/api/gmail.googleapis.com/overview then "
    "retry."
)

BODIES: dict[str, Body] = {
    # Too fast.
    "rate": Body(
        plain(403, "rateLimitExceeded", "Rate Limit Exceeded"),
        K.THROTTLED, "rateLimitExceeded", ASSUMED,
    ),
    "user rate": Body(
        plain(403, "userRateLimitExceeded", "User Rate Limit Exceeded"),
        K.THROTTLED, "userRateLimitExceeded",
        "github.com/jaredhanson/passport-google-oauth/issues/75",
    ),
    "per minute": Body(
        error(403, "rateLimitExceeded", QUOTA, domain="usageLimits"),
        K.THROTTLED, "rateLimitExceeded", "github.com/mxngls/gmail-cleaner/issues/5",
    ),
    "429": Body(
        error(429, "rateLimitExceeded", EXHAUSTED),
        K.THROTTLED, "rateLimitExceeded", "github.com/elie222/inbox-zero/issues/379",
    ),
    "429 with a time": Body(
        plain(
            429,
            "rateLimitExceeded",
            "User-rate limit exceeded.  Retry after 2023-03-07T18:03:15.961Z",
        ),
        K.THROTTLED, "rateLimitExceeded", "github.com/taers232c/GAMADV-XTD3/issues/337",
    ),
    "429 of forwarding": Body(
        plain(
            429,
            "rateLimitExceeded",
            "User-rate limit exceeded.  Retry after 2024-11-12T11:16:42.247Z (Forwarding rules)",
        ),
        K.THROTTLED, "rateLimitExceeded",
        "github.com/googleapis/google-api-ruby-client/issues/20544",
    ),
    "user rate, unregistered": Body(
        plain(403, "userRateLimitExceededUnreg", "User Rate Limit Exceeded"),
        K.THROTTLED, "rateLimitExceeded", ASSUMED,
    ),
    "too many at once": Body(
        error(403, "concurrentLimitExceeded", "Too many", name="PERMISSION_DENIED"),
        K.THROTTLED, "rateLimitExceeded", ASSUMED,
    ),
    # Enough for today.
    "daily, unregistered": Body(
        error(
            403,
            "dailyLimitExceededUnreg",
            "Daily Limit for Unauthenticated Use Exceeded.",
            name="PERMISSION_DENIED",
        ),
        K.EXHAUSTED, "dailyLimitExceeded", ASSUMED,
    ),
    "guide: daily": Body(
        plain(403, "dailyLimitExceeded", "Daily Limit Exceeded"),
        K.EXHAUSTED, "dailyLimitExceeded", GUIDE,
    ),
    "guide: sending": Body(
        plain(
            429,
            "rateLimitExceeded",
            "User-rate limit exceeded.  Retry after 2023-03-07T18:03:15.961Z (Mail sending)",
        ),
        K.EXHAUSTED, "sendingLimitExceeded",
        f"{GUIDE} (the words in brackets; the rest as in the 429 above)",
    ),
    # Somebody has to do something.
    "guide: credentials": Body(
        plain(401, "authError", "Invalid Credentials", "global"),
        K.UNAUTHORISED, "authError", GUIDE,
    ),
    "domain": Body(
        plain(403, "domainPolicy", "The domain administrators have disabled Gmail apps."),
        K.UNAUTHORISED, "domainPolicy", ASSUMED,
    ),
    "no mailbox": Body(
        error(400, "failedPrecondition", "Mail service not enabled", name="FAILED_PRECONDITION"),
        K.UNAUTHORISED, "failedPrecondition",
        "github.com/WPManageNinja/fluent-smtp/issues/152",
    ),
    "precondition": Body(
        error(400, "failedPrecondition", "Precondition check failed.", name="FAILED_PRECONDITION"),
        K.UNAUTHORISED, "failedPrecondition",
        "github.com/googleapis/google-api-java-client/issues/1648",
    ),
    "precondition by name": Body(
        said(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "Precondition check failed.",
                    "status": "FAILED_PRECONDITION",
                }
            },
        ),
        K.UNAUTHORISED, "failedPrecondition", ASSUMED,
    ),
    "not enabled": Body(
        error(403, "accessNotConfigured", UNUSED, domain="usageLimits"),
        K.UNAUTHORISED, "accessNotConfigured", ASSUMED,
    ),
    "scopes": Body(
        error(403, "insufficientPermissions", "Insufficient Permission"),
        K.UNAUTHORISED, "insufficientPermissions", ASSUMED,
    ),
    "delegation": Body(
        error(403, "forbidden", "Delegation denied for anna@example.com"),
        K.UNAUTHORISED, "forbidden", ASSUMED,
    ),
    # This letter.
    "guide: bad request": Body(
        plain(400, "badRequest", "Sorting is not supported for queries.", "global"),
        K.REJECTED, "badRequest", GUIDE,
    ),
    "to": Body(
        error(400, "invalidArgument", "Invalid To header"),
        K.REJECTED, "invalidArgument",
        "github.com/langchain-ai/langchain/issues/6234",
    ),
    "to, earlier": Body(
        plain(400, "invalidArgument", "Invalid to header", "global"),
        K.REJECTED, "invalidArgument", "github.com/FlowCrypt/flowcrypt-browser/issues/1370",
    ),
    "nobody": Body(
        error(400, "invalidArgument", "Recipient address required"),
        K.REJECTED, "invalidArgument", "stackoverflow.com/questions/64267579 (its title)",
    ),
    # It may be out.
    "backend": Body(
        plain(500, "backendError", "Backend Error", "global"),
        K.UNKNOWN, "backendError", ASSUMED,
    ),
    "unavailable": Body(
        error(503, "backendError", "The service is currently unavailable."),
        K.UNKNOWN, "backendError", ASSUMED,
    ),
    "internal by name": Body(
        said(500, {"error": {"code": 500, "message": "Internal error.", "status": "INTERNAL"}}),
        K.UNKNOWN, "backendError", ASSUMED,
    ),
}  # fmt: skip
