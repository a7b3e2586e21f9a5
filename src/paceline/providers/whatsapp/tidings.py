"""The library's events in plain words, ready for the pipe.

Works on anything that has their attributes. Runs in an account's own process, so nothing of ours
is loaded here; what the words mean is decided at the other end.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

PEOPLE = "s.whatsapp.net"
HIDDEN = "lid"
GROUPS = "g.us"

SECOND = 1_000_000

RECEIPTS = {1: "delivered", 4: "read", 6: "read", 8: "failed"}
"""By the library's numbers: delivered, read, played, and a file the phone could not fetch. The
others are between the account's own devices."""

COMES_BACK = frozenset({8, 10})
"""Failures to connect after which the library tries again by itself: WhatsApp's own errors."""
OUTDATED = 6

KINDS = {
    "conversation": "text",
    "extendedTextMessage": "text",
    "imageMessage": "image",
    "videoMessage": "video",
    "documentMessage": "document",
    "audioMessage": "audio",
    "stickerMessage": "sticker",
    "contactMessage": "contact",
    "contactsArrayMessage": "contact",
    "locationMessage": "location",
    "liveLocationMessage": "location",
    "pollCreationMessage": "poll",
    "pollCreationMessageV3": "poll",
    "buttonsResponseMessage": "text",
    "listResponseMessage": "text",
    "templateButtonReplyMessage": "text",
}
"""What people send, by the field it comes in. The rest is between devices, or says nothing that
could be answered: a thumb up."""

FILES = frozenset(
    {"imageMessage", "videoMessage", "documentMessage", "audioMessage", "stickerMessage"}
)
COMPOSING = 1
"""What somebody does who types, by the library's number."""

Told = dict[str, Any]


def jid_text(jid: Any) -> str:
    """A person is the same on every device."""
    return f"{jid.User}@{jid.Server}"


def own_names(me: Any) -> frozenset[str]:
    """The ids under which the account itself appears in groups."""
    return frozenset() if me is None else frozenset({jid_text(me.JID), jid_text(me.LID)})


def connected(me: Any) -> Told:
    own = jid_text(me.JID) if me is not None else ""
    return {"event": "standing", "state": "ready", "own": own}


def logged_out(event: Any) -> Told:
    number = event.Reason if event.HasField("Reason") else 0
    return {"event": "standing", "state": "logged_out", "number": number}


def banned(event: Any) -> Told:
    return {
        "event": "standing",
        "state": "banned",
        "number": event.Code if event.HasField("Code") else 0,
        "seconds": event.Expire,
    }


def connect_failure(event: Any) -> Told:
    number = event.Reason if event.HasField("Reason") else 0
    if number == OUTDATED:
        return {"event": "standing", "state": "outdated"}
    state = "offline" if number in COMES_BACK else "ended"
    reason = event.Message or f"WhatsApp refused the connection ({number})"
    return {"event": "standing", "state": state, "reason": reason}


def ended(reason: str) -> Told:
    """The connection is over. A ban or a logout with a number the library does not know ends it,
    too, and then it has to be known for what it is: whoever is banned must not knock again."""
    for name, state in (("TemporaryBan", "banned"), ("LoggedOut", "logged_out")):
        if f"neonize.{name}." in reason:
            return {"event": "standing", "state": state, "number": 0}
    return {"event": "standing", "state": "ended", "reason": reason}


def stream_error(event: Any) -> Told:
    reason = f"WhatsApp ended the connection ({event.Code})"
    return {"event": "standing", "state": "offline", "reason": reason}


def pair_status(event: Any) -> Told:
    failed = event.HasField("Error") and event.Error != ""
    return {"event": "pairing", "result": "error" if failed else "success", "reason": event.Error}


def login(result: str) -> Told:
    """How the showing of codes ended. Errors are told once more, with their reason."""
    return {"event": "pairing", "result": result, "reason": ""}


def group_changed(jid: Any) -> Told:
    return {"event": "group", "jid": jid_text(jid)}


def group(info: Any, own: frozenset[str]) -> list[Any]:
    """A group's id, name and size, and whether the account may write there."""
    admins = any(
        (who.IsAdmin or who.IsSuperAdmin)
        and own & {jid_text(who.JID), jid_text(who.LID), jid_text(who.PhoneNumber)}
        for who in info.Participants
    )
    may_send = bool(admins or not info.GroupAnnounce.IsAnnounce)
    return [jid_text(info.JID), info.GroupName.Name, len(info.Participants) or None, may_send]


