"""Whom a LinkedIn message is for: a public name or profile address becomes Unipile's provider id.

Audiences name people as LinkedIn's own pages do, ``linkedin.com/in/anna-muster``; chats and
invitations take only ids. A profile is looked up before anything is sent, so whatever that comes to
leaves nothing in doubt: its errors have a table of their own, beside the one for sends.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping

from paceline.core.address import normalise
from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Message
from paceline.providers.answers import Answer, ErrorRow, name_of, refusal, segment
from paceline.providers.unipile.errors import TABLE, is_error
from paceline.providers.unipile.settings import UnipileSettings
from paceline.providers.unipile.wire import chat_of

MOST_KNOWN = 10_000
"""How many people are remembered: more than an account writes to in months, and a few megabytes."""

CLASSIC = "classic"

# The three letters tell LinkedIn's products apart (ACo and ADo are its own pages, ACw its Sales
# Navigator, AE. its Recruiter). What follows is a number that begins with zeros for every member.
_ID = re.compile(r"A(?:Co|Do|Cw|E[A-Za-z])AA[A-Za-z0-9_-]*|urn:li:\S+")
_NO_NAME = re.compile(r"[@+/\s]|^me$", re.IGNORECASE)
"""What no profile is called. Under "me" there is one, and it is the account's own."""

_K = OutcomeKind

LOOKUP_ERRORS: tuple[ErrorRow, ...] = (
    # This person cannot be written to, today or tomorrow.
    ErrorRow(404, "resource_not_found", _K.REJECTED, "there is no such profile"),
    ErrorRow(404, "invalid_resource_identifier", _K.REJECTED, "not the name of a profile"),
    ErrorRow(422, "unprocessable_entity", _K.REJECTED, "not the name of a profile"),
    # As good as done is said of something that is sent. Nothing was.
    ErrorRow(422, "already_invited_recently", _K.REJECTED, "makes no sense here"),
    ErrorRow(422, "already_connected", _K.REJECTED, "makes no sense here"),
    ErrorRow(422, "action_already_performed", _K.REJECTED, "makes no sense here"),
    # Nor can anything be out.
    ErrorRow(504, "request_timeout", _K.TRANSIENT, "no answer in time"),
)
"""Where looking somebody up differs from sending; all else means what it means for a send."""

BY_TYPE: Mapping[str, ErrorRow] = {row.code: row for row in LOOKUP_ERRORS}


def is_id(target: str) -> bool:
    """Whether a target goes over the wire as it is: an id, or a conversation."""
    return bool(_ID.fullmatch(target)) or chat_of(target) is not None


def public_name(target: str) -> str | Outcome:
    """The name in a profile's address, or by itself; a refusal if it can be neither."""
    try:
        name = normalise("linkedin", target)
    except InputError as error:
        return refusal("target", str(error))
    if _NO_NAME.search(name):
        return refusal("target", f"{name!r} is neither a LinkedIn profile nor the id of one")
    return name


def product_for(message: Message, settings: UnipileSettings) -> str:
    """Whose ids are needed: invitations are LinkedIn's own, whatever starts the conversations."""
    return CLASSIC if message.action == "connection_request" else settings.linkedin_api


def profile_request(
    name: str, product: str, settings: UnipileSettings
) -> tuple[str, dict[str, str]]:
    """The path and the parameters that ask for a profile."""
    parameters = {"account_id": settings.account_id}
    if product != CLASSIC:
        parameters["linkedin_api"] = product
    return f"/users/{segment(name)}", parameters


def read_profile(answer: Answer, now: Instant) -> str | Outcome:
    """The id of a profile that was asked for, or why there is none."""
    said = answer.said()
    if not answer.succeeded or (said is not None and is_error(said)):
        return _read_error(answer, now)
    found = None if said is None else name_of(said.get("provider_id"))
    if found is None:
        return transient(f"answered {answer.status} without a profile's id", "profile")
    return found


def lookup_kind(status: int, type_: str) -> OutcomeKind:
    """What an answer that is no profile means for the message it was asked for."""
    if type_ in BY_TYPE:
        return BY_TYPE[type_].kind
    kind = TABLE.kind_of(status, type_)
    if kind is _K.TRANSIENT and status in (404, 422) and type_:
        return _K.REJECTED
    return _K.TRANSIENT if kind is _K.UNKNOWN else kind


def _read_error(answer: Answer, now: Instant) -> Outcome:
    """Without a type it was not Unipile who answered, and nobody is given up for that."""
    kind = lookup_kind(answer.status, TABLE.code_of(answer.said()))
    return TABLE.outcome_of(answer, now)._replace(kind=kind)


class Recipients:
    """Who was looked up before; the longest unused are forgotten first."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()

    def get(self, name: str, product: str) -> str | None:
        key = (name.casefold(), product)
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, name: str, product: str, found: str) -> None:
        key = (name.casefold(), product)
        self._known[key] = found
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
