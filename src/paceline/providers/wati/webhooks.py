"""What WATI reports by itself: whether it was WATI, and what it said. Pure.

WATI signs nothing, so a secret comes along: in the address, in a header, or in the body. Any report
may come twice, late, or in another order, and as several events that say the same. What an account
does not want to know is no news; what is no report at all is an ``InputError``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from mimetypes import guess_type
from typing import Any, Literal
from urllib.parse import unquote

from paceline.core.address import canonical
from paceline.core.enclosures import Enclosed, enclosed
from paceline.core.errors import InputError, ProviderRefused
from paceline.engine.ports import Inbound, News, Receipt
from paceline.providers.answers import name_of, one_line, shortened
from paceline.providers.options import secret_in
from paceline.providers.wati.settings import WatiSettings
from paceline.providers.wati.wire import name_in, own_name_in, time_of

TOKEN = "token"  # noqa: S105 the name of a parameter
PASSKEY = "passkey"

MESSAGE = "message"
ECHOES = frozenset({"sessionMessageSent", "templateMessageSent"})
"""Reports of what went out, by us or by a person in WATI's inbox: they say what was said, too."""

State = Literal["sent", "delivered", "read", "failed"]
EVENTS: Mapping[str, State] = {
    "sessionMessageSent": "sent",
    "templateMessageSent": "sent",
    "sentMessageDELIVERED": "delivered",
    "sentMessageREAD": "read",
    # Whoever answers has read it, also where WhatsApp does not say so.
    "sentMessageREPLIED": "read",
    "sessionMessageFailed": "failed",
    "templateMessageFailed": "failed",
}
"""The reports about a message of ours, with what they say of it."""

SUFFIXES = ("_bsuid", "_v2")
"""The same events in other editions, in this order from behind."""

NO_MESSAGES = frozenset({"reaction"})
"""Kinds of what comes in beside messages: nothing was said that could be answered."""

CHOICES = ("listReply", "interactiveButtonReply", "buttonReply")
"""Where it stands which row or button was chosen."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""What WATI itself calls messages that nobody has given a name."""
_STORED = re.compile(r"(?:https?://\S+|data/\S+)")
"""Where a file lies at WATI, which stands in the place of what was said."""


def verify(
    settings: WatiSettings,
    headers: Mapping[str, str],
    body: bytes,
    query: Mapping[str, str],
) -> bool:
    """Whether somebody who knows the secret sent this, in the one way that was agreed upon."""
    if settings.webhook_secret is None:
        return False
    try:
        secret = secret_in(settings.webhook_secret, "webhook secret")
    except ProviderRefused:
        return False
    match settings.webhook_auth:
        case "token":
            return _same(query.get(TOKEN, ""), secret)
        case "header":
            given = {name.lower(): value for name, value in headers.items()}
            return _same(given.get(settings.webhook_header.lower(), ""), secret)
        case _:
            return _same(_passkey_in(body), secret)


def _passkey_in(body: bytes) -> str:
    try:
        told = _object(_read(body), "the report").get(PASSKEY)
    except InputError:
        return ""
    return told if isinstance(told, str) else ""


def _same(given: str, expected: str) -> bool:
    """Compared in the same time whatever is different, so that nobody can feel their way."""
    return hmac.compare_digest(given.encode("utf-8", "backslashreplace"), expected.encode())


def parse(settings: WatiSettings, body: bytes) -> list[News]:
    report = _object(_read(body), "the report")
    event = _event_of(report)
    channel = name_of(report.get("channelPhoneNumber"))
    if settings.channel and channel and channel.removeprefix("+") != settings.channel:
        # Reports come for all the numbers of a tenant. This one is another's.
        return []
    if event == MESSAGE:
        return list(_message(report, body))
    if event not in EVENTS:
        return []
    receipt = _receipt(report, EVENTS[event])
    # An older edition of the same report has no name in it that could be known again.
    if event in ECHOES and own_name_in(report) and _person(report):
        return [_said(report, body, from_us=True), receipt]
    return [receipt]


