"""What goes over the wire: a message as the request that sends it, and what the answers say.

Pure. Fields are named exactly as WATI takes them. Whatever can be known to be wrong with a message
is refused here, before anything is written. Texts and templates go out under our own name of them;
files cannot, nor can a text that is too long for an address, where the only call is that takes one,
or that is for somebody who hides their number, whom that call does not know.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from paceline.core.address import guess_kind, is_business_scoped, normalise
from paceline.core.errors import InputError
from paceline.core.instants import SECOND, Instant, parse_instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind, unknown
from paceline.engine.ports import Capabilities, Message
from paceline.providers.answers import Answer, Said, name_of, one_line, refusal, segment
from paceline.providers.wati.errors import (
    entry_in,
    is_refused,
    lists_nobody,
    read_refusal,
    says_yes,
)
from paceline.providers.wati.files import File
from paceline.providers.wati.settings import WatiSettings
from paceline.providers.whatsapp_cloud.handles import kind_of

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
LONGEST_QUERY = 6_000
"""What fits into an address on every server: some take no more than eight thousand bytes of it."""

ABLE = Capabilities(
    channel="whatsapp",
    actions=frozenset({"message"}),
    media=True,
    receipts=True,
    templates=True,
    needs_templates=True,
    finds=True,
    longest_text={"message": LONGEST_TEXT},
)
"""What a number can do. That a list does not have a message proves nothing: WATI takes messages
first, and sends them afterwards."""

CONVERSATIONS = "/api/ext/v3/conversations/messages"
TEMPLATES = "/api/ext/v3/messageTemplates/send"

_LATEST_SECONDS = 100_000_000_000


class Request(NamedTuple):
    """One call that sends something."""

    path: str
    what: dict[str, Any]
    """What goes with it, as the library takes it."""
    name: str | None = None
    """Our own name of the message, where it goes out under one."""


def request_for(message: Message, settings: WatiSettings, file: File | None) -> Request | Outcome:
    """The call that sends a message, or why it cannot be made."""
    if message.action not in ABLE.actions:
        return refusal("action", f"this account cannot send '{message.action}' (it can: message)")
    to = target_of(message.target)
    if isinstance(to, Outcome):
        return to
    part = message.part
    if not _is_text("".join((part.text, *(text for _, text in part.values)))):
        return refusal("text", "the message has characters in it that no text has")
    if part.template:
        return _template(message, to, settings)
    if part.media is not None:
        return _file(part, to, settings, file)
    return _text(message, to, settings)


def target_of(written: str) -> str | Outcome:
    """Whom a message is for, as WATI takes it."""
    text = written.strip()
    if is_business_scoped(text):
        return text
    kind = guess_kind(text)
    if kind == "group":
        return refusal("target", "WATI cannot write to groups")
    try:
        if kind == "phone":
            return normalise("phone", text).removeprefix("+")
    except InputError as error:
        return refusal("target", str(error))
    return refusal("target", f"{text!r} is no phone number")


def bears_our_name(message: Message, settings: WatiSettings) -> bool:
    """Whether a message goes out under our own name of it."""
    if message.part.template:
        return True
    if message.part.media is not None or is_business_scoped(message.target):
        return False
    return _fits(_query(message, settings))


def _text(message: Message, to: str, settings: WatiSettings) -> Request | Outcome:
    text = message.part.text
    if not text.strip():
        return refusal("text", "there is nothing in the message")
    if len(text) > LONGEST_TEXT:
        return refusal("text", f"{len(text)} characters, and WhatsApp takes {LONGEST_TEXT}")
    query = _query(message, settings)
    if is_business_scoped(to) or not _fits(query):
        return Request(
            f"{CONVERSATIONS}/text", {"json": {"target": _at(to, settings), "text": text}}
        )
    path = f"{settings.tenant}/api/v1/sendSessionMessage/{segment(to)}"
    return Request(path, {"params": query}, message.key)


def _query(message: Message, settings: WatiSettings) -> dict[str, str]:
    query = {"messageText": message.part.text, "localMessageId": message.key}
    return query | ({"channelPhoneNumber": settings.channel} if settings.channel else {})


def _fits(query: dict[str, str]) -> bool:
    return len(urlencode(query)) <= LONGEST_QUERY


def _file(part: Part, to: str, settings: WatiSettings, file: File | None) -> Request | Outcome:
    if file is None:
        return refusal("media-unknown", "the file is not at hand any more")
    if part.text and kind_of(file.mime) == "audio":
        return refusal("media", "a sound has no caption on WhatsApp: send the text as its own part")
    if len(part.text) > LONGEST_CAPTION:
        size = len(part.text)
        return refusal("text", f"a caption of {size} characters, WhatsApp takes {LONGEST_CAPTION}")
    fields = {"target": _at(to, settings)} | ({"caption": part.text} if part.text else {})
    enclosed = [("file", (file.name, file.content, file.mime))]
    return Request(f"{CONVERSATIONS}/file", {"data": fields, "files": enclosed})


def _template(message: Message, to: str, settings: WatiSettings) -> Request | Outcome:
    part = message.part
    if part.media is not None:
        reason = f"the file above the template '{part.template}' is chosen at WATI, not here"
        return refusal("media", reason)
    # Blanks that have no name are called by their number.
    blanks = [
        {"name": name or str(number), "value": one_line(text)}
        for number, (name, text) in enumerate(part.values, start=1)
    ]
    if not all(blank["value"] for blank in blanks):
        return refusal("template", f"a blank of the template '{part.template}' is left empty")
    body: dict[str, Any] = {
        "template_name": part.template,
        # WATI makes a broadcast of every call, and shows it to people under this name.
        "broadcast_name": f"{part.template[:80]}-{message.key}",
        "recipients": [{"target": to, "local_message_id": message.key, "custom_params": blanks}],
    }
    if settings.channel:
        body["channel"] = settings.channel
    return Request(TEMPLATES, {"json": body}, message.key)


def _at(to: str, settings: WatiSettings) -> str:
    """Somebody in the conversation with one of several numbers."""
    return f"{settings.channel}:{to}" if settings.channel else to


def read_sent(answer: Answer, request: Request, now: Instant) -> Outcome:
    """What became of the message, as far as the answer tells."""
    said = answer.said()
    if not answer.succeeded or (said is not None and is_refused(said)):
        return read_refusal(answer, now)
    if said is None or not _is_taken(said, request):
        # Somebody said yes, but it was not WATI, or only half of what it said has arrived.
        return unknown(f"answered {answer.status} with something that is not WATI's")
    if lists_nobody(said):
        # It leaves out whom it cannot write to, and may as well not list whom it can.
        return unknown("WATI took the template, and does not say whether for this person")
    told = _told_in(said)
    name = own_name_in(told) or request.name or name_in(told)
    return Outcome(OutcomeKind.ACCEPTED, provider_id=name)


def _is_taken(said: Said, request: Request) -> bool:
    """Whether WATI says that it has taken the message. Its newer calls show it instead."""
    return says_yes(said) or (request.name is None and name_in(_told_in(said)) is not None)


def _told_in(said: Said) -> Said:
    """What an answer tells of the one message: in a list, by itself, or instead of all else."""
    message = said.get("message")
    return entry_in(said) or (message if isinstance(message, dict) else said)


def own_name_in(told: Said) -> str | None:
    """The name that a message was sent under, which is ours where WATI takes one."""
    return name_of(told.get("localMessageId")) or name_of(told.get("local_message_id"))


def name_in(told: Said) -> str | None:
    """What a message is called, in answers, in lists and in reports: by the name it was sent under
    where that is told, which is the same in all of them."""
    return own_name_in(told) or name_of(told.get("id")) or name_of(told.get("whatsappMessageId"))


def time_of(told: Said) -> Instant | None:
    """When something was, in lists and in reports."""
    found = (_instant(told.get(key)) for key in ("timestamp", "created"))
    return next((at for at in found if at is not None), None)


def _instant(raw: object) -> Instant | None:
    """A number of seconds, mostly as a text, or a date."""
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


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
