"""What goes over the wire: a message as the request that sends it, and what the answers say.

Pure. Fields are named exactly as Wassenger takes them. Whatever can be known to be wrong with a
message is refused here, before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from paceline.core.address import guess_kind, normalise
from paceline.core.errors import InputError
from paceline.core.instants import Instant, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind, transient, unknown
from paceline.engine.ports import Capabilities, Found, Message
from paceline.providers.answers import Answer, name_of, one_line, refusal
from paceline.providers.wassenger.errors import as_told, read_refusal
from paceline.providers.wassenger.settings import WassengerSettings

ABLE = Capabilities(
    channel="whatsapp",
    actions=frozenset({"message"}),
    media=True,
    groups=True,
    receipts=True,
    finds=True,
)
"""What a number can do. That nothing is listed under our name proves nothing: nobody says that a
message is on the list before it is handed to WhatsApp. Nor does a message that is listed as failed,
which may be an earlier attempt at the same."""

GROUP = "@g.us"
LARGEST_FILE = 100 * 1024 * 1024
"""What WhatsApp takes as a document. Pictures and films must be smaller, which Wassenger knows."""

FAILED = "failed"


def able(settings: WassengerSettings) -> Capabilities:
    return ABLE if settings.groups else replace(ABLE, groups=False)


def request_for(message: Message, settings: WassengerSettings) -> dict[str, Any] | Outcome:
    """The body of the call that sends a message, or why it cannot be made."""
    if message.action not in ABLE.actions:
        return refusal("action", f"this account cannot send '{message.action}' (it can: message)")
    target = target_of(message.target, settings)
    if isinstance(target, Outcome):
        return target
    body = {**target, "device": settings.device, "reference": message.key}
    # When to send, and whether again, is not the gateway's to decide.
    body |= {"enqueue": "never", "retries": 0}
    if message.part.media is not None:
        if not message.handle:
            return refusal("media-unknown", "the file was never uploaded")
        body["media"] = {"file": message.handle}
    elif not message.part.text.strip():
        return refusal("text", "there is nothing in the message")
    if message.part.text:
        body["message"] = message.part.text
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return refusal("text", "the message has characters in it that no text has")
    return body


def target_of(written: str, settings: WassengerSettings) -> dict[str, Any] | Outcome:
    """Whom a message is for, as Wassenger takes it."""
    text = written.strip()
    kind = guess_kind(text)
    if kind == "group" and text.lower().endswith(GROUP):
        if not settings.groups:
            return refusal("target", "this number cannot write to groups")
        return {"group": text.lower()}
    try:
        if kind == "phone":
            return {"phone": normalise("phone", text)}
    except InputError as error:
        return refusal("target", str(error))
    return refusal("target", f"{text!r} is neither a phone number nor a WhatsApp group")


def read_sent(answer: Answer, now: Instant) -> Outcome:
    """What became of the message, as far as the answer tells."""
    answer = as_told(answer)
    if not answer.succeeded:
        return read_refusal(answer, now)
    sent = _only(answer.read())
    name = None if sent is None else name_of(sent.get("id"))
    if sent is None or name is None:
        # Somebody said yes, but it was not Wassenger, or only half of what it said has arrived.
        return unknown(f"answered {answer.status} with something that is not Wassenger's")
    if _word(sent.get("status")) == FAILED:
        return transient(failure_of(sent)[1] or "Wassenger could not send it", FAILED)
    return Outcome(OutcomeKind.ACCEPTED, provider_id=name)


def read_found(answer: Answer, message: Message) -> Found:
    """Whether a list has the message, by our own name of it."""
    listed = answer.read() if answer.succeeded else None
    for entry in listed if isinstance(listed, list) else ():
        ours = isinstance(entry, dict) and entry.get("reference") == message.key
        if ours and _word(entry.get("status")) != FAILED:
            return Found("present", name_of(entry.get("id")))
    return Found("unclear")


def read_file(answer: Answer) -> tuple[str | None, Instant | None]:
    """The id of a file and until when it is kept, from an answer that has one or a list of one."""
    file = _only(answer.read())
    if file is None:
        return None, None
    return name_of(file.get("id")), read_instant(file.get("expiresAt"))


def file_in_the_way(answer: Answer) -> str | None:
    """The file that Wassenger has already, where it refuses another copy for that reason."""
    said = answer.said()
    meta = said.get("meta") if said is not None else None
    return name_of(meta.get("file")) if answer.status == 409 and isinstance(meta, dict) else None


def failure_of(said: Mapping[str, Any]) -> tuple[str, str]:
    """The code and the words of a message that failed."""
    error = said.get("error")
    nested: Mapping[str, Any] = error if isinstance(error, dict) else {}
    code = _first((said.get("failureCode"), nested.get("code")))
    words = (said.get("failureReason"), nested.get("message"), error)
    return code[:64], one_line(_first(words))


def read_instant(raw: object) -> Instant | None:
    try:
        return parse_instant(raw) if isinstance(raw, str) else None
    except (InputError, OverflowError):
        return None


def _only(read: object) -> dict[str, Any] | None:
    """An object, or the one in a list of one."""
    if isinstance(read, list) and len(read) == 1:
        read = read[0]
    return read if isinstance(read, dict) else None


def _word(raw: object) -> str:
    return raw.strip().lower() if isinstance(raw, str) else ""


def _first(words: Iterable[object]) -> str:
    return next((word for word in words if isinstance(word, str) and word.strip()), "")
