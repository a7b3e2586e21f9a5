"""The log of effects: everything that ever reached the imaginary provider, in order.

It stands for the outside world, so it is never rolled back, and it is the provider's only memory.
How an effect comes about is not decided here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from paceline.core.errors import InputError, NotFoundError
from paceline.core.instants import Instant
from paceline.core.model import Part

_CHUNK = 1 << 20


class PartDigest:
    """What was sent, without its words: enough to tell parts apart and to see media reused.

    The words are kept only until somebody asks for the digest. In a log in memory hardly anybody
    does, and hashing is dear.
    """

    __slots__ = ("_digest", "_undigested", "handle", "kind", "media", "size")

    def __init__(
        self,
        kind: str,
        size: int,
        digest: str,
        media: str | None = None,
        handle: str | None = None,
        undigested: Part | None = None,
    ) -> None:
        self.kind = kind
        self.size = size
        self.media = media
        self.handle = handle
        self._digest = digest
        self._undigested = undigested

    @classmethod
    def of(cls, part: Part, handle: str | None) -> PartDigest:
        return cls(part.kind, len(part.text), "", part.media, handle, part)

    @property
    def digest(self) -> str:
        part = self._undigested
        if part is not None:
            filled = (text for value in part.values for text in value)
            named = (part.template, part.language, *filled) if part.template else ()
            words = "\0".join((part.text, part.subject, part.html, *named))
            self._digest = sha256(words.encode()).hexdigest()[:16]
            self._undigested = None
        return self._digest

    def to_mapping(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _PART_FIELDS}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartDigest):
            return NotImplemented
        return self.to_mapping() == other.to_mapping()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"PartDigest({', '.join(f'{k}={v!r}' for k, v in self.to_mapping().items())})"


_PART_FIELDS = ("kind", "size", "digest", "media", "handle")


@dataclass(slots=True)
class Effect:
    """One call that reached the provider, what became of it, and what was answered.

    ``accepted`` tells whether the provider holds a new message (or file) because of it, whatever
    the answer was. ``called_at`` is when the caller called, ``at`` when the provider acted.
    Once it is in a log nobody changes it; it is not frozen, because that would treble its price.
    """

    kind: Literal["send", "upload"]
    called_at: Instant
    at: Instant
    account: str
    address: str
    key: str
    target: str
    action: str
    part: PartDigest
    attempt: int
    """The how-manieth call with this key."""
    answer: str
    code: str
    accepted: bool
    provider_id: str | None = None
    """The message's id, or the handle of an upload."""
    retry_after_us: int | None = None
    expires_at: Instant | None = None
    number: int = 0
    """The place in the log, from 1; the log gives it when the effect is read."""

    def to_json(self) -> str:
        """One line. The place is left out: it is where the line stands."""
        plain = {name: getattr(self, name) for name in _PLAIN_FIELDS}
        return json.dumps(plain | {"part": self.part.to_mapping()}, separators=(",", ":"))

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], number: int) -> Effect:
        return cls(**{**raw, "part": PartDigest(**raw["part"]), "number": number})


_PLAIN_FIELDS = tuple(f.name for f in fields(Effect) if f.name not in ("part", "number"))


class Tail(Protocol):
    """One reader's place in a log."""

    def fresh(self) -> list[Effect]:
        """The effects recorded since the last call, oldest first."""
        ...


class Effects(Protocol):
    """A log of effects, append-only. Once ``record`` returns, the effect has happened."""

    def record(self, effect: Effect) -> None: ...

    def tail(self) -> Tail:
        """A reader that begins with the first effect."""
        ...

    def all(self) -> list[Effect]: ...


class MemoryEffects:
    """A log that lives as long as this object, and so outlives every simulated crash."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []

    def record(self, effect: Effect) -> None:
        if effect.number:  # it has its place in some log already, perhaps in this one
            effect = replace(effect)
        # Nobody else has seen it yet, so it is numbered as it is: a copy for every send is dear.
        effect.number = len(self._effects) + 1
        self._effects.append(effect)

    def tail(self) -> Tail:
        return _MemoryTail(self._effects)

    def all(self) -> list[Effect]:
        return list(self._effects)


class _MemoryTail:
    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects
        self._seen = 0

    def fresh(self) -> list[Effect]:
        if self._seen == len(self._effects):
            return []
        fresh = self._effects[self._seen :]
        self._seen += len(fresh)
        return fresh


class FileEffects:
    """A log in a file of JSON lines, shared by any number of processes and by those after them.

    Each effect is one write to a file opened for appending, so lines never mix, and it is the
    operating system's once the write returns: killing the process cannot take it back. (The power
    failing could; the outside world is not what we test with that.) It needs a POSIX system.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        # Addresses are personal, so the file is its owner's only.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, 0o600)

    def record(self, effect: Effect) -> None:
        line = effect.to_json().encode() + b"\n"
        with _writing(self._fileno()) as descriptor:
            if _is_torn(descriptor):
                line = b"\n" + line
            written = os.write(descriptor, line)
        if written != len(line):
            raise OSError(f"{self.path}: only {written} of {len(line)} bytes could be written")

    def tail(self) -> Tail:
        return _FileTail(self.path, self._fileno)

    def all(self) -> list[Effect]:
        return self.tail().fresh()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _fileno(self) -> int:
        if self._descriptor < 0:
            raise ValueError(f"{self.path} has been closed")
        return self._descriptor


@contextmanager
def _writing(descriptor: int) -> Iterator[int]:
    """Keeps other writers out, so that the end of the file is seen as they have left it."""
    # Imported late, because the log in memory has to work where there is no such module.
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield descriptor
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_torn(descriptor: int) -> bool:
    """Whether the last line has no end, for the next one must not be glued to it.

    A process killed within the write itself can leave half a line, where it crosses a page.
    """
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


class _FileTail:
    def __init__(self, path: Path, fileno: Callable[[], int]) -> None:
        self._path = path
        self._fileno = fileno
        self._offset = 0
        self._lines = 0
        self._number = 0

    def fresh(self) -> list[Effect]:
        text = b"".join(iter(self._read_chunk, b""))
        whole, newline, unfinished = text.rpartition(b"\n")
        # A line without its end is still being written, or will never be finished; wait for it.
        self._offset -= len(unfinished)
        if not newline:
            return []
        return [effect for line in whole.split(b"\n") if (effect := self._read(line)) is not None]

    def _read_chunk(self) -> bytes:
        chunk = os.pread(self._fileno(), _CHUNK, self._offset)
        self._offset += len(chunk)
        return chunk

    def _read(self, line: bytes) -> Effect | None:
        self._lines += 1
        try:
            raw = json.loads(line)
        except ValueError:
            # Half a line: its writer was killed in the middle, so its effect never happened.
            if not line or line.startswith(b"{"):
                return None
            raw = None
        try:
            effect = Effect.from_mapping(raw, self._number + 1)
        except (KeyError, TypeError) as error:
            where = f"{self._path}:{self._lines}"
            raise InputError("this is not an effect", where=where) from error
        self._number += 1
        return effect


def read_effects(path: str | Path) -> list[Effect]:
    """Everything in a log file, for judges; the file is not created."""
    try:
        with open(path, "rb") as file:
            return _FileTail(Path(path), file.fileno).fresh()
    except FileNotFoundError:
        raise NotFoundError(f"there is no log of effects at {path}") from None
