"""What goes over the wire: a message as the request that sends it, and what the answers say.

Pure. Fields are named exactly as Meta takes them. Whatever can be known to be wrong with a message
is refused here, before anything is written.
"""

from __future__ import annotations

import json
from typing import Any

from paceline.core.address import guess_kind, is_business_scoped, normalise
from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind, unknown
from paceline.engine.ports import Capabilities, Message
from paceline.providers.answers import Answer, name_of, one_line, refusal
from paceline.providers.whatsapp_cloud.errors import read_refusal
from paceline.providers.whatsapp_cloud.handles import Kept, unpack

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024

ABLE = Capabilities(
    channel="whatsapp",
    actions=frozenset({"message"}),
    media=True,
    receipts=True,
    templates=True,
    needs_templates=True,
    longest_text={"message": LONGEST_TEXT},
)
"""What a number can do. There are no groups, and a message cannot be asked for: what became of one
whose answer was lost is told by Meta's reports, which carry our own name of it."""

PRODUCT = "whatsapp"


def request_for(message: Message) -> dict[str, Any] | Outcome:
    """The body of the call that sends a message, or why it cannot be made."""
    if message.action not in ABLE.actions:
        return refusal("action", f"this account cannot send '{message.action}' (it can: message)")
    to = target_of(message.target)
    if isinstance(to, Outcome):
        return to
    said = _said(message)
    if isinstance(said, Outcome):
        return said
    body = {
        "messaging_product": PRODUCT,
        "recipient_type": "individual",
        **to,
        **said,
        # Comes back in every report about the message: the only way to know it again.
        "biz_opaque_callback_data": message.key,
    }
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return refusal("text", "the message has characters in it that no text has")
    return body


def target_of(written: str) -> dict[str, str] | Outcome:
    """Whom a message is for, as Meta takes it: by number, or by what it calls those who hide
    theirs."""
    text = written.strip()
    if is_business_scoped(text):
        return {"recipient": text}
    kind = guess_kind(text)
    if kind == "group":
        return refusal("target", "the Cloud API cannot write to groups")
    try:
        if kind == "phone":
            return {"to": normalise("phone", text)}
    except InputError as error:
        return refusal("target", str(error))
    return refusal("target", f"{text!r} is no phone number")


def _said(message: Message) -> dict[str, Any] | Outcome:
    part = message.part
    kept: Kept | None = None
    if part.media is not None:
        kept = unpack(message.handle) if message.handle else None
        if kept is None:
            return refusal("media-unknown", "the file was never uploaded")
    if part.template:
        return _template(part, kept)
    return _text(part) if kept is None else _file(part, kept)


def _text(part: Part) -> dict[str, Any] | Outcome:
    if not part.text.strip():
        return refusal("text", "there is nothing in the message")
    if len(part.text) > LONGEST_TEXT:
        return refusal("text", f"{len(part.text)} characters, and WhatsApp takes {LONGEST_TEXT}")
    return {"type": "text", "text": {"body": part.text}}


def _file(part: Part, kept: Kept) -> dict[str, Any] | Outcome:
    if part.text and kept.kind == "audio":
        return refusal("media", "a sound has no caption on WhatsApp: send the text as its own part")
    if len(part.text) > LONGEST_CAPTION:
        size = len(part.text)
        return refusal("text", f"a caption of {size} characters, WhatsApp takes {LONGEST_CAPTION}")
    shown = _shown(kept)
    if part.text:
        shown["caption"] = part.text
    return {"type": kept.kind, kept.kind: shown}


def _shown(kept: Kept) -> dict[str, Any]:
    shown = {"id": kept.id}
    if kept.kind == "document" and kept.name:
        shown["filename"] = kept.name
    return shown


def _template(part: Part, kept: Kept | None) -> dict[str, Any] | Outcome:
    """A template with its blanks filled in, and with a file above it where it has room for one."""
    components: list[dict[str, Any]] = []
    if kept is not None:
        if kept.kind == "audio":
            return refusal("media", "a template shows a picture, a film or a document, no sound")
        shown = {"type": kept.kind, kept.kind: _shown(kept)}
        components.append({"type": "header", "parameters": [shown]})
    blanks = [_blank(name, text) for name, text in part.values]
    if not all(blank["text"] for blank in blanks):
        return refusal("template", f"a blank of the template '{part.template}' is left empty")
    if blanks:
        components.append({"type": "body", "parameters": blanks})
    template: dict[str, Any] = {"name": part.template, "language": {"code": part.language}}
    if components:
        template["components"] = components
    return {"type": "template", "template": template}


def _blank(name: str, text: str) -> dict[str, str]:
    # Meta refuses line breaks, tabs and rows of spaces in here; a field may well have them.
    blank = {"type": "text", "text": one_line(text)}
    return blank | ({"parameter_name": name} if name else {})


def read_sent(answer: Answer, now: Instant) -> Outcome:
    """What became of the message, as far as the answer tells."""
    if not answer.succeeded:
        return read_refusal(answer, now)
    said = answer.said()
    listed = said.get("messages") if said is not None else None
    first = listed[0] if isinstance(listed, list) and listed else None
    name = name_of(first.get("id")) if isinstance(first, dict) else None
    if name is None:
        # Somebody said yes, but it was not Meta, or only half of what it said has arrived.
        return unknown(f"answered {answer.status} with something that is not Meta's")
    return Outcome(OutcomeKind.ACCEPTED, provider_id=name)
