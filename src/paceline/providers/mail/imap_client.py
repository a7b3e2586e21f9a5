"""The library's mailbox, with a reader of our own, and with a wait that can be ended.

The standard library's client reads lines ahead, which nobody can see who waits for its socket, and
forgets what it has read of a line when it is not to wait for the rest. So what was read is kept
here.
"""

from __future__ import annotations

import contextlib
import imaplib
import re
import selectors
import socket
import ssl
from collections.abc import Callable
from typing import Any

from imap_tools import BaseMailBox

from paceline.core.instants import SECOND
from paceline.providers.mail.settings import Access

LONGEST_LINE = 8 * 1024 * 1024
"""Bytes. The longest are lists of numbers; letters are read by their length."""

_PIECE = 64 * 1024
_MOST_PIECES = 32
_EXISTS = re.compile(rb"\* \d+ EXISTS", re.IGNORECASE)


class Reader:
    """Reads from the socket of an ``imaplib`` client, by the methods that it has for that."""

    sock: socket.socket
    _held: bytearray
    _held_from: socket.socket | None = None

    def read(self, size: int) -> bytes:
        self._forget_others()
        while len(self._held) < size:
            self._read_on()
        return self._taken(size)

    def readline(self) -> bytes:
        self._forget_others()
        seen = 0
        while (end := self._held.find(b"\n", seen)) < 0:
            seen = len(self._held)
            if seen > LONGEST_LINE:
                raise imaplib.IMAP4.abort("the server says more in a line than anybody may")
            self._read_on()
        return self._taken(end + 1)

    def lines_now(self) -> list[bytes]:
        """The whole lines that the server has said by now."""
        self._forget_others()
        timeout_s = self.sock.gettimeout()
        self.sock.settimeout(0)
        try:
            for _ in range(_MOST_PIECES):
                self._read_on()
        except (BlockingIOError, ssl.SSLWantReadError):
            # That was all of it.
            pass
        finally:
            self.sock.settimeout(timeout_s)
        lines = []
        while (end := self._held.find(b"\n")) >= 0:
            lines.append(self._taken(end + 1).strip())
        return lines

    def _forget_others(self) -> None:
        """What was said before a connection was encrypted may have been said by anybody."""
        if self._held_from is not self.sock:
            self._held, self._held_from = bytearray(), self.sock

    def _read_on(self) -> None:
        piece = self.sock.recv(_PIECE)
        if not piece:
            raise imaplib.IMAP4.abort("the server hung up")
        self._held += piece

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken


class _Client(Reader, imaplib.IMAP4):
    pass


class _EncryptedClient(Reader, imaplib.IMAP4_SSL):
    pass


class Box(BaseMailBox):
    """A mailbox, as long as its connection lasts."""

    def __init__(self, access: Access, timeout_s: float) -> None:
        self._access = access
        self._timeout_s = timeout_s
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        access = self._access
        if access.security == "plain":
            return _Client(access.host, access.port, timeout=self._timeout_s)
        trust = access.trust or ssl.create_default_context()
        if access.security == "tls":
            return _EncryptedClient(
                access.host, access.port, ssl_context=trust, timeout=self._timeout_s
            )
        client = _Client(access.host, access.port, timeout=self._timeout_s)
        try:
            client.starttls(ssl_context=trust)
        except BaseException:
            with contextlib.suppress(OSError):
                # What could not be encrypted may have been closed on the way.
                client.shutdown()
            raise
        return client

    def hang_up(self) -> None:
        """Whoever reads from the server sees the end at once."""
        with contextlib.suppress(OSError):
            self.client.sock.shutdown(socket.SHUT_RDWR)

    def has_grown(self) -> bool:
        """Whether something came since the folder was opened, told beside other answers."""
        told = self.client.response("EXISTS")[1]
        return len([each for each in told if each is not None]) > 1

    def idle_until(
        self, ear: socket.socket, within_us: int, monotonic_us: Callable[[], int]
    ) -> bool:
        """Wait for a letter or a ring; False if the server will not tell of letters by itself."""
        client: Any = self.client
        until_us = monotonic_us() + within_us
        tag = client._command("IDLE")
        while client._get_response() is not None:
            if client.tagged_commands.get(tag):
                del client.tagged_commands[tag]
                return False
        came = client.response("EXISTS")[1][-1] is not None
        came = came or any(map(_EXISTS.match, client.lines_now()))
        with selectors.DefaultSelector() as selector:
            selector.register(client.sock, selectors.EVENT_READ)
            selector.register(ear, selectors.EVENT_READ)
            while not came and (left_us := until_us - monotonic_us()) > 0:
                ready = {key.fileobj for key, _ in selector.select(left_us / SECOND)}
                lines = client.lines_now() if client.sock in ready else []
                came = ear in ready or any(map(_EXISTS.match, lines))
        client.send(b"DONE\r\n")
        self.consume_until_tagged_response(tag)
        return True