# The secret in a report is looked for before anything else in it is: it is read once for both.
@lru_cache(maxsize=1)
def _read(body: bytes) -> object:
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the report is not JSON") from None
    return read


def _object(raw: object, what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise InputError(f"{what} is no object")
    return raw


def _event_of(report: Mapping[str, Any]) -> str:
    event = report.get("eventType")
    if event is None and _person(report):
        # Whoever passes WATI's reports on may send only what matters of a message.
        return MESSAGE
    if not isinstance(event, str):
        raise InputError("the report does not say what happened", key="eventType")
    for suffix in SUFFIXES:
        event = event.removesuffix(suffix)
    return event


# ---------------------------------------------------------------------- messages


def _message(report: Mapping[str, Any], body: bytes) -> Iterator[Inbound]:
    if _kind_of(report) not in NO_MESSAGES:
        yield _said(report, body, from_us=report.get("owner") in (True, "true"))


def _said(report: Mapping[str, Any], body: bytes, *, from_us: bool) -> Inbound:
    chat = _person(report)
    if not chat:
        raise InputError("the message is from nowhere", key="waId")
    names = (own_name_in(report) if from_us else None, name_of(report.get("whatsappMessageId")))
    name = next((one for one in names if one), None) or name_in(report)
    return Inbound(
        # Without any name it is known by its very bytes: the same once more is the same message.
        provider_id=name or f"sha256-{hashlib.sha256(body).hexdigest()[:32]}",
        chat=chat,
        sender=_address(report.get("channelPhoneNumber")) if from_us else chat,
        text=_text_of(report),
        at=time_of(report) or 0,
        from_us=from_us,
        kind=_kind_of(report),
        files=_files_of(report),
    )


def _kind_of(report: Mapping[str, Any]) -> str:
    return name_of(report.get("type")) or "text"


def _files_of(report: Mapping[str, Any]) -> tuple[Enclosed, ...]:
    """The one file there is, by where it lies at WATI. What it is is told by its name alone."""
    kind = _kind_of(report)
    if kind == "text":
        return ()
    for place in (report.get("data"), report.get("text")):
        if isinstance(place, str) and _STORED.fullmatch(place.strip()):
            name = unquote(place.strip()).rpartition("/")[2].partition("?")[0]
            return (enclosed(name, guess_type(name)[0], handle=place.strip()),)
    return ()


def _person(report: Mapping[str, Any]) -> str:
    """Whom a report is about: by number, or by what WhatsApp calls those who hide theirs."""
    return _address(report.get("waId")) or name_of(report.get("bsuid")) or ""


def _text_of(report: Mapping[str, Any]) -> str:
    """What was said: in a text, under a picture, or on the button that was pressed."""
    text = report.get("text")
    if isinstance(text, str) and text:
        is_file = _kind_of(report) != "text" and _STORED.fullmatch(text.strip())
        return "" if is_file else text
    for key in CHOICES:
        chosen = report.get(key)
        words = (chosen.get("title"), chosen.get("text")) if isinstance(chosen, dict) else ()
        for word in words:
            if isinstance(word, str) and word:
                return word
    return ""


# ---------------------------------------------------------------------- receipts


def _receipt(report: Mapping[str, Any], state: State) -> Receipt:
    name, own = name_in(report), own_name_in(report)
    if name is None:
        raise InputError("the receipt does not say for which message", key="localMessageId")
    failed = state == "failed"
    code = (name_of(report.get("failedCode")) or "")[:64] if failed else ""
    detail = report.get("failedDetail")
    reason = shortened(one_line(detail)) if failed and isinstance(detail, str) else ""
    key = None if own is None or _UUID.fullmatch(own) else own
    return Receipt(name, state, time_of(report) or 0, code, reason, key)


def _address(raw: object) -> str:
    """A person as a target is written; empty where nobody is named."""
    name = name_of(raw)
    return canonical(name) if name else ""
