"""An imaginary provider on a port of this machine: a real HTTP server that answers as it is told.

What a provider says is written in its own fake; here is what all of them have in common: they keep
what they were asked, and can be told how to answer the next call: with any body, late, never, or by
hanging up before or after it was read.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from tests.providers.forms import Field

JSON = {"Content-Type": "application/json; charset=utf-8"}
HTML = {"Content-Type": "text/html"}


@dataclass
class Scripted:
    """How one call is answered instead of as usual."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    takes: bool = False
    """Whether the message goes out all the same."""
    hangs: bool = False
    """Whether no answer comes before the server ends."""
    drops: str = ""
    """When to hang up: ``unread`` at the first byte of the request, ``read`` after the last one,
    ``midway`` in the middle of the answer."""


def said(status: int, body: Any, **more: Any) -> Scripted:
    """An answer in JSON."""
    headers = {**JSON, **more.pop("headers", {})}
    return Scripted(status, json.dumps(body).encode(), headers, **more)


@dataclass
class Call:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    fields: tuple[Field, ...] = ()

    def field(self, name: str) -> str:
        (found,) = [one.text for one in self.fields if one.name == name]
        return found

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.fields]

    def json(self) -> Any:
        return json.loads(self.body)


class Fake(ABC):
    """What every such server knows, and what it has seen."""

    prefix = ""
    """What every path begins with; whoever asks for another has the wrong address."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: deque[Scripted] = deque()
        """Answers to the next calls that send something."""
        self.answers: dict[str, Scripted] = {}
        """Answers to calls that ask for something, by path."""
        self.arrived = threading.Condition()
        self.over = threading.Event()
        self.failures: list[str] = []
        self.url = ""
        self.now: Callable[[], int] = lambda: 0
        """What its clock says, in microseconds."""
        self.leave: Callable[[], None] = lambda: None
        """Ends the server in the middle of everything: from then on nobody is there."""

    @abstractmethod
    def answer(self, call: Call) -> Scripted:
        """What a call is answered when nothing else was told."""

    @property
    def silent(self) -> bool:
        """Whether some call is to get no answer, in whatever list this fake keeps its answers."""
        kept = [one for one in vars(self).values() if isinstance(one, dict | list | deque)]
        told = [
            answer for one in kept for answer in (one.values() if isinstance(one, dict) else one)
        ]
        return any(isinstance(answer, Scripted) and answer.hangs for answer in told)

    def sends(self) -> list[Call]:
        """The calls that would send something, whatever became of them."""
        return [call for call in self.calls if call.method == "POST"]

    def note(self, call: Call) -> None:
        with self.arrived:
            self.calls.append(call)
            self.arrived.notify_all()

    def await_calls(self, count: int) -> bool:
        """Wait until so many calls were read; False if they never came."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.calls) >= count, timeout=30)


F = TypeVar("F", bound=Fake)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_one_request(self) -> None:
        fake = self.server.fake
        if fake.script and fake.script[0].drops == "unread":
            fake.script.popleft()
            self.close_connection = True
            # Not before something has come: until then there would be nothing to be in doubt of.
            self.connection.recv(1, socket.MSG_PEEK)
            _hang_up(self.connection)
            return
        super().handle_one_request()

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _serve(self) -> None:
        fake = self.server.fake
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = parts.path
        if not path.startswith(f"{fake.prefix}/"):
            fake.failures.append(f"asked for {path}")
        call = Call(self.command, path.removeprefix(fake.prefix), query, headers, body)
        fake.note(call)
        self._answer(fake.answer(call))

    def _answer(self, scripted: Scripted) -> None:
        if scripted.hangs:
            self.server.fake.over.wait()
        if scripted.hangs or scripted.drops == "read":
            self.close_connection = True
            return
        self.send_response_only(scripted.status)
        for name, value in scripted.headers.items():
            self.send_header(name, value)
        length = len(scripted.body) + (10 if scripted.drops == "midway" else 0)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(scripted.body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """What was called is kept by the fake."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fake: Fake) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake

    def handle_error(self, request: Any, client_address: Any) -> None:
        failure = sys.exception()
        if not isinstance(failure, ConnectionError):
            self.fake.failures.append(repr(failure))


def abort(transport: asyncio.BaseTransport) -> None:
    """Cut a connection off. One that is encrypted and gone already has nothing left to abort, and
    fails to say so."""
    assert isinstance(transport, asyncio.WriteTransport)
    if not transport.is_closing():
        transport.abort()


def _hang_up(connection: socket.socket) -> None:
    """At once and for good, with what was sent left unread: the other side sees a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def running(fake: F) -> Iterator[F]:
    """A server on a free port; afterwards nothing of it is left, and nothing went wrong in it."""
    server = _Server(fake)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="fake-provider")
    thread.start()

    def leave() -> None:
        fake.over.set()
        server.shutdown()
        server.server_close()

    fake.leave = leave
    try:
        yield fake
    finally:
        leave()
        thread.join()
    assert not fake.failures, fake.failures
