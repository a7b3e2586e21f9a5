"""A file that was uploaded, written down so that it can be sent again and again.

The handle holds everything a message needs to point at the file: where it lies, its key and its
hashes. It is stored with the uploads, and never logged: whoever has it can read the file.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from paceline.core.instants import DAY, SECOND, Instant
from paceline.engine.ports import Media
from paceline.providers.whatsapp.wire import Draft, FileKind, Uploaded

VERSION = 1

LIFE_US = 7 * DAY
"""WhatsApp keeps a file for about thirty days. Whoever is offline fetches it days after it was
sent, so a file is used for new messages in its first week only."""

MARGIN_US = DAY
"""How long before the end that WhatsApp writes into the address itself, if it does."""

IMAGES = frozenset({"image/jpeg", "image/png"})
VIDEOS = frozenset({"video/mp4", "video/3gpp"})

LARGEST: dict[FileKind, int] = {
    "image": 16 * 1024 * 1024,
    "video": 100 * 1024 * 1024,
    "document": 100 * 1024 * 1024,
}

_END = re.compile(r"[?&]oe=([0-9A-Fa-f]{8})(?:&|$)")
_BYTES = ("key", "sha256", "encrypted_sha256", "thumbnail")


def kind_of(mime: str) -> FileKind:
    """How a file is shown: pictures and films as such, everything else as a document."""
    plain = mime.partition(";")[0].strip().lower()
    if plain in IMAGES:
        return "image"
    return "video" if plain in VIDEOS else "document"


def expiry(file: Uploaded, now: Instant) -> Instant:
    """Until when the file may be used for new messages."""
    ends = [
        int(found[1], 16) * SECOND - MARGIN_US
        for address in (file.url, file.path)
        if (found := _END.search(address))
    ]
    # An end that lies in the past, or is none at all, says nothing about a file of this moment.
    known = [at for at in ends if at > now]
    return min([now + LIFE_US, *known])


def pack(media: Media, file: Uploaded, now: Instant) -> str:
    """The handle of a file that was just uploaded."""
    written: dict[str, Any] = file._asdict()
    for name in _BYTES:
        written[name] = base64.b64encode(written[name]).decode()
    return json.dumps(
        {
            "v": VERSION,
            "kind": kind_of(media.mime),
            "mime": media.mime,
            "name": media.name,
            "at": now,
            "until": expiry(file, now),
            "file": written,
        },
        separators=(",", ":"),
    )


def unpack(handle: str, text: str, now: Instant) -> Draft | None:
    """A message that shows the file with this caption; None if the handle is none of ours, or its
    time is over."""
    try:
        read = json.loads(handle)
        if read["v"] != VERSION or read["until"] <= now:
            return None
        written = dict(read["file"])
        for name in _BYTES:
            written[name] = base64.b64decode(written[name], validate=True)
        return Draft(
            text, read["kind"], read["mime"], read["name"], Uploaded(**written), read["at"]
        )
    except (ValueError, TypeError, KeyError, binascii.Error, RecursionError):
        return None
