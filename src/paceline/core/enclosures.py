"""Files that come with a message, and how a message that is not only text is put into words.

A file itself is not fetched: what is kept is what it is, and what is needed to get at it. The
handle is the provider's own (an address, an id), and may let in whoever has it: it is shown to
nobody but the operator's own responder, and never logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LONGEST_NAME = 200
LONGEST_HANDLE = 2_000
LONGEST_MIME = 100
MOST_FILES = 30
"""What is kept of a message with more of them."""

NO_TEXT = "[message without text]"

_SEEN = {
    "image": "image",
    "img": "image",
    "photo": "image",
    "audio": "voice message",
    "voice": "voice message",
    "ptt": "voice message",
    "video": "video",
    "gif": "video",
    "document": "document",
    "file": "document",
    "media": "document",
    "sticker": "sticker",
    "location": "location",
    "contact": "contact",
    "contacts": "contact",
    "vcard": "contact",
}
"""What stands for a message that is not only text, by the words providers have for it."""

_SIZES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))


class Enclosed(NamedTuple):
    """A file that came with a message."""

    name: str = ""
    mime: str = ""
    size: int | None = None
    """In bytes, where the provider says so."""
    seconds: int | None = None
    """How long a voice or a film lasts."""
    handle: str = ""
    """How the provider can be asked for it: an address, or an id."""

    def __repr__(self) -> str:
        return f"Enclosed({self.name!r}, {self.mime!r}, {self.size}, {self.seconds})"

    def to_mapping(self) -> dict[str, Any]:
        """As it is stored, and told to a responder: what is not known is left out."""
        return {key: value for key, value in self._asdict().items() if value not in ("", None)}

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> Enclosed:
        return cls(**{key: raw[key] for key in cls._fields if key in raw})


def enclosed(
    name: object = None,
    mime: object = None,
    size: object = None,
    seconds: object = None,
    handle: object = None,
) -> Enclosed:
    """What a provider says of a file: what is no name, or no number, is left out."""
    return Enclosed(
        _line(name, LONGEST_NAME),
        _line(mime, LONGEST_MIME).partition(";")[0].strip().lower(),
        _count(size),
        _count(seconds),
        # Half an address is none.
        handle if isinstance(handle, str) and len(handle) <= LONGEST_HANDLE else "",
    )


def in_words(kind: str, text: str, files: Sequence[Enclosed] = ()) -> str:
    """A message as a text: what of it cannot be read is named, with its caption."""
    written, what = text.strip(), _SEEN.get(kind.casefold())
    signs = [_sign(what or _by_mime(one.mime), one) for one in files]
    if not signs and what is not None:
        signs = [f"[{what}]"]
    return " ".join([*signs, written] if written else signs) or NO_TEXT


def _sign(what: str, file: Enclosed) -> str:
    known = [what]
    if file.name and what == "document":
        known.append(file.name.replace("[", "(").replace("]", ")"))
    if file.seconds:
        minutes, seconds = divmod(file.seconds, 60)
        known.append(f"{minutes} min {seconds} s" if minutes else f"{seconds} s")
    elif file.size and what == "document":
        known.append(_size(file.size))
    return f"[{', '.join(known)}]"


def _by_mime(mime: str) -> str:
    major = mime.partition("/")[0]
    return {"image": "image", "audio": "voice message", "video": "video"}.get(major, "document")


def _size(count: int) -> str:
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def _line(raw: object, longest: int) -> str:
    if not isinstance(raw, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in raw).split())[:longest]


def _count(raw: object) -> int | None:
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and len(raw) <= 15:
        raw = int(raw)
    if isinstance(raw, float) and 0 <= raw < 1e15:
        raw = int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < 10**15 else None
