"""Outgoing webhooks: what an operator writes about one, what is sent to it, and how it is signed.

Pure: what is said to whom, never how or when. The signature is made over the very bytes that are
sent, together with the instant of sending, so that whoever knows the secret can tell both that it
was us and that it is no old message played once more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from paceline.core.errors import InputError
from paceline.core.events import Wanted
from paceline.core.instants import SECOND, Instant, iso
from paceline.core.tables import read_key, refuse_unknown

KEYS = ("name", "url", "secret", "events")
SHORTEST_SECRET = 16
FROM_ENVIRONMENT = "env:"
ID_HEADER = "Paceline-Event-Id"
TIMESTAMP_HEADER = "Paceline-Timestamp"
SIGNATURE_HEADER = "Paceline-Signature"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECRET = re.compile(r"[\x21-\x7e]+")
_LIKE = "Write it like https://crm.example.com/paceline"


@dataclass(frozen=True, slots=True)
class Webhook:
    """Somebody who wants to hear of events, as it is written in the settings."""

    name: str
    url: str = field(repr=False)
    """It may have a token in it, so nothing but its host is ever shown."""
    secret: str = field(repr=False)
    """Or ``env:NAME``, the variable that holds it."""
    wanted: Wanted = field(default_factory=Wanted)

    @classmethod
    def from_mapping(cls, raw: object) -> Webhook:
        if not isinstance(raw, Mapping):
            raise InputError("must be a table; write it as [[webhooks]] with keys below")
        refuse_unknown(raw, dict.fromkeys(KEYS))
        for key in ("url", "secret"):
            if key not in raw:
                raise InputError("is missing", key=key)
        url = read_key("url", _url, raw["url"])
        name = read_key("name", _name, raw.get("name", urlsplit(url).hostname))
        secret = read_key("secret", _secret, raw["secret"])
        return cls(name, url, secret, read_key("events", _events, raw.get("events", ["*"])))

    @property
    def shown(self) -> str:
        """Where it is, as it may be shown."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}/…"

    def signed_with(self, variables: Mapping[str, str]) -> str:
        """The secret itself, wherever it is kept."""
        if not self.secret.startswith(FROM_ENVIRONMENT):
            return self.secret
        variable = self.secret.removeprefix(FROM_ENVIRONMENT)
        try:
            return _secret(variables.get(variable, ""))
        except InputError as error:
            reason = f"the variable {variable} {error.reason}"
            raise InputError(
                reason, key=f"webhooks: {self.name}: secret", hint=error.hint
            ) from None


def webhooks_of(raw: object) -> tuple[Webhook, ...]:
    """All that are written, each under a name of its own; what is wrong names the one it is in."""
    if isinstance(raw, str):
        raw = _list_in(raw)
    if not isinstance(raw, list):
        raise InputError("must be a list of tables; write each as [[webhooks]]")
    found: dict[str, Webhook] = {}
    for number, entry in enumerate(raw, start=1):
        try:
            webhook = Webhook.from_mapping(entry)
            if webhook.name in found:
                reason = f"there are two named {webhook.name!r}, and each keeps its own place"
                raise InputError(reason, key="name", hint="Give each a name of its own")
        except InputError as error:
            place = f"number {number}: {error.key}: " if error.key else f"number {number} "
            raise InputError(f"{place}{error.reason}", hint=error.hint) from None
        found[webhook.name] = webhook
    return tuple(found.values())


def _list_in(text: str) -> object:
    """In a variable they are written in one line."""
    try:
        return tomllib.loads(f"webhooks = {text.strip()}")["webhooks"]
    except tomllib.TOMLDecodeError:
        hint = 'Write [{ url = "https://example.com/hook", secret = "env:NAME" }]'
        raise InputError("is not a list of tables", hint=hint) from None


def body_of(event_id: int, kind: str, at: Instant, text: str, data: Mapping[str, Any]) -> bytes:
    """What is sent: the same bytes for the same event, however often it is sent."""
    told = {"id": event_id, "kind": kind, "at": iso(at), "text": text, "data": dict(data)}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def headers_of(secret: str, event: str, body: bytes, now: Instant) -> dict[str, str]:
    """What goes with it; ``event`` is its name, which is the same at every try."""
    timestamp = str(now // SECOND)
    return {
        "Content-Type": "application/json",
        ID_HEADER: event,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: signature(secret, timestamp, body),
    }


def signature(secret: str, timestamp: str, body: bytes) -> str:
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        # Without the value itself: it may be a secret.
        raise InputError("must be a text in quotes")
    return raw


def _name(raw: object) -> str:
    name = _text(raw)
    if not _NAME.fullmatch(name):
        hint = "Use letters, digits and . _ - (64 at most, not starting with a sign)"
        raise InputError(f"{name!r} cannot be a webhook's name", hint=hint)
    return name


def _url(raw: object) -> str:
    """Without the address itself in what is said about it: it may hold a token."""
    text = _text(raw).strip()
    parts = _split(text)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("is not an http or https address", hint=_LIKE)
    if parts.fragment or not (text.isascii() and text.isprintable()) or " " in text:
        raise InputError("has something in it that is never sent", hint=_LIKE)
    return text


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _secret(raw: object) -> str:
    text = _text(raw).strip()
    if text.startswith(FROM_ENVIRONMENT):
        if not text.removeprefix(FROM_ENVIRONMENT):
            raise InputError("names no variable", hint="Write it like env:CRM_SECRET")
        return text
    if not _SECRET.fullmatch(text) or len(text) < SHORTEST_SECRET:
        raise InputError(
            f"is shorter than {SHORTEST_SECRET} characters, or has others than plain ones in it",
            hint="Make one with: openssl rand -hex 32",
        )
    return text


def _events(raw: object) -> Wanted:
    if not isinstance(raw, list):
        raise InputError('must be a list such as ["run.*", "account.suspended"]')
    return Wanted.parse(_text(entry) for entry in raw)
