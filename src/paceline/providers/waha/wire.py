"""What goes over the wire: a message as the request that sends it, and what the answers say.

Pure. Fields are named exactly as WAHA takes them. Whatever can be known to be wrong with a message
is refused here, before anything is written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from paceline.core.address import guess_kind, normalise
from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, unknown
from paceline.engine.ports import Capabilities, Found, Message
from paceline.providers.answers import Answer, name_of, refusal
from paceline.providers.waha.errors import read_refusal
from paceline.providers.waha.settings import WahaSettings

LONGEST_TEXT = 65_536

ABLE = Capabilities(
    channel="whatsapp",
    actions=frozenset({"message"}),
    media=True,
    groups=True,
    receipts=True,
    finds=True,
    resolves=True,
    longest_text={"message": LONGEST_TEXT},
)
"""What a number can do. WAHA keeps no file for later: each travels with every message, and being
uploaded once means that it is read and packed once. What is found under our id is out; that nothing
is found proves nothing, because a message may leave before WAHA has written it down, or be on no
list at all."""

PERSON, GROUP, HIDDEN = "@c.us", "@g.us", "@lid"
"""What a chat's id ends with. Some people hide their number: they are known by ``…@lid`` alone."""

LARGEST_FILE = 32 * 1024 * 1024
"""Packed into JSON it is a third larger, and WAHA does not take everything."""

IMAGES = frozenset({"image/jpeg", "image/png"})
VIDEOS = frozenset({"video/mp4", "video/3gpp"})

NOT_SENT = "ERROR"
"""How far a message got that WhatsApp has refused, in WAHA's word."""

_HIDDEN = re.compile(r"\d{5,20}@lid")
_AT_WHATSAPP = re.compile(r"(\d{7,15})(?::\d+)?@(?:c\.us|s\.whatsapp\.net)")
_SERIALISED = re.compile(r"(?:true|false)_[^_]+_([^_]+)(?:_[^_]+)?")


class File(NamedTuple):
    """A file as WAHA takes it."""

    name: str
    mime: str
    data: str
    """Its content in base64."""


class Request(NamedTuple):
    """A call that sends something."""

    path: str
    body: dict[str, Any]


def able(settings: WahaSettings) -> Capabilities:
    return replace(ABLE, finds=settings.own_ids, resolves=settings.look_up)


def own_id(key: str) -> str:
    """The id under which a message goes out: always the same for the same message, so that one in
    doubt can be asked for, and one that is sent again is no second one. It looks like those that
    WhatsApp's own programs make up, and says nothing about us."""
    return f"3EB0{hashlib.sha256(key.encode()).hexdigest()[:18].upper()}"


def request_for(message: Message, settings: WahaSettings, file: File | None) -> Request | Outcome:
    """The call that sends a message, or why it cannot be made."""
    if message.action not in ABLE.actions:
        return refusal("action", f"this account cannot send '{message.action}' (it can: message)")
    chat = chat_of(message.target)
    if isinstance(chat, Outcome):
        return chat
    text = message.part.text
    if len(text) > LONGEST_TEXT:
        return refusal("text", f"{len(text)} characters, and WhatsApp takes {LONGEST_TEXT}")
    if not _is_text(text):
        return refusal("text", "the message has characters in it that no text has")
    body: dict[str, Any] = {"session": settings.session, "chatId": chat}
    if settings.own_ids:
        body["id"] = own_id(message.key)
    if message.part.media is None:
        if not text.strip():
            return refusal("text", "there is nothing in the message")
        return Request("/api/sendText", {**body, "text": text})
    if file is None:
        return refusal("media-unknown", "the file is not at hand any more")
    body["file"] = {"mimetype": file.mime, "filename": file.name, "data": file.data}
    # Also where it is empty: WAHA makes one up where none is given.
    return Request(_path_for(file.mime), {**body, "caption": text})


def _path_for(mime: str) -> str:
    """Pictures and films are shown as such, everything else is a document."""
    plain = mime.partition(";")[0].strip().lower()
    if plain in IMAGES:
        return "/api/sendImage"
    return "/api/sendVideo" if plain in VIDEOS else "/api/sendFile"


def chat_of(written: str) -> str | Outcome:
    """Whom a message is for, as WAHA takes it.

    A chat's own id is taken as it is: in some countries WhatsApp knows people by numbers that
    nobody could dial.
    """
    text = written.strip()
    if _HIDDEN.fullmatch(text.lower()):
        return text.lower()
    person = _AT_WHATSAPP.fullmatch(text.lower())
    if person is not None:
        return person[1] + PERSON
    kind = guess_kind(text)
    if kind == "group" and text.lower().endswith(GROUP):
        return text.lower()
    try:
        if kind == "phone":
            return normalise("phone", text).removeprefix("+") + PERSON
    except InputError as error:
        return refusal("target", str(error))
    return refusal("target", f"{text!r} is neither a phone number nor a WhatsApp group")


def read_sent(answer: Answer, now: Instant, engine: str = "") -> Outcome:
    """What became of the message, as far as the answer tells."""
    if not answer.succeeded:
        return read_refusal(answer, now, engine)
    said = answer.said()
    name = None if said is None else message_id(said)
    if name is None:
        # Somebody said yes, but it was not WAHA, or only half of what it said has arrived.
        return unknown(f"answered {answer.status} with something that is not WAHA's")
    return Outcome(OutcomeKind.ACCEPTED, provider_id=name)


def read_found(answer: Answer, message: Message) -> Found:
    """Whether an answer is the message that was asked for. One that WhatsApp has refused may be an
    earlier attempt at the same, whose id is the same."""
    said = answer.said() if answer.succeeded else None
    ours = said is not None and message_id(said) == own_id(message.key)
    if said is None or not ours or said.get("fromMe") is not True:
        return Found("unclear")
    refused = said.get("ack") == -1 or said.get("ackName") == NOT_SENT
    return Found("unclear") if refused else Found("present", own_id(message.key))


def read_person(answer: Answer, chat: str, now: Instant, engine: str = "") -> str | Outcome:
    """The chat of a number that was looked up, which in some countries is another than is dialled;
    or that it has none."""
    said = answer.said()
    exists = said.get("numberExists") if said is not None and answer.succeeded else None
    if said is None or not isinstance(exists, bool):
        # Where nobody can be asked the number is taken as it is written.
        return chat if answer.status in (404, 501) else read_refusal(answer, now, engine)
    if not exists:
        return Outcome(OutcomeKind.BOUNCED, "the number is not on WhatsApp", "not_on_whatsapp")
    found = name_of(said.get("chatId")) or chat
    return found if found.endswith((PERSON, HIDDEN)) else chat


def message_id(said: Mapping[str, Any]) -> str | None:
    """The id that a message has at WhatsApp, however the engine at work writes it: one text, a text
    with the chat around it, or an object."""
    for raw in (said.get("id"), said.get("key")):
        inner = raw
        if isinstance(raw, dict):
            inner = raw.get("id") or raw.get("_serialized")
        name = name_of(inner) if isinstance(inner, str) else None
        if name is not None:
            return bare_id(name)
    return None


def bare_id(name: str) -> str:
    """An id without the chat that WAHA writes around it, which may be written in two ways."""
    serialised = _SERIALISED.fullmatch(name)
    return serialised[1] if serialised else name


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
