"""Reading ``multipart/form-data`` to the letter: what does not fit the format is an error."""

from __future__ import annotations

import re
from dataclasses import dataclass


class NotAForm(Exception):
    """The bytes are not what their content type says."""


@dataclass(frozen=True)
class Field:
    name: str
    value: bytes
    filename: str | None = None
    mime: str | None = None

    @property
    def text(self) -> str:
        return self.value.decode("utf-8")


_DISPOSITION = re.compile(r'form-data; name="([^"]*)"(?:; filename="([^"]*)")?')


def read_form(content_type: str, body: bytes) -> list[Field]:
    """The fields in the order in which they were sent."""
    match = re.fullmatch(
        r"multipart/form-data; boundary=([0-9A-Za-z'()+_,./:=?-]{1,70})", content_type
    )
    if match is None:
        raise NotAForm(f"content type {content_type!r}")
    edge = b"--" + match[1].encode()
    if not body.startswith(edge + b"\r\n") or not body.endswith(b"\r\n" + edge + b"--\r\n"):
        raise NotAForm("it does not begin and end with its boundary")
    inner = body[len(edge) + 2 : -(len(edge) + 6)]
    return [_read_part(part) for part in inner.split(b"\r\n" + edge + b"\r\n")]


def _read_part(part: bytes) -> Field:
    head, blank, value = part.partition(b"\r\n\r\n")
    if not blank:
        raise NotAForm("a part has no empty line after its headers")
    headers = {}
    for line in head.decode("utf-8").split("\r\n"):
        name, colon, said = line.partition(": ")
        if not colon:
            raise NotAForm(f"header {line!r}")
        headers[name.lower()] = said
    match = _DISPOSITION.fullmatch(headers.pop("content-disposition", ""))
    if match is None:
        raise NotAForm("a part does not say what it is called")
    mime = headers.pop("content-type", None)
    if headers:
        raise NotAForm(f"headers nobody asked for: {sorted(headers)}")
    return Field(match[1], value, match[2], mime)
