"""Unipile's answers as a table, and how one is read with it.

The type of an error decides, then the status: the same 422 may mean done, too fast or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.core.instants import DAY
from paceline.core.outcome import OutcomeKind
from paceline.providers.answers import ErrorRow, ErrorTable

PREFIX = "errors/"

_K = OutcomeKind

ERRORS: tuple[ErrorRow, ...] = (
    # Done already. To whoever asked for it that is as good as done now.
    ErrorRow(422, "already_invited_recently", _K.ACCEPTED, "invited before"),
    ErrorRow(422, "already_connected", _K.ACCEPTED, "connected already"),
    ErrorRow(422, "action_already_performed", _K.ACCEPTED, "done before"),
    # Somebody has to connect the account again, or pay for what it is asked to do.
    ErrorRow(401, "disconnected_account", _K.UNAUTHORISED, "the account is disconnected"),
    ErrorRow(401, "expired_credentials", _K.UNAUTHORISED, "its credentials have expired"),
    ErrorRow(401, "checkpoint_error", _K.UNAUTHORISED, "LinkedIn wants to see a person"),
    ErrorRow(401, "missing_credentials", _K.UNAUTHORISED, "the API key is missing or wrong"),
    ErrorRow(401, "invalid_credentials", _K.UNAUTHORISED, "its credentials are wrong"),
    ErrorRow(401, "wrong_account", _K.UNAUTHORISED, "another account was connected"),
    ErrorRow(401, "multiple_sessions", _K.UNAUTHORISED, "the account is used elsewhere"),
    ErrorRow(403, "feature_not_subscribed", _K.UNAUTHORISED, "not part of its subscription"),
    ErrorRow(403, "subscription_required", _K.UNAUTHORISED, "not part of its subscription"),
    ErrorRow(403, "insufficient_permissions", _K.UNAUTHORISED, "it may not do this"),
    ErrorRow(403, "action_required", _K.UNAUTHORISED, "LinkedIn wants to see a person"),
    ErrorRow(403, "account_mismatch", _K.UNAUTHORISED, "another account was connected"),
    ErrorRow(403, "session_mismatch", _K.UNAUTHORISED, "another account was connected"),
    ErrorRow(422, "invalid_account", _K.UNAUTHORISED, "not an account for this action"),
    ErrorRow(403, "account_restricted", _K.BANNED, "LinkedIn has restricted the account"),
    # Too fast, or too much.
    ErrorRow(429, "too_many_requests", _K.THROTTLED, "too fast"),
    ErrorRow(422, "limit_exceeded", _K.EXHAUSTED, "LinkedIn's limit is reached"),
    ErrorRow(422, "cannot_resend_yet", _K.EXHAUSTED, "LinkedIn's limit is reached", DAY),
    ErrorRow(422, "cannot_resend_within_24hrs", _K.EXHAUSTED, "not again within a day", DAY),
    # This message will never be accepted. None of it says that the address does not exist.
    ErrorRow(422, "invalid_recipient", _K.REJECTED, "cannot be written to"),
    ErrorRow(422, "no_connection_with_recipient", _K.REJECTED, "not connected"),
    ErrorRow(422, "blocked_recipient", _K.REJECTED, "blocked"),
    ErrorRow(422, "not_allowed_inmail", _K.REJECTED, "takes no InMail"),
    ErrorRow(422, "insufficient_credits", _K.REJECTED, "no InMail credits left"),
    ErrorRow(422, "user_unreachable", _K.REJECTED, "cannot be reached"),
    ErrorRow(422, "cannot_invite_attendee", _K.REJECTED, "cannot be invited"),
    ErrorRow(422, "invalid_message", _K.REJECTED, "not a message LinkedIn takes"),
    ErrorRow(403, "resource_access_restricted", _K.REJECTED, "not for this account to see"),
    ErrorRow(400, "too_many_characters", _K.REJECTED, "too long"),
    ErrorRow(501, "feature_not_implemented", _K.REJECTED, "not possible with this account"),
    # Perhaps next time. LinkedIn's own limits may come as the first of these, too.
    ErrorRow(500, "provider_error", _K.TRANSIENT, "LinkedIn or the mail server failed"),
    ErrorRow(500, "unexpected_error", _K.TRANSIENT, "Unipile failed"),
    ErrorRow(503, "service_unavailable", _K.UNAVAILABLE, "Unipile is away"),
    ErrorRow(503, "network_down", _K.UNAVAILABLE, "Unipile is away"),
    ErrorRow(503, "no_client_session", _K.UNAVAILABLE, "the account is being connected"),
    ErrorRow(503, "no_channel", _K.UNAVAILABLE, "the account is being connected"),
    ErrorRow(503, "no_handler", _K.UNAVAILABLE, "Unipile is away"),
    # Unipile passed it on and heard nothing.
    ErrorRow(504, "request_timeout", _K.UNKNOWN, "no answer in time: it may be out"),
)

BY_STATUS: Mapping[int, OutcomeKind] = {
    400: _K.REJECTED,
    401: _K.UNAUTHORISED,
    413: _K.REJECTED,
    415: _K.REJECTED,
    429: _K.THROTTLED,
    500: _K.TRANSIENT,
    501: _K.TRANSIENT,
    503: _K.UNAVAILABLE,
}
"""What a status means by itself, where no type is known: the body may be HTML, or nothing."""


def _type_of(said: Mapping[str, Any]) -> str:
    """The type of an error without its prefix; empty where there is none."""
    found = said.get("type")
    return found.removeprefix(PREFIX) if isinstance(found, str) else ""


TABLE = ErrorTable(
    ERRORS,
    BY_STATUS,
    code_of=_type_of,
    words_of=lambda said: (said.get("title"), said.get("detail")),
)


def is_error(said: Mapping[str, Any]) -> bool:
    """Whether a body speaks of an error, even if its status does not."""
    found = said.get("type")
    return isinstance(found, str) and found.startswith(PREFIX)
