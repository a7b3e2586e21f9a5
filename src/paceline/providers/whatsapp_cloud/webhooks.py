"""What Meta reports by itself: whether it was Meta, and what it said. Pure.

One report may hold several things, about several numbers of one app; only what is about the
account's own number is news, and of what is about its whole business account only how that stands.
Any of it may come twice, late, or in another order. What is no report at all is an ``InputError``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from paceline.core.address import canonical
from paceline.core.enclosures import Enclosed, enclosed
from paceline.core.errors import InputError, ProviderRefused
from paceline.core.instants import SECOND, Instant, parse_instant
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import AccountNews, Inbound, News, Receipt
from paceline.providers.answers import name_of, one_line, shortened
from paceline.providers.options import secret_in
from paceline.providers.whatsapp_cloud.errors import code_in, kind_of, words_in
from paceline.providers.whatsapp_cloud.settings import WhatsAppCloudSettings

SIGNATURE = "x-hub-signature-256"
SCHEME = "sha256="
OBJECT = "whatsapp_business_account"

MESSAGES, ECHOES, ACCOUNT = "messages", "smb_message_echoes", "account_update"
"""The fields of a report that are read; echoes are what people send from the number's own phone."""

State = Literal["sent", "delivered", "read", "failed"]
STATES: Mapping[str, State] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",
    "failed": "failed",
}

NO_MESSAGES = frozenset({"reaction", "system", "request_welcome"})
"""Kinds of what comes in beside messages: nothing was said that could be answered."""

FILES = frozenset({"image", "audio", "video", "document", "sticker"})

STOPS = frozenset({OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED})
"""What an error about a whole account has to mean to be the end of sending for now."""

_CHALLENGE = re.compile(r"[\w.-]{1,128}", re.ASCII)
_LATEST_SECONDS = 100_000_000_000


