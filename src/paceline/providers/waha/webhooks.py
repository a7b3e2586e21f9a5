"""What WAHA reports by itself: whether it was WAHA, and what it said. Pure.

Any report may come twice or late, and the same message as ``message`` and as ``message.any``: it
has the same id. What an account does not want to know is no news; what is no report at all is an
``InputError``. The time in the headers is not signed, so it proves nothing and is not looked at.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from paceline.core.address import canonical
from paceline.core.enclosures import Enclosed, enclosed
from paceline.core.errors import InputError, ProviderRefused
from paceline.core.instants import MILLISECOND, SECOND, Instant
from paceline.engine.ports import AccountNews, Inbound, News, Receipt, Typing
from paceline.providers.answers import name_of, one_line
from paceline.providers.options import secret_in
from paceline.providers.waha.groups import plain_id
from paceline.providers.waha.settings import WahaSettings
from paceline.providers.waha.status import engine_of, standing_of
from paceline.providers.waha.wire import GROUP, HIDDEN, PERSON, message_id

SIGNATURE = "x-webhook-hmac"
ALGORITHM = "x-webhook-hmac-algorithm"
SHA512 = "sha512"

State = Literal["sent", "delivered", "read", "failed"]

ACKS: Mapping[str | int, State] = {
    "ERROR": "failed",
    "SERVER": "sent",
    "DEVICE": "delivered",
    "READ": "read",
    "PLAYED": "read",
    -1: "failed",
    1: "sent",
    2: "delivered",
    3: "read",
    4: "read",
}
"""How far a message got, by its name and by its number."""

MESSAGES = frozenset({"message", "message.any"})
RECEIPTS = frozenset({"message.ack", "message.ack.group"})
STANDING = "session.status"
PRESENCE = "presence.update"
BUSY = frozenset({"typing", "recording"})
"""What somebody does who is about to say more."""

KINDS = frozenset({"image", "video", "audio"})

_LATEST_SECONDS = 100_000_000_000
"""Beyond it a number counts milliseconds: as seconds it would be in the year 5138."""


def verify(settings: WahaSettings, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether somebody who knows the secret signed this very body."""
    if settings.webhook_secret is None:
        return False
    try:
        secret = secret_in(settings.webhook_secret, "webhook secret")
    except ProviderRefused:
        return False
    given = {name.lower(): value.strip().lower() for name, value in headers.items()}
    made = hmac.new(secret.encode(), body, hashlib.sha512).hexdigest()
    # Compared in the same time whatever is different, so that nobody can feel their way.
    signature = given.get(SIGNATURE, "").encode("utf-8", "backslashreplace")
    return hmac.compare_digest(signature, made.encode()) and given.get(ALGORITHM) == SHA512


def parse(settings: WahaSettings, body: bytes) -> list[News]:
    report = _object(_read(body), "the report")
    event = report.get("event")
    if not isinstance(event, str):
        raise InputError("the report does not say what happened", key="event")
    if report.get("session") not in (None, settings.session):
        # Reports may be ordered for a whole house of sessions. This one is another's.
        return []
    if event == STANDING:
        return _standing(report)
    if event in MESSAGES:
        return _message(report)
    if event == PRESENCE:
        return list(_typing(report))
    return _receipt(report) if event in RECEIPTS else []


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