def receipt(event: Any) -> Told | None:
    state = RECEIPTS.get(event.Type) if event.HasField("Type") else None
    if state is None or event.MessageSource.IsFromMe:
        return None
    return {
        "event": "receipt",
        "ids": list(event.MessageIDs),
        "state": state,
        "at": instant(event.Timestamp),
    }


def came(event: Any) -> Told | None:
    """A message somebody wrote; None for what devices tell each other, and for broadcasts."""
    info, content = event.Info, event.Message
    source = info.MessageSource
    field = next((f.name for f, _ in content.ListFields() if f.name in KINDS), None)
    chat, sender = _whom(source)
    if field is None or not chat.endswith((f"@{PEOPLE}", f"@{HIDDEN}", f"@{GROUPS}")):
        return None
    return {
        "event": "came",
        "id": info.ID,
        "chat": chat,
        "sender": sender,
        "text": text_of(content, field),
        "kind": "edit" if event.IsEdit else kind_of(content, field),
        "at": instant(info.Timestamp),
        "from_us": source.IsFromMe,
        "group": source.IsGroup,
        "files": files_of(content, field),
        "also": _also(source, sender),
    }


def typing(event: Any) -> Told | None:
    """Somebody writes to the account, or speaks; in groups nobody needs to know."""
    source = event.MessageSource
    if event.State != COMPOSING or source.IsGroup or source.IsFromMe:
        return None
    return {"event": "typing", "chat": _whom(source)[0]}


def kind_of(content: Any, field: str) -> str:
    spoken = field == "audioMessage" and getattr(content, field).PTT
    return "voice" if spoken else KINDS[field]


def files_of(content: Any, field: str) -> list[Told]:
    """The file in a message, with all that is needed to fetch it and to read it."""
    found = getattr(content, field)
    if field not in FILES:
        return []
    handle = {
        "path": found.directPath,
        "key": b64encode(found.mediaKey).decode(),
        "sha256": b64encode(found.fileSHA256).decode(),
        "encrypted_sha256": b64encode(found.fileEncSHA256).decode(),
    }
    return [
        {
            "name": getattr(found, "fileName", "") or getattr(found, "title", ""),
            "mime": found.mimetype,
            "size": found.fileLength or None,
            "seconds": getattr(found, "seconds", 0) or None,
            "handle": json.dumps(handle, separators=(",", ":")) if found.directPath else "",
        }
    ]


def _whom(source: Any) -> tuple[str, str]:
    """Where it was said, and by whom; by number where one is known."""
    sender = _numbered(source.Sender, source.SenderAlt)
    if source.IsGroup:
        return jid_text(source.Chat), sender
    other = source.RecipientAlt if source.IsFromMe else source.SenderAlt
    return _numbered(source.Chat, other), sender


def _also(source: Any, sender: str) -> list[str]:
    """What else whoever wrote it is called: people have a number and a name that hides it."""
    if source.IsFromMe or source.IsGroup:
        return []
    named = [one for one in (source.Sender, source.SenderAlt) if one.Server in (PEOPLE, HIDDEN)]
    return sorted({jid_text(one) for one in named} - {sender})


def _numbered(jid: Any, other: Any) -> str:
    hidden = jid.Server == HIDDEN and other.Server == PEOPLE
    return jid_text(other if hidden else jid)


def text_of(content: Any, field: str) -> str:
    """The words in a message, wherever they are."""
    found = getattr(content, field)
    if isinstance(found, str):
        return found
    names = ("text", "caption", "selectedDisplayText", "title", "name")
    # What a document is called is told with the file.
    for name in names[1:2] if field in FILES else names:
        value = getattr(found, name, "")
        if isinstance(value, str) and value:
            return value
    return ""


def instant(stamp: int) -> int:
    """Microseconds, whether the library counts in seconds, in milliseconds or in nanoseconds: it
    does all three."""
    if stamp <= 0:
        return 0
    if stamp < 10**11:
        return stamp * SECOND
    if stamp < 10**14:
        return stamp * 1_000
    return stamp if stamp < 10**17 else stamp // 1_000