def verify(settings: WhatsAppCloudSettings, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether somebody who knows the app's secret sent this."""
    secret = _secret(settings.app_secret, "app secret")
    if secret is None:
        return False
    given = {name.lower(): value for name, value in headers.items()}
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return _same(given.get(SIGNATURE, "").strip().lower(), f"{SCHEME}{made}")


def challenge(settings: WhatsAppCloudSettings, query: Mapping[str, str]) -> str | None:
    """What to answer when Meta wants to know whether we are who we say."""
    token = _secret(settings.verify_token, "verify token")
    if token is None or query.get("hub.mode") != "subscribe":
        return None
    if not _same(query.get("hub.verify_token", ""), token):
        return None
    asked = query.get("hub.challenge", "")
    # It is said back to whoever asked, so it must not be anything but a word.
    return asked if _CHALLENGE.fullmatch(asked) else None


def _secret(written: str | None, what: str) -> str | None:
    try:
        return None if written is None else secret_in(written, what)
    except ProviderRefused:
        return None


def _same(given: str, expected: str) -> bool:
    """Compared in the same time whatever is different, so that nobody can feel their way."""
    return hmac.compare_digest(given.encode("utf-8", "backslashreplace"), expected.encode())


def parse(settings: WhatsAppCloudSettings, body: bytes) -> list[News]:
    report = _object(_read(body), "the report")
    if report.get("object") != OBJECT:
        raise InputError("the report is not about WhatsApp", key="object")
    found: list[News] = []
    for entry in _objects(report.get("entry"), "entry"):
        for change in _objects(entry.get("changes"), "changes"):
            found.extend(_change(settings, entry, change))
    return found


def _change(
    settings: WhatsAppCloudSettings, entry: Mapping[str, Any], change: Mapping[str, Any]
) -> Iterator[News]:
    field = change.get("field")
    if field not in (MESSAGES, ECHOES, ACCOUNT):
        return
    value = _object(change.get("value"), "the report's value")
    at = _instant(entry.get("time")) or 0
    if field == ACCOUNT:
        if (
            settings.business_account_id
            and name_of(entry.get("id")) == settings.business_account_id
        ):
            yield from _account(value, at)
        return
    metadata = value.get("metadata")
    number = metadata.get("phone_number_id") if isinstance(metadata, dict) else None
    if name_of(number) != settings.phone_number_id:
        # Reports come for all the numbers of an app. This one is another's.
        return
    for message in _listed(value, "messages"):
        yield from _inbound(message, from_us=False)
    for message in _listed(value, "message_echoes"):
        yield from _inbound(message, from_us=True)
    for status in _listed(value, "statuses"):
        yield from _receipt(status)
    for error in _listed(value, "errors"):
        yield from _trouble(error, at)


# ---------------------------------------------------------------------- messages


def _inbound(message: Mapping[str, Any], *, from_us: bool) -> Iterator[Inbound]:
    kind = name_of(message.get("type")) or "text"
    if kind in NO_MESSAGES:
        return
    name = name_of(message.get("id"))
    # Whoever hides their number has another name with us instead; others may have both.
    hidden = name_of(message.get("from_user_id")) or ""
    sender = _address(message.get("from")) or hidden
    group = name_of(message.get("group_id")) or ""
    there = _address(message.get("to")) or name_of(message.get("to_user_id")) or ""
    chat = group or (there if from_us else sender)
    if name is None or not chat:
        raise InputError("the message has no id, or is from nowhere", key="messages")
    yield Inbound(
        provider_id=name,
        chat=chat,
        sender=sender,
        text=_text_of(message, kind),
        at=_instant(message.get("timestamp")) or 0,
        from_us=from_us,
        kind=kind,
        group=bool(group),
        files=_files_of(message, kind),
        also=(hidden,) if hidden not in ("", sender) and not from_us else (),
    )


def _text_of(message: Mapping[str, Any], kind: str) -> str:
    """What was said: in a text, under a picture, or on the button that was pressed."""
    said = message.get(kind)
    if not isinstance(said, dict):
        return ""
    chosen = said.get(str(said.get("type"))) if kind == "interactive" else None
    places = (said, chosen if isinstance(chosen, dict) else {})
    words = (place.get(key) for place in places for key in ("body", "caption", "text", "title"))
    return next((word for word in words if isinstance(word, str) and word), "")


def _files_of(message: Mapping[str, Any], kind: str) -> tuple[Enclosed, ...]:
    """The one file there may be. Its id is good for seven days."""
    said = message.get(kind)
    if kind not in FILES or not isinstance(said, dict):
        return ()
    return (enclosed(said.get("filename"), said.get("mime_type"), handle=name_of(said.get("id"))),)


def _receipt(status: Mapping[str, Any]) -> Iterator[Receipt]:
    state = STATES.get(str(status.get("status")).lower())
    if state is None:
        # A word nobody knows: nothing about how far it got.
        return
    name, key = name_of(status.get("id")), name_of(status.get("biz_opaque_callback_data"))
    if name is None and key is None:
        raise InputError("the status does not say of which message", key="statuses")
    errors = _listed(status, "errors") if state == "failed" else []
    code = next((code_in(error) for error in errors), "")
    reason = ": ".join(_words(errors[0])) if errors else ""
    at = _instant(status.get("timestamp")) or 0
    yield Receipt(name or "", state, at, code, shortened(reason), key)


# ---------------------------------------------------------------------- the account


def _trouble(error: Mapping[str, Any], at: Instant) -> Iterator[AccountNews]:
    """An error that is about the number as a whole, and not about one message."""
    code = code_in(error)
    kind = kind_of(400, code) if code else OutcomeKind.TRANSIENT
    reason = shortened(": ".join(_words(error)) or f"error {code}")
    if kind in STOPS:
        yield AccountNews("refused", reason, at)
    elif kind is OutcomeKind.UNAVAILABLE:
        yield AccountNews("offline", reason, at)


def _account(value: Mapping[str, Any], at: Instant) -> Iterator[AccountNews]:
    """How the business account stands. A warning stops nothing."""
    event = value.get("event")
    ban = value.get("ban_info")
    state = ban.get("waba_ban_state") if isinstance(ban, dict) else None
    if event == "ACCOUNT_RECONNECTED" or state == "REINSTATE":
        yield AccountNews("ready", "", at)
    elif event in ("ACCOUNT_DELETED", "ACCOUNT_OFFBOARDED"):
        yield AccountNews("refused", f"Meta says: {event}", at)
    elif state == "DISABLE":
        yield AccountNews("refused", "Meta has disabled the business account", at)
    elif event == "ACCOUNT_RESTRICTION":
        yield from _restriction(value, at)


def _restriction(value: Mapping[str, Any], at: Instant) -> Iterator[AccountNews]:
    """What keeps a number from beginning conversations, and until when if Meta says."""
    for one in _listed(value, "restriction_info"):
        kind = name_of(one.get("restriction_type")) or ""
        if kind == "RESTRICTED_BIZ_INITIATED_MESSAGING":
            until_at = _instant(one.get("expiration"))
            yield AccountNews("refused", f"Meta says: {kind}", at, until_at)


# ---------------------------------------------------------------------- reading


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


def _objects(raw: object, key: str) -> Iterable[dict[str, Any]]:
    if not isinstance(raw, list):
        raise InputError("the report has no list of them", key=key)
    return [_object(one, key) for one in raw]


def _listed(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """What a report has of a kind, which is nothing in most of them."""
    return list(_objects(value[key], key)) if value.get(key) is not None else []


def _words(error: Mapping[str, Any]) -> list[str]:
    return [one_line(word) for word in words_in(error) if isinstance(word, str) and word.strip()]


def _address(raw: object) -> str:
    """A person as a target is written; empty where nobody is named."""
    name = name_of(raw)
    return canonical(name) if name else ""


def _instant(raw: object) -> Instant | None:
    """A number of seconds, often as a text, or a date."""
    if isinstance(raw, str) and not (raw.isascii() and raw.isdecimal()):
        try:
            return max(0, parse_instant(raw)) or None
        except (InputError, OverflowError):
            return None
    if isinstance(raw, str):
        raw = int(raw) if len(raw) <= 12 else None
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 < raw < _LATEST_SECONDS:
        return raw * SECOND
    return None
