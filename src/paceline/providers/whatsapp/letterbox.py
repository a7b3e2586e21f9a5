"""Messages that came in, kept on disk until whoever reads them has written them down.

The library tells WhatsApp that it has a message as soon as it has told us; WhatsApp does not tell
it again. So it is in a file before anything else is done with it, and stays there until it is
confirmed: should anybody be killed in between, it is told once more. Told twice it does no harm,
for it has a name. Of receipts and of who is typing nothing is kept.

Runs in an account's own process, so only the standard library is needed here. The file lies beside
the session and belongs to whoever has locked that.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

SUFFIX = ".inbox"
AT_ONCE = 500
"""Messages that are told and not confirmed."""
MOST_KEPT = 20_000
"""Messages that are kept, if nobody reads them for long: the oldest go first, and are counted."""
LARGEST = 32 * 2**20
"""Of a file in which something always waits: then it is written anew, without all the rest."""

Told = dict[str, Any]
Tell = Callable[[Told], None]


class Spool:
    """The file: a line for every message, and one for all that was confirmed. Whatever ``put`` has
    returned for survives a crash; a line that was cut short was never told to anybody."""

    def __init__(self, path: Path, most: int = MOST_KEPT) -> None:
        self._path = path
        self._most = most
        self._kept: dict[int, Told] = {}
        self._last = 0
        self.name = ""
        """Of what is numbered here: numbers of another file mean nothing."""
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        for line in path.read_bytes().split(b"\n"):
            self._read(line)
        if not self.name:
            self.name = secrets.token_hex(4)
        self._write_anew()

    def _read(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            return
        self.name = said.get("name", self.name)
        self._last = max(self._last, said.get("number", 0), said.get("confirmed", 0))
        if "told" in said:
            self._kept[said["number"]] = said["told"]
        for number in [one for one in self._kept if one <= said.get("confirmed", 0)]:
            del self._kept[number]

    @property
    def first(self) -> int:
        """The number before the oldest that is kept."""
        return next(iter(self._kept), self._last + 1) - 1

    def put(self, told: Told) -> int:
        """How many had to make room for it."""
        number = self._last + 1
        self._append({"number": number, "told": told})
        os.fsync(self._file)
        self._last, self._kept[number] = number, told
        return self.drop(number - self._most)

    def after(self, number: int, most: int) -> Iterator[tuple[int, Told]]:
        for one in range(max(number, self.first) + 1, min(self._last, number + most) + 1):
            yield one, self._kept[one]

    def drop(self, number: int) -> int:
        dropped = [one for one in self._kept if one <= number]
        for one in dropped:
            del self._kept[one]
        if dropped and self._kept and os.fstat(self._file).st_size < LARGEST:
            # Not waited for: should it be lost, something is told again.
            self._append({"confirmed": number})
        elif dropped:
            self._write_anew()
        return len(dropped)

    def _append(self, said: Told) -> None:
        line = json.dumps(said, separators=(",", ":")).encode() + b"\n"
        if os.write(self._file, line) < len(line):
            raise OSError("the disk is full")

    def _write_anew(self) -> None:
        """Without all that was confirmed: what people wrote is not kept longer than it must be."""
        fresh = self._path.with_name(f"{self._path.name}.new")
        if self._kept:
            flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_TRUNC
            before, self._file = self._file, os.open(fresh, flags, 0o600)
            os.close(before)
        else:
            os.ftruncate(self._file, 0)
        self._append({"name": self.name, "confirmed": self.first})
        for number, told in self._kept.items():
            self._append({"number": number, "told": told})
        os.fsync(self._file)
        if self._kept:
            os.replace(fresh, self._path)

    def close(self) -> None:
        os.close(self._file)


class Calls(Protocol):
    """What an account can be asked, as ``host.py`` has it."""

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any: ...

    def stop(self) -> None: ...


class Letterbox:
    """An account whose messages are kept: it passes on calls, and what is told."""

    def __init__(self, spool: Spool, tell: Tell, at_once: int = AT_ONCE) -> None:
        self._spool = spool
        self._tell = tell
        self._at_once = at_once
        self._lock = Lock()
        self._told = self._confirmed = spool.first
        self._open = False
        self.calls: Calls

    def tell(self, told: Told) -> None:
        """From whatever thread, before anybody is told that we have it."""
        if told.get("event") != "came":
            self._tell(told)
            return
        try:
            with self._lock:
                lost = self._spool.put(told)
                self._fill()
        except OSError as error:
            # A full disk: better told once, and perhaps lost, than not at all.
            self._tell(told)
            self._tell({"event": "unkept", "reason": str(error)})
            return
        if lost:
            self._tell({"event": "dropped", "count": lost})

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any:
        if name == "confirm":
            return self._confirm(words["mark"])
        if name == "connect":
            with self._lock:
                self._open = True
                self._fill()
        return self.calls.call(name, words, body)

    def stop(self) -> None:
        self.calls.stop()

    def _confirm(self, mark: str) -> None:
        name, _, number = mark.partition(":")
        if name != self._spool.name:
            return
        with self._lock:
            self._confirmed = max(self._confirmed, min(int(number), self._told))
            self._spool.drop(self._confirmed)
            self._fill()

    def _fill(self) -> None:
        """Tell as many as there is room for, each after those before it."""
        room = self._at_once - (self._told - self._confirmed) if self._open else 0
        for number, told in self._spool.after(self._told, room) if room > 0 else ():
            self._tell({**told, "mark": f"{self._spool.name}:{number}"})
            self._told = number
