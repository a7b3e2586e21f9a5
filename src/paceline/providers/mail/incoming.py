"""A letter that came in, taken to pieces within bounds, whatever it is made of.

Anybody may write to a mailbox, so nothing here trusts what it reads: how much, how deep and how
long is bounded before the standard library sees it, because some of what that does takes the square
of what it is given. What a letter means is read elsewhere (``reports.py``).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import encodings
import quopri
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser, HeaderParser
from encodings.aliases import aliases
from functools import cached_property
from itertools import islice
from pkgutil import iter_modules

from paceline.core.address import normalise
from paceline.core.errors import InputError
from paceline.providers.mail.headers import one_line
from paceline.providers.mail.ids import key_in
from paceline.providers.mail.plain import plain_text

MOST_BYTES = 256 * 1024
"""What of a letter is read. What a report says comes before the letter that it returns."""
MOST_LINES = 8_000
MOST_NESTED = 30
"""Letters with more pieces within pieces are read as if they had none."""
MOST_PARTS = 200
LONGEST_HEADER = 8_000
LONGEST_TYPE = 2_000
LONGEST_TEXT = 50_000
LONGEST_PAGE = 64 * 1024
LONGEST_TAG = 2_000
LONGEST_ADDRESS = 254
LONGEST_KEY = 200

_TYPES = re.compile(rb"^content-type:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)
_NESTS = re.compile(rb"multipart/|message/", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\([^()]*\)')
_IN_ANGLES = re.compile(r"<\s*(?:@[^<>:]*:)?([^<>\s@]+@[^<>\s@]+)\s*>")
_BARE = re.compile(r"[^\s<>,;:\"()\[\]@]{1,64}@[^\s<>,;:\"()\[\]@]{1,190}")
_TAG = re.compile(r"<[^<>]*>")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
"""What Python calls an encoding and no letter is written in; some take the square of a text."""
_CHARSETS = frozenset(each.name for each in iter_modules(encodings.__path__)) - _NO_CHARSETS

ENCLOSED = frozenset({"message/rfc822", "message/global"})
ENCLOSED_HEADERS = frozenset({"text/rfc822-headers", "message/rfc822-headers",
                              "message/global-headers"})  # fmt: skip


_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]*")


class _Letter(Message):
    """A letter whose enclosed ones are left alone where they are encoded: the library would take
    the letters of the encoding for theirs."""

    def get_content_type(self) -> str:
        kind = super().get_content_type()
        return _SEALED if kind.startswith("message/") and _encoding(self) else kind

    @property
    def sealed(self) -> str:
        """What it is when it is decoded; empty where it is not encoded."""
        return super().get_content_type() if self.get_content_type() == _SEALED else ""


_SEALED = "application/x-encoded-message"


@dataclass(frozen=True)
class Incoming:
    """A letter, and the pieces of it that are no letters of their own."""

    message: Message
    source: bytes
    """As it came, within bounds."""

    def header(self, name: str) -> str:
        return field(self.message, name)

    def headers(self, name: str) -> list[str]:
        return list(islice(_values(self.message, name), MOST_PARTS))

    @cached_property
    def leaves(self) -> list[Message]:
        """What it consists of, in order; an enclosed letter is one piece."""
        return [_opened(part) for part in _leaves(self.message)]

    @cached_property
    def text(self) -> str:
        """What it says: plain text where it has any, and its HTML read aloud where it has none."""
        shown = [part for part in self.leaves if not _is_file(part)]
        plain = [text_of(part) for part in shown if part.get_content_type() == "text/plain"]
        told = "\n".join(text for text in plain if text.strip())
        if not told:
            pages = (text_of(part) for part in shown if part.get_content_type() == "text/html")
            told = _read_all_aloud(pages)
        return cleaned(told)[:LONGEST_TEXT].strip()

    @cached_property
    def enclosed(self) -> Message | None:
        """The headers of the letter that it encloses, where there is one."""
        for part in self.leaves:
            kind = part.get_content_type()
            if kind in ENCLOSED and part.is_multipart():
                return next(iter(_under(part)), None)
            if kind in ENCLOSED_HEADERS:
                inner = next(iter(_under(part)), None)
                return HeaderParser().parsestr(text_of(part)) if inner is None else inner
        return None


def taken_apart(raw: bytes) -> Incoming:
    source = _bounded(raw)
    return Incoming(parsed(source), source)


def parsed(source: bytes) -> Message:
    nested = len(_NESTS.findall(source)) > MOST_NESTED
    return BytesParser(_Letter).parsebytes(source, headersonly=nested)


def field(message: Message, name: str) -> str:
    """A header in one line, as it is written; empty where it is missing."""
    return next(_values(message, name), "")


def key_named(text: str) -> str | None:
    """Our own name of a letter, where a text has one. How names are made is no secret, so one may
    have been made of anything: what could be no key of ours is none."""
    key = key_in(text)
    return key if key is not None and key.isprintable() and len(key) <= LONGEST_KEY else None


def words_in(text: str) -> str:
    """A header as people read it, in one line: encoded words decoded."""
    try:
        pieces = decode_header(text)
    except (HeaderParseError, ValueError):
        return one_line(cleaned(text))
    told = "".join(
        piece if isinstance(piece, str) else decoded(piece, charset) for piece, charset in pieces
    )
    return one_line(cleaned(told))


def addresses_in(text: str) -> list[str]:
    """The addresses of a header, each in its one spelling, without the names beside them."""
    bare = _QUOTED.sub(" ", text)
    found = _IN_ANGLES.findall(bare) or _BARE.findall(bare)
    return [spelled(address) for address in found[:MOST_PARTS]]


def spelled(address: str) -> str:
    """An address in its one spelling; what is none as it is, within bounds."""
    written = one_line(cleaned(address))[:LONGEST_ADDRESS]
    try:
        return normalise("email", written)
    except InputError:
        return written.lower()


def text_of(part: Message) -> str:
    """What one piece says, whatever it claims to be written in."""
    try:
        raw = part.get_payload(decode=True)
        charset = part.get_content_charset()
    except ValueError:
        # It is not what it says it is encoded as, and nobody could read it.
        return ""
    return decoded(raw, charset) if isinstance(raw, bytes) else ""


def decoded(raw: bytes, charset: str | None) -> str:
    """Bytes as text: as they say, else as UTF-8, else byte for byte."""
    for encoding in (_charset(charset or ""), "utf-8"):
        if encoding:
            with contextlib.suppress(LookupError, ValueError):
                return raw.decode(encoding)
    return raw.decode("latin-1")


def _charset(named: str) -> str:
    """What Python calls an encoding; empty where it knows none, or none that letters are in. Python
    is never asked for a name as somebody wrote it: it would keep every one of them for good."""
    written = encodings.normalize_encoding(named).lower()
    name = aliases.get(written, written)
    return name if name in _CHARSETS else ""


def cleaned(text: str) -> str:
    """Without what no database keeps and nobody reads."""
    return _UNPRINTABLE.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def _bounded(raw: bytes) -> bytes:
    lines = raw[:MOST_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    # The library takes the square of the length of a type to find what belongs to it.
    return _TYPES.sub(lambda found: found[0][:LONGEST_TYPE], b"\n".join(lines[:MOST_LINES]))


def _values(message: Message, name: str) -> Iterator[str]:
    lowered = name.lower()
    for each, value in message.raw_items():
        if each.lower() == lowered:
            # The library keeps bytes that are no ASCII as halves of characters; most are UTF-8.
            raw = str(value)[:LONGEST_HEADER].encode("utf-8", "surrogateescape")
            yield " ".join(decoded(raw, None).split())


def _leaves(message: Message) -> Iterator[Message]:
    waiting, seen = [message], 0
    while waiting and seen < MOST_PARTS:
        part, seen = waiting.pop(), seen + 1
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            waiting.extend(reversed(_under(part)))
        else:
            yield part


def _encoding(part: Message) -> str:
    written = field(part, "Content-Transfer-Encoding").lower()
    return written if written in ("base64", "quoted-printable") else ""


def _opened(part: Message) -> Message:
    """A piece that is a letter of its own, decoded. None may be encoded (RFC 2046), and some who
    pass them on do it all the same, or say so of what is not."""
    kind = part.sealed if isinstance(part, _Letter) else ""
    if not kind:
        return part
    raw = str(part.get_payload()).encode("utf-8", "surrogateescape")
    if _encoding(part) == "quoted-printable":
        raw = quopri.decodestring(raw)
    elif _BASE64.fullmatch(raw):
        whole = b"".join(raw.split())
        try:
            raw = base64.b64decode(whole[: len(whole) // 4 * 4])
        except binascii.Error:
            raw = b""
    return parsed(_bounded(b"Content-Type: " + kind.encode("utf-8", "replace") + b"\n\n" + raw))


def _under(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [each for each in payload[:MOST_PARTS] if isinstance(each, Message)] if isinstance(
        payload, list
    ) else []  # fmt: skip


def _is_file(part: Message) -> bool:
    return field(part, "Content-Disposition").lower().startswith("attachment")


def _read_all_aloud(pages: Iterable[str]) -> str:
    """What all pages of a letter say, which together may be as long as one that has but one."""
    told: list[str] = []
    left, words_left = LONGEST_PAGE, LONGEST_TEXT
    for page in pages:
        told.append(_read_aloud(page[:left], words_left))
        left, words_left = left - len(page), words_left - len(told[-1])
        if left <= 0 or words_left <= 0:
            break
    return "\n".join(told)


def _read_aloud(page: str, most: int) -> str:
    tamed = _tamed(page)
    try:
        return plain_text(tamed, most)
    except AssertionError:
        # The library's reader gives up on what is no HTML at all; so nothing is left but words.
        return _TAG.sub(" ", tamed)[:most]


def _tamed(page: str) -> str:
    """A page without comments, and with whole tags of a bearable length only: the library's reader
    takes the square of what is left open."""
    first, *pieces = _without_comments(page).split("<")
    kept = [first]
    for piece in pieces:
        tag, end, text = piece.partition(">")
        if not end:
            kept.append(f"&lt;{piece}")
        else:
            kept.append(f"<{tag}>{text}" if len(tag) <= LONGEST_TAG else text)
    return "".join(kept)


def _without_comments(page: str) -> str:
    kept, since = [], 0
    while (start := page.find("<!--", since)) >= 0:
        kept.append(page[since:start])
        end = page.find("-->", start + 4)
        if end < 0:
            return "".join(kept)
        since = end + 3
    return "".join((*kept, page[since:]))
