"""What passes through the pipe between us and an account's process: an object, and perhaps bytes.

Both ends use this, and the other end has nothing of ours loaded, so only the standard library is
needed here. What the objects say is known to ``host.py`` and ``process.py``.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, BinaryIO

LARGEST_HEADER = 64 * 1024 * 1024
LARGEST_BODY = 256 * 1024 * 1024

_SIZES = struct.Struct(">II")

Frame = tuple[dict[str, Any], bytes]


class BadFrame(Exception):
    """What came through the pipe is not what this module writes."""


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    written = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    return _SIZES.pack(len(written), len(body)) + written + body


def read(source: BinaryIO) -> Frame | None:
    """The next one, however long that takes; None at the end."""
    start = source.read(_SIZES.size)
    if len(start) < _SIZES.size:
        return None
    header_size, body_size = _sizes(start)
    header, body = source.read(header_size), source.read(body_size)
    if len(header) < header_size or len(body) < body_size:
        return None
    return _decode(header), body


async def receive(source: asyncio.StreamReader) -> Frame | None:
    """The same on a loop."""
    try:
        header_size, body_size = _sizes(await source.readexactly(_SIZES.size))
        header = await source.readexactly(header_size)
        body = await source.readexactly(body_size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return _decode(header), body


def _sizes(start: bytes) -> tuple[int, int]:
    header_size, body_size = _SIZES.unpack(start)
    if header_size > LARGEST_HEADER or body_size > LARGEST_BODY:
        raise BadFrame(f"a frame of {header_size} and {body_size} bytes")
    return header_size, body_size


def _decode(header: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"no object: {error}") from None
    if not isinstance(decoded, dict):
        raise BadFrame("no object")
    return decoded
