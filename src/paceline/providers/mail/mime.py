"""The inside of a letter: texts, files, and how several of them are packed into one.

Written by hand, over the standard library's encoders: its own classes take every header apart and
put it together again, which takes longer than sending the letter, and decodes what it should not
(a file's name that looks like an encoded word, line breaks and all).

Whatever is packed here has no ``=_`` in it, so that nothing in a letter can end one of its parts.
"""

from __future__ import annotations

import binascii
import re
from base64 import encodebytes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from urllib.parse import quote

from paceline.providers.mail.headers import LINE, one_line

EOL = b"\r\n"
EDGE = b"=_"
"""What begins the line between two parts: neither base64 nor quoted-printable can make it."""

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_OPAQUE = ("message/", "multipart/")
"""What may not be packed as other files are, and so is sent as just a file."""
_UNWRITTEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What no text of a letter may have in it."""
_PLAIN_NAME = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{1,50}")
_ESCAPED = re.compile(r"(?:%[0-9A-F]{2}|[^%]){1,50}")


@dataclass(frozen=True)
class File:
    """A file that goes along."""

    name: str
    mime: str
    content: bytes

    @cached_property
    def packed(self) -> bytes:
        """As it stands in every letter that it goes with."""
        return encodebytes(self.content).replace(b"\n", EOL)


def text(words: str, subtype: str = "plain") -> bytes:
    """A text as a part; ``UnicodeEncodeError`` where it is none."""
    written = _UNWRITTEN.sub(" ", words.replace("\r\n", "\n").replace("\r", "\n"))
    if written and not written.endswith("\n"):
        written += "\n"
    encoding, body = _encoded(written.replace("\n", "\r\n").encode())
    return _head(subtype, encoding) + body


@cache
def _head(subtype: str, encoding: str) -> bytes:
    return (
        f'Content-Type: text/{subtype}; charset="utf-8"\r\n'
        f"Content-Transfer-Encoding: {encoding}\r\n\r\n"
    ).encode()


def file(given: File, content_id: str = "") -> bytes:
    """A file as a part; one with a Content-ID is a picture within a page."""
    head = [
        f"Content-Type: {_type(given.mime)}",
        "Content-Transfer-Encoding: base64",
        f"Content-Disposition: {'inline' if content_id else 'attachment'};\r\n {_name(given.name)}",
    ]
    if content_id:
        head.append(f"Content-ID: <{content_id}>")
    return "\r\n".join(head).encode() + EOL + EOL + given.packed


def together(kind: str, parts: Sequence[bytes], edge: str) -> bytes:
    """Several parts as one. ``edge`` is to differ from that of the parts inside."""
    line = b"--" + EDGE + edge.encode()
    head = f'Content-Type: multipart/{kind};\r\n boundary="{EDGE.decode()}{edge}"'
    whole = [head.encode(), EOL, EOL]
    for part in parts:
        whole += [line, EOL, part, EOL]
    return b"".join([*whole, line, b"--", EOL])


def _encoded(raw: bytes) -> tuple[str, bytes]:
    """As it is, if everybody can read that; else in the way that takes less."""
    if raw.isascii() and EDGE not in raw and _is_narrow(raw):
        return "7bit", raw
    others = len(raw) - len(raw.decode("ascii", "ignore"))
    if others * 3 > len(raw):
        return "base64", encodebytes(raw).replace(b"\n", EOL)
    return "quoted-printable", binascii.b2a_qp(raw, istext=True)


def _is_narrow(raw: bytes) -> bool:
    return len(raw) <= LINE or max(map(len, raw.split(EOL))) <= LINE


def _type(mime: str) -> str:
    kind = mime.partition(";")[0].strip().lower()
    good = _MIME.fullmatch(kind) and not kind.startswith(_OPAQUE)
    return kind if good else "application/octet-stream"


def _name(given: str) -> str:
    """A file's name, and no folder of anybody's."""
    name = one_line(re.split(r"[/\\]", given)[-1]) or "file"
    if _PLAIN_NAME.fullmatch(name) and "=?" not in name:
        return f'filename="{name}"'
    pieces = _ESCAPED.findall(quote(name, safe=""))
    if len(pieces) == 1:
        return f"filename*=utf-8''{pieces[0]}"
    first, *rest = pieces
    numbered = [f"filename*0*=utf-8''{first}"]
    numbered += [f"filename*{number}*={piece}" for number, piece in enumerate(rest, 1)]
    return ";\r\n ".join(numbered)
