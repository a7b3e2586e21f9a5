"""What Wassenger reports by itself: whether it was Wassenger, and what it said. Pure.

Reports come in two shapes, with the message as the report's data or one step further down, and any
of them may come twice or late. What an account does not want to know is no news; what is no report
at all is an ``InputError``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, Literal

from paceline.core.address import canonical
from paceline.core.enclosures import Enclosed, enclosed
from paceline.core.errors import InputError, ProviderRefused
from paceline.core.instants import MILLISECOND, SECOND, Instant
from paceline.engine.ports import AccountNews, Inbound, News, Receipt
from paceline.providers.answers import name_of
from paceline.providers.options import secret_in
from paceline.providers.wassenger.settings import WassengerSettings
from paceline.providers.wassenger.status import Standing, standing_of_session
from paceline.providers.wassenger.wire import GROUP, failure_of, read_instant

SIGNATURE = "x-wassenger-signature"
SCHEME = "sha256="
TOKEN = "token"  # noqa: S105 the name of a parameter

State = Literal["sent", "delivered", "read", "failed"]

STATES: Mapping[str, State] = {
    "device": "sent",
    "server": "sent",
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",
    "failed": "failed",
}
"""How far a message got, in the words that stand in the fields of a report."""

EVENTS: Mapping[str, State | None] = {
    "message:out:sent": "sent",
    "message:out:delivered": "delivered",
    "message:out:read": "read",
    "message:out:failed": "failed",
    "message:out:ack": None,
    "message:update": None,
}
"""The reports about a message of ours, with what they say of it; None where its fields tell."""

IN, OUT = "message:in:new", "message:out:new"
SESSIONS = frozenset({"number:session", "device:status:changed"})

_LATEST_SECONDS = 100_000_000_000
"""Beyond it a number counts milliseconds: as seconds it would be in the year 5138."""


def verify(
    settings: WassengerSettings,
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
    given = {name.lower(): value for name, value in headers.items()}
    match settings.webhook_auth:
        case "signature":
            made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            return _same(given.get(SIGNATURE, "").strip().lower(), f"{SCHEME}{made}")
        case "header":
            return _same(given.get(settings.webhook_header.lower(), ""), secret)
        case _:
            return _same(query.get(TOKEN, ""), secret)


def _same(given: str, expected: str) -> bool:
    """Compared in the same time whatever is different, so that nobody can feel their way."""
    return hmac.compare_digest(given.encode("utf-8", "backslashreplace"), expected.encode())


def parse(settings: WassengerSettings, body: bytes) -> list[News]:
    report = _object(_read(body), "the report")
    event = report.get("event")
    if not isinstance(event, str):
        raise InputError("the report does not say what happened", key="event")
    if _device_of(report) not in (None, settings.device):
        # Reports may be ordered for a whole house of numbers. This one is another's.
        return []
    if event in SESSIONS:
        return _session(report)
    if event in (IN, OUT):
        return [_inbound(report, outbound=event == OUT)]
    if event in EVENTS:
        return _receipt(report, EVENTS[event])
    return []


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


def _device_of(report: Mapping[str, Any]) -> str | None:
    device = report.get("device")
    name = name_of(device.get("id") if isinstance(device, dict) else device)
    return name.lower() if name else None


def _message_in(report: Mapping[str, Any]) -> dict[str, Any]:
    """The message that a report is about, in either shape; where it was, beside it."""
    data = _object(report.get("data"), "the report's data")
    nested = data.get("message")
    if not isinstance(nested, dict):
        return data
    return {"chat": data.get("chat"), **nested}


def _inbound(report: Mapping[str, Any], *, outbound: bool) -> Inbound:
    message = _message_in(report)
    meta = message.get("meta")
    chat = _address(message.get("chat"))
    sender = _address(message.get("fromNumber")) or _address(message.get("from"))
    recipient = _address(message.get("toNumber")) or _address(message.get("to"))
    from_us = outbound or message.get("fromMe") is True or message.get("flow") == "outbound"
    is_group = chat.endswith(GROUP) or (isinstance(meta, dict) and meta.get("isGroup") is True)
    name = name_of(message.get("id"))
    where = chat
    if not where and not is_group:
        where = recipient if from_us else sender
    if name is None or not where:
        raise InputError("the message has no id, or is from nowhere", key="data")
    return Inbound(
        provider_id=name,
        chat=where,
        sender=sender or ("" if from_us or is_group else where),
        text=_text_of(message),
        at=_time_of(report, message),
        from_us=from_us,
        kind=name_of(message.get("type")) or "text",
        group=is_group,
        files=_files_of(message),
    )


def _files_of(message: Mapping[str, Any]) -> tuple[Enclosed, ...]:
    media = message.get("media")
    if not isinstance(media, dict):
        return ()
    links = media.get("links")
    places = (links.get("download") if isinstance(links, dict) else None, media.get("url"))
    place = next((one for one in places if isinstance(one, str) and one), None)
    return (
        enclosed(
            media.get("filename") or media.get("name"),
            media.get("mime") or media.get("mimetype"),
            media.get("size"),
            media.get("duration") or media.get("seconds"),
            place or name_of(media.get("id")),
        ),
    )


def _text_of(message: Mapping[str, Any]) -> str:
    media = message.get("media")
    caption = media.get("caption") if isinstance(media, dict) else None
    words = (message.get("body"), caption, message.get("message"))
    return next((word for word in words if isinstance(word, str) and word), "")


def _receipt(report: Mapping[str, Any], state: State | None) -> list[News]:
    message = _message_in(report)
    name, key = name_of(message.get("id")), name_of(message.get("reference"))
    told = state or _state_in(message)
    if told is None:
        # An edit, or a vote: nothing about how far it got.
        return []
    if name is None and key is None:
        raise InputError("the receipt does not say for which message", key="data")
    code, reason = failure_of(message) if told == "failed" else ("", "")
    return [Receipt(name or "", told, _time_of(report, message), code, reason, key)]


def _state_in(message: Mapping[str, Any]) -> State | None:
    for field in ("ack", "deliveryStatus", "status"):
        word = message.get(field)
        if isinstance(word, str) and word.strip().lower() in STATES:
            return STATES[word.strip().lower()]
    return None


def _session(report: Mapping[str, Any]) -> list[News]:
    data = _object(report.get("data"), "the report's data")
    at = _time_of(report, data)
    for told in (data, data.get("session"), report.get("device")):
        standing = _standing_in(told)
        if standing is not None and standing.verdict == "fine":
            return [AccountNews("ready", "", at)]
        if standing is not None:
            state: Literal["refused", "offline"]
            state = "refused" if standing.verdict == "stopped" else "offline"
            return [AccountNews(state, standing.reason, at)]
    # A word nobody knows: the next send will tell.
    return []


def _standing_in(told: object) -> Standing | None:
    if not isinstance(told, dict):
        return None
    session = told.get("session")
    inner = session.get("status") if isinstance(session, dict) else None
    return standing_of_session(inner) or standing_of_session(told.get("status"))


def _address(raw: object) -> str:
    """A person or a group as a target is written; empty where nobody is named."""
    if isinstance(raw, dict):
        return _address(raw.get("id") or raw.get("wid") or raw.get("phone"))
    name = name_of(raw)
    return canonical(name) if name else ""


def _time_of(report: Mapping[str, Any], message: Mapping[str, Any]) -> Instant:
    written = (
        message.get("timestamp"),
        message.get("date"),
        report.get("created"),
        report.get("createdAt"),
    )
    return next((at for raw in written if (at := _instant(raw)) is not None), 0)


def _instant(raw: object) -> Instant | None:
    """A date, or a number of seconds or milliseconds, perhaps as a text."""
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and len(raw) <= 15:
        raw = int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0:
        unit = SECOND if raw < _LATEST_SECONDS else MILLISECOND
        return raw * unit if raw * unit < _LATEST_SECONDS * SECOND else None
    return read_instant(raw)
