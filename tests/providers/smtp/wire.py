"""A mail server that says, byte for byte, what it is told to, and keeps every byte that it is sent.

What it reads in one go it answers in one go, as servers with PIPELINING do. At each step a line of
the script may say something else, hang up, or say nothing more.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

OFFERS = b"250-wire\r\n250-PIPELINING\r\n250 SIZE 1000000\r\n"
WAIT_S = 30


@dataclass(frozen=True)
class At:
    """What happens at one step instead of what usually does, once."""

    step: str
    """``mail``, ``rcpt``, ``data``, ``content`` (of a letter), ``dot`` (of one with nothing in
    it), or another command."""
    says: bytes = b""
    drops: bool = False
    """Whether it hangs up after that, at once and for good."""
    hangs: bool = False
    """Whether it says nothing any more after that, and only listens."""


class WireServer:
    """What the server was told, and what it has seen."""

    def __init__(self) -> None:
        self.script: deque[At] = deque()
        self.offers = OFFERS
        self.piece = 0
        """How many bytes it sends at once; as many as there are if this is 0."""
        self.connections = 0
        self.reads: list[bytes] = []
        """What it was sent, as it came."""
        self.heard: list[str] = []
        """Every step."""
        self.letters: list[bytes] = []
        self.security = "plain"
        self.port = 0
        self.ended = threading.Condition()
        self.ends = 0
        self.failures: list[BaseException] = []

    def settings(self, **more: Any) -> dict[str, Any]:
        plain = {"host": "127.0.0.1", "port": self.port, "security": self.security}
        return plain | {"from_address": "anna@shop.example"} | more

    def next_act(self, step: str) -> At:
        for act in self.script:
            if act.step == step:
                self.script.remove(act)
                return act
        return At("")

    def await_ends(self, count: int) -> None:
        """Wait until so many connections have ended, and all that was sent is known."""
        with self.ended:
            assert self.ended.wait_for(lambda: self.ends >= count, WAIT_S)


class _Talk:
    """One connection."""

    def __init__(self, server: WireServer, peer: socket.socket) -> None:
        self._server = server
        self._peer = peer
        self._unread = b""
        self._known = False
        """Whether the recipient was taken."""
        self._in_letter = False
        self._to_say = b""
        self._silent = False

    def go_on(self) -> None:
        self._send(b"220 wire\r\n")
        while True:
            data = self._peer.recv(65_536)
            if not data:
                return
            self._server.reads.append(data)
            self._unread += data
            while not self._silent and (step := self._next_step()):
                if not self._play(step):
                    return
            said, self._to_say = self._to_say, b""
            self._send(said)

    def _next_step(self) -> str:
        if not self._in_letter:
            line, found, rest = self._unread.partition(b"\r\n")
            self._unread = rest if found else self._unread
            return line[:4].decode("latin-1").lower() if found else ""
        if self._unread.startswith(b".\r\n"):
            self._unread = self._unread[3:]
            return "dot"
        letter, found, rest = self._unread.partition(b"\r\n.\r\n")
        if found:
            self._server.letters.append(letter)
            self._unread = rest
        return "content" if found else ""

    def _play(self, step: str) -> bool:
        """Answer; whether the connection goes on."""
        self._server.heard.append(step)
        act = self._server.next_act(step)
        said = act.says or self._usual(step)
        if act.hangs or act.drops:
            said = act.says
        self._in_letter = step == "data" and said.startswith(b"354")
        if step in ("mail", "rcpt", "rset"):
            self._known = step == "rcpt" and said.startswith(b"25")
        self._to_say += said
        if act.drops or step == "quit":
            self._send(self._to_say)
            if act.drops and not act.says:
                # The other side sees a reset: what it sent is thrown away with the connection.
                linger = struct.pack("ii", 1, 0)
                self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return False
        self._silent = act.hangs
        return True

    def _usual(self, step: str) -> bytes:
        if step == "ehlo":
            return self._server.offers
        if step in ("mail", "rset", "content"):
            return b"250 2.0.0 ok\r\n"
        if step == "rcpt":
            return b"250 2.1.5 ok\r\n"
        if step == "data":
            return b"354 go on\r\n" if self._known else b"503 5.5.1 need RCPT\r\n"
        return {"dot": b"554 5.5.1 no valid recipients\r\n", "quit": b"221 bye\r\n"}.get(
            step, b"500 5.5.2 what?\r\n"
        )

    def _send(self, said: bytes) -> None:
        size = self._server.piece or max(len(said), 1)
        for start in range(0, len(said), size):
            self._peer.sendall(said[start : start + size])


@contextmanager
def wired(security: str = "plain", certificate: ssl.SSLContext | None = None) -> Iterator[Any]:
    """A server on a free port; afterwards nothing of it is left, and nothing went wrong in it."""
    server = WireServer()
    server.security = security
    listening = socket.create_server(("127.0.0.1", 0))
    server.port = listening.getsockname()[1]
    threads: list[threading.Thread] = []

    def talk(peer: socket.socket) -> None:
        try:
            # Whoever has hung up already is not spoken to.
            with suppress(ConnectionError, ssl.SSLEOFError), peer:
                peer.settimeout(WAIT_S)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if certificate is None:
                    _Talk(server, peer).go_on()
                else:
                    with certificate.wrap_socket(peer, server_side=True) as secure:
                        _Talk(server, secure).go_on()
        except BaseException as error:
            server.failures.append(error)
        finally:
            with server.ended:
                server.ends += 1
                server.ended.notify_all()

    def accept() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            server.connections += 1
            threads.append(threading.Thread(target=talk, args=(peer,), name="wire-talk"))
            threads[-1].start()

    accepting = threading.Thread(target=accept, name="wire-accept")
    accepting.start()
    try:
        yield server
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join()
        for thread in threads:
            thread.join()
    assert not server.failures, server.failures
