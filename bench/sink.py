"""A mail server that takes everything as fast as it comes, and keeps only who was written to.

As a program: listens on a free port of this machine and prints it. When its input ends, it prints
how many letters it took, to how many different people, and in how many seconds, and ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import cast

from paceline.interpreter import loop_factory

END = b"\r\n.\r\n"
_RECIPIENT = re.compile(rb"<([^>]*)>")


class Book:
    """What came, and when it began and ended."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.first_s = self.last_s = 0.0

    def take(self, recipient: bytes) -> None:
        self.last_s = time.perf_counter()
        if not self.taken:
            self.first_s = self.last_s
        self.taken.append(recipient)


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._heard = b""
        self._recipient = b""
        self._in_letter = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(b"220 sink\r\n")

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while True:
            before, found, after = self._heard.partition(END if self._in_letter else b"\r\n")
            if not found:
                return
            self._heard = after
            if self._in_letter:
                self._in_letter = False
                self._book.take(self._recipient)
                self._transport.write(b"250 2.0.0 taken\r\n")
            else:
                self._answer(before)

    def _answer(self, command: bytes) -> None:
        word = command[:4].upper()
        if word == b"EHLO":
            self._transport.write(b"250-sink\r\n250-PIPELINING\r\n250 SIZE 33554432\r\n")
        elif word == b"DATA":
            self._in_letter = True
            self._transport.write(b"354 go on\r\n")
        elif word == b"QUIT":
            self._transport.write(b"221 bye\r\n")
            self._transport.close()
        else:
            if word == b"RCPT" and (named := _RECIPIENT.search(command)):
                self._recipient = named[1]
            self._transport.write(b"250 2.0.0 ok\r\n")


async def serve() -> None:
    book = Book()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(book), "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.buffer.read)
    server.close()
    taken, seconds = book.taken, book.last_s - book.first_s
    found = {"taken": len(taken), "different": len(set(taken)), "seconds": seconds}
    print(json.dumps(found), flush=True)


def main() -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve())


if __name__ == "__main__":
    main()