def _inner(raw: object, *path: str) -> Mapping[str, Any]:
    """Something further down that is only there with some engines; empty where it is not."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else {}


# ---------------------------------------------------------------------- messages


def _message(report: Mapping[str, Any]) -> list[News]:
    payload = _object(report.get("payload"), "the report's payload")
    name, from_us = message_id(payload), payload.get("fromMe") is True
    chat = _chat_of(payload, from_us=from_us)
    if name is None or not chat:
        raise InputError("the message has no id, or is from nowhere", key="payload")
    if not chat.endswith((PERSON, GROUP, HIDDEN)):
        # A story, a channel, a list: nobody speaks to us there.
        return []
    is_group = chat.endswith(GROUP)
    where = chat if is_group else _shown(chat, _other_side(payload, from_us=from_us))
    if is_group:
        member = plain_id(payload.get("participant")) or plain_id(payload.get("author"))
        sender = _shown(member, _alternatives(payload, "SenderAlt", "participantAlt"))
    else:
        sender = _shown(plain_id(_inner(report, "me").get("id")), ()) if from_us else where
    others = (chat, *_other_side(payload, from_us=from_us))
    called = {canonical(one) for one in others if one.endswith((PERSON, HIDDEN))}
    text = payload.get("body")
    return [
        Inbound(
            provider_id=name,
            chat=where,
            sender=sender,
            text=text if isinstance(text, str) else "",
            at=_time_of(report, payload),
            from_us=from_us,
            kind=_kind_of(payload),
            group=is_group,
            files=_files_of(payload),
            also=() if is_group or from_us else tuple(sorted(called - {where})),
        )
    ]


def _chat_of(payload: Mapping[str, Any], *, from_us: bool) -> str:
    """Where a message was said. Whose own it was some engines write into ``from`` and some into
    ``to``; a group is in either."""
    came_from, went_to = plain_id(payload.get("from")), plain_id(payload.get("to"))
    for one in (came_from, went_to):
        if one.endswith(GROUP):
            return one
    return (went_to or came_from) if from_us else came_from


def _other_side(payload: Mapping[str, Any], *, from_us: bool) -> Iterator[str]:
    yield from _alternatives(payload, "RecipientAlt" if from_us else "SenderAlt", "remoteJidAlt")


def _alternatives(payload: Mapping[str, Any], gows: str, noweb: str) -> Iterator[str]:
    """Other ids of the same person, as the engine underneath tells them."""
    yield plain_id(_inner(payload, "_data", "Info").get(gows))
    yield plain_id(_inner(payload, "_data", "key").get(noweb))


def _shown(chat: str, others: Iterator[str] | tuple[str, ...]) -> str:
    """Somebody as a target is written: by their number wherever it is known."""
    phone = next((one for one in (chat, *others) if one.endswith(PERSON)), chat)
    return canonical(phone) if phone else ""


def _kind_of(payload: Mapping[str, Any]) -> str:
    if payload.get("hasMedia") is not True:
        return "text"
    mime = name_of(_inner(payload, "media").get("mimetype")) or ""
    major = mime.partition("/")[0].lower()
    if major:
        return major if major in KINDS else "document"
    return name_of(_inner(payload, "_data", "Info").get("MediaType")) or "media"


def _files_of(payload: Mapping[str, Any]) -> tuple[Enclosed, ...]:
    """The one file there may be. How large it is and how long it lasts only the engine says."""
    if payload.get("hasMedia") is not True:
        return ()
    media = _inner(payload, "media")
    inside = _inner(payload, "_data", "message") or _inner(payload, "_data", "Message")
    said = next(
        (one for key, one in inside.items() if key.endswith("Message") and isinstance(one, dict)),
        {},
    )
    return (
        enclosed(
            media.get("filename") or said.get("fileName"),
            media.get("mimetype") or said.get("mimetype"),
            said.get("fileLength"),
            said.get("seconds"),
            media.get("url"),
        ),
    )


def _typing(report: Mapping[str, Any]) -> Iterator[Typing]:
    """That somebody writes to us, or speaks. Of groups nobody needs to know."""
    payload = _object(report.get("payload"), "the report's payload")
    chat = plain_id(payload.get("id"))
    told = payload.get("presences")
    people = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    busy = any(name_of(one.get("lastKnownPresence")) in BUSY for one in people)
    if busy and chat.endswith((PERSON, HIDDEN)):
        yield Typing(_shown(chat, ()), _time_of(report, {}))


# ---------------------------------------------------------------------- receipts


def _receipt(report: Mapping[str, Any]) -> list[News]:
    payload = _object(report.get("payload"), "the report's payload")
    if payload.get("fromMe") is False:
        # That we have read something of somebody's.
        return []
    state = _state_in(payload)
    if state is None:
        return []
    name = message_id(payload)
    if name is None:
        raise InputError("the receipt does not say for which message", key="payload")
    code, reason = _failure_in(payload) if state == "failed" else ("", "")
    return [Receipt(name, state, _time_of(report, payload), code, reason)]


def _state_in(payload: Mapping[str, Any]) -> State | None:
    for raw in (payload.get("ackName"), payload.get("ack")):
        if isinstance(raw, str | int) and not isinstance(raw, bool) and raw in ACKS:
            return ACKS[raw]
    return None


def _failure_in(payload: Mapping[str, Any]) -> tuple[str, str]:
    error = _inner(payload, "error")
    reason = one_line(name_of(error.get("reason")) or "WhatsApp has refused it")
    until = name_of(error.get("until"))
    return (name_of(error.get("code")) or "")[:64], f"{reason}, until {until}" if until else reason


# ---------------------------------------------------------------------- the session


def _standing(report: Mapping[str, Any]) -> list[News]:
    payload = _object(report.get("payload"), "the report's payload")
    standing = standing_of(payload.get("status"), engine_of(report))
    at = _time_of(report, payload)
    if standing is None:
        # A word nobody knows: the next send will tell.
        return []
    if standing.verdict == "fine":
        return [AccountNews("ready", "", at)]
    state: Literal["refused", "offline"]
    state = "refused" if standing.verdict == "stopped" else "offline"
    return [AccountNews(state, standing.reason, at)]


def _time_of(report: Mapping[str, Any], payload: Mapping[str, Any]) -> Instant:
    written = (payload.get("timestamp"), report.get("timestamp"))
    return next((at for raw in written if (at := _instant(raw)) is not None), 0)


def _instant(raw: object) -> Instant | None:
    """A number of seconds or milliseconds, perhaps as a text."""
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and len(raw) <= 15:
        raw = int(raw)
    if not isinstance(raw, int) or isinstance(raw, bool) or raw <= 0:
        return None
    unit = SECOND if raw < _LATEST_SECONDS else MILLISECOND
    return raw * unit if raw * unit < _LATEST_SECONDS * SECOND else None
