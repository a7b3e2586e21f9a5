"""A file that was uploaded, written down so that it can be sent again and again.

How a file is sent depends on what it is, and a document has a name: the handle holds both beside
Meta's own id of the file. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from paceline.core.instants import DAY
from paceline.engine.ports import Media
from paceline.providers.answers import name_of

FileKind = Literal["image", "video", "audio", "document"]

KEPT_US = 30 * DAY
"""How long Meta keeps a file that was uploaded."""

MIB = 1024 * 1024
LARGEST: Mapping[FileKind, int] = {
    "image": 5 * MIB,
    "video": 16 * MIB,
    "audio": 16 * MIB,
    "document": 100 * MIB,
}

_BY_MIME: Mapping[str, FileKind] = {
    "image/jpeg": "image",
    "image/png": "image",
    "video/mp4": "video",
    "video/3gpp": "video",
    "audio/aac": "audio",
    "audio/amr": "audio",
    "audio/mp4": "audio",
    "audio/mpeg": "audio",
    "audio/ogg": "audio",
}


class Kept(NamedTuple):
    """A file at Meta."""

    id: str
    kind: FileKind
    name: str


def kind_of(mime: str) -> FileKind:
    """How a file is shown. Whatever is none of the others is a document, and Meta says whether it
    takes such."""
    return _BY_MIME.get(mime.partition(";")[0].strip().lower(), "document")


def pack(media: Media, media_id: str) -> str:
    written = {"id": media_id, "kind": kind_of(media.mime), "name": media.name}
    return json.dumps(written, separators=(",", ":"), ensure_ascii=False)


def unpack(handle: str) -> Kept | None:
    """The file of a handle; None if it is none of ours."""
    try:
        read = json.loads(handle)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    media_id, kind, name = (name_of(read.get(key)) for key in ("id", "kind", "name"))
    if media_id is None or kind not in get_args(FileKind):
        return None
    return Kept(media_id, kind, name or "")  # type: ignore[arg-type]
