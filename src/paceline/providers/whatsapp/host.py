"""The process of one WhatsApp account: takes calls from a pipe, and tells what happens.

It is started by ``process.py``, and ends when the pipe does. Everything the library prints goes to
standard error, its files are nobody else's to read, and one session is used by one process at a
time. Nothing here waits for whoever reads: what comes in faster than it is taken is dropped and
counted, because a library that is kept waiting stops answering WhatsApp.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Condition, Thread
from typing import Any, BinaryIO, Protocol

from paceline.providers.whatsapp import frames
from paceline.providers.whatsapp.letterbox import SUFFIX, Letterbox, Spool

WORKERS = 8
MOST_REPORTS = 2_000
"""Receipts that may wait for their reader."""

REPORTS = frozenset({"receipt", "typing"})
"""What may be dropped. How the account stands may not, nor what somebody wrote: of that no more
waits here than ``letterbox.py`` lets through."""

Tell = Callable[[dict[str, Any]], None]
"""Takes an event from whatever thread, at once."""


class Refused(Exception):
    """Nothing can be done for this account now; ``code`` says why to programs."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class Calls(Protocol):
    """What an account can be asked. Each call may take long, and several run at once."""

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any:
        """Raises whatever it likes; the text is passed on."""
        ...

    def stop(self) -> None: ...


class Outgoing:
    """What waits to be written, in two lines: answers and standings, and reports."""

    def __init__(self, most: int = MOST_REPORTS) -> None:
        self._changed = Condition()
        self._first: deque[dict[str, Any]] = deque()
        self._reports: deque[dict[str, Any]] = deque()
        self._most = most
        self._dropped = 0
        self._closed = False

    def put(self, header: dict[str, Any]) -> None:
        with self._changed:
            if header.get("event") not in REPORTS:
                self._first.append(header)
            elif len(self._reports) < self._most:
                self._reports.append(header)
            else:
                self._reports.popleft()
                self._reports.append(header)
                self._dropped += 1
            self._changed.notify()

    def close(self) -> None:
        """Nothing more comes; what is there is still written."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self) -> dict[str, Any] | None:
        """The next to be written, however long that takes; None when there will be none."""
        with self._changed:
            while not (self._first or self._reports or self._closed):
                self._changed.wait()
            if self._first:
                return self._first.popleft()
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                return {"event": "dropped", "count": dropped}
            return self._reports.popleft() if self._reports else None


def serve(make: Callable[[Tell], Calls], source: BinaryIO, sink: BinaryIO) -> None:
    """Answer calls until there are none; what happens meanwhile is told as it happens."""
    outgoing = Outgoing()
    writer = Thread(target=_write_all, args=(outgoing, sink), daemon=True)
    writer.start()
    try:
        calls = make(outgoing.put)
    except Refused as refused:
        outgoing.put({"event": "refused", "code": refused.code, "reason": str(refused)})
    else:
        outgoing.put({"event": "hello"})
        _answer_all(calls, source, outgoing)
    outgoing.close()
    writer.join()


def _answer_all(calls: Calls, source: BinaryIO, outgoing: Outgoing) -> None:
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="call")
    while (frame := frames.read(source)) is not None:
        words, body = frame
        if words["call"] == "close":
            calls.stop()
            outgoing.put({"id": words["id"], "answer": None})
            return
        pool.submit(_answer, calls, words, body, outgoing)


def _answer(calls: Calls, words: dict[str, Any], body: bytes, outgoing: Outgoing) -> None:
    try:
        answer = calls.call(words["call"], words, body)
    except Exception as error:
        outgoing.put({"id": words["id"], "error": str(error) or type(error).__name__})
    else:
        outgoing.put({"id": words["id"], "answer": answer})


def _write_all(outgoing: Outgoing, sink: BinaryIO) -> None:
    # Whoever reads has gone, and then so does this process.
    with contextlib.suppress(BrokenPipeError):
        while (header := outgoing.take()) is not None:
            sink.write(frames.encode(header))
            sink.flush()


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to ourselves; whoever else prints, prints to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return source, sink


def settle_in(session: Path) -> None:
    """Be the one process that uses a session, with files that are nobody else's to read."""
    os.umask(0o077)
    os.chdir(session.parent)
    os.close(os.open(session.name, os.O_CREAT | os.O_WRONLY, 0o600))
    os.chmod(session.name, 0o600)
    _lock(session.with_name(f"{session.name}.lock"))


def _lock(path: Path) -> None:
    """Held as long as this process lives. Windows has no such lock; there, take care."""
    if sys.platform == "win32":
        return
    import fcntl

    lock = os.open(path.name, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"another process uses its session {path.stem}", "in-use") from None


def _account(session: Path, tell: Tell) -> Calls:
    settle_in(session)
    try:
        from paceline.providers.whatsapp.library import Library
    except ImportError as error:
        raise Refused(f"{type(error).__name__}: {error}", "not-installed") from None
    return kept(session, tell, lambda told: Library(session.name, told))


def kept(session: Path, tell: Tell, make: Callable[[Tell], Calls]) -> Calls:
    """An account whose messages are in a file until they were confirmed."""
    spool = Spool(session.with_name(f"{session.name}{SUFFIX}"))
    box = Letterbox(spool, tell)
    box.calls = make(box.tell)
    return box


def main() -> None:
    source, sink = take_pipes()
    session = Path(sys.argv[1])
    serve(lambda tell: _account(session, tell), source, sink)
    # Threads of the library's own may never end; nobody waits for them.
    os._exit(0)


if __name__ == "__main__":
    main()
