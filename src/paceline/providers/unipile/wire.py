"""What goes over the wire: a message as the request that sends it, and what the answer to it says.

Pure. Fields are named and nested exactly as Unipile takes them. Whatever can be known to be wrong
with a message is refused here, before anything is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from paceline.core.address import guess_kind
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, unknown
from paceline.engine.ports import Capabilities, Message
from paceline.providers.answers import Answer, name_of, refusal, segment
from paceline.providers.unipile.errors import TABLE, is_error
from paceline.providers.unipile.settings import UnipileSettings

KEY_HEADER = "X-Paceline-Key"
"""Our own name of an e-mail travels with it, so that it can be found again."""

CHAT = "chat:"
"""How a target begins that is a conversation rather than a person."""

LONGEST_NOTE = 300
"""What may be said with a connection request."""

LINKEDIN = Capabilities(
    channel="linkedin",
    actions=frozenset({"message", "connection_request", "inmail"}),
    finds=True,
    resolves=True,
    longest_text={"connection_request": LONGEST_NOTE},
    single_part=frozenset({"connection_request"}),
)
EMAIL = Capabilities(channel="email", actions=frozenset({"email"}), media=True, finds=True)
ABLE = {"linkedin": LINKEDIN, "email": EMAIL}
"""What each kind of account can do. Reads lag behind writes, and a list may be cut short, so that
something is not found proves nothing with either of them."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file as it is sent along."""

    name: str
    mime: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """One call that sends something: a form of several fields, or an object."""

    path: str
    answers_with: str
    """The field of the answer that names what was sent."""
    fields: tuple[tuple[str, str], ...] = ()
    json: dict[str, Any] | None = None
    attachment: Attachment | None = None

    def form(self) -> list[tuple[str, tuple[str | None, bytes] | tuple[str, bytes, str]]]:
        """The fields and the file as parts of a form; a field is a part without a file's name."""
        parts: list[Any] = [(name, (None, value.encode())) for name, value in self.fields]
        if self.attachment is not None:
            file = self.attachment
            parts.append(("attachments", (file.name, file.content, file.mime)))
        return parts


def request_for(
    message: Message, settings: UnipileSettings, attachment: Attachment | None = None
) -> Request | Outcome:
    """The call that sends a message, or why it cannot be made."""
    action, able = message.action, ABLE[settings.kind]
    if action not in able.actions:
        known = ", ".join(sorted(able.actions))
        return refusal("action", f"this account cannot send '{action}' (it can: {known})")
    if message.part.media is not None and not able.media:
        return refusal("media", "files cannot be sent over LinkedIn")
    try:
        if action == "email":
            return _email(message, settings, attachment)
        if action == "connection_request":
            return _invitation(message, settings)
        return _chat(message, settings, inmail=action == "inmail")
    except UnicodeEncodeError:
        return refusal("text", "the message has characters in it that no text has")


def read_sent(answer: Answer, request: Request, now: Instant) -> Outcome:
    """What became of the message, as far as the answer tells."""
    said = answer.said()
    if not answer.succeeded or (said is not None and is_error(said)):
        return TABLE.outcome_of(answer, now)
    if said is None:
        # Somebody said yes, but it was not Unipile, or only half of what it said has arrived.
        return unknown(f"answered {answer.status} with something that is not Unipile's")
    return Outcome(OutcomeKind.ACCEPTED, provider_id=name_of(said.get(request.answers_with)))


def chat_of(target: str) -> str | None:
    """The conversation that a target names; None if it names a person."""
    return target.removeprefix(CHAT).strip() if target.startswith(CHAT) else None


def _chat(message: Message, settings: UnipileSettings, *, inmail: bool) -> Request | Outcome:
    text, chat = message.part.text, chat_of(message.target)
    if not text.strip():
        return refusal("text", "there is nothing in the message")
    if chat == "" or not message.target.strip():
        return refusal("target", "there is nobody to write to")
    if chat is not None and inmail:
        return refusal("target", "an InMail begins a conversation, this one has begun already")
    if chat is not None:
        path = f"/chats/{segment(chat)}/messages"
        return _checked(Request(path, "message_id", (("text", text),)))
    fields = [
        ("account_id", settings.account_id),
        ("attendees_ids", message.target.strip()),
        ("text", text),
    ]
    if message.part.subject:
        fields.append(("subject", message.part.subject))
    fields.append(("linkedin[api]", settings.linkedin_api))
    if inmail:
        fields.append(("linkedin[inmail]", "true"))
    return _checked(Request("/chats", "message_id", tuple(fields)))


def _invitation(message: Message, settings: UnipileSettings) -> Request | Outcome:
    note, target = message.part.text, message.target.strip()
    if not target or chat_of(target) is not None:
        return refusal("target", "a connection request goes to a person, by their provider id")
    if len(note) > LONGEST_NOTE:
        return refusal(
            "too_many_characters",
            f"{len(note)} characters, and a connection request takes {LONGEST_NOTE}",
        )
    body = {"account_id": settings.account_id, "provider_id": target}
    if note:
        body["message"] = note
    json.dumps(body, ensure_ascii=False).encode()
    return Request("/users/invite", "invitation_id", json=body)


def _email(
    message: Message, settings: UnipileSettings, attachment: Attachment | None
) -> Request | Outcome:
    part, target = message.part, message.target.strip()
    if not _is_address(target):
        return refusal("target", f"{target!r} is no e-mail address")
    body = part.html or part.text
    if not body.strip() and attachment is None:
        return refusal("text", "there is nothing in the message")
    headers = [{"name": KEY_HEADER, "value": message.key}]
    fields = [
        ("account_id", settings.account_id),
        ("to", _compact([{"identifier": target}])),
        ("subject", part.subject),
        ("body", body),
        ("custom_headers", _compact(headers)),
    ]
    if settings.track_opens or settings.track_links:
        wanted = {"opens": settings.track_opens, "links": settings.track_links}
        fields.append(("tracking_options", _compact({**wanted, "label": message.key})))
    return _checked(Request("/emails", "tracking_id", tuple(fields), attachment=attachment))


def _checked(request: Request) -> Request:
    """The same, once it is clear that every field can be written."""
    for _, value in request.fields:
        value.encode()
    return request


def _is_address(text: str) -> bool:
    """Whether it is one of e-mail: WhatsApp's groups are written with an @, too."""
    name, at, domain = text.rpartition("@")
    whole = bool(name and at and domain) and text.isprintable() and " " not in text
    return whole and guess_kind(text) == "email"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
