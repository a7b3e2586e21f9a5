"""Whoever reports: so many connections that stay open, each with one report under way at a time.

As a program: posts its reports to a port of this machine, the first of them only to warm up, and
prints how long the others took, each of them from its first byte until its answer was there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import cast

from bench.reports import requests
from paceline.interpreter import loop_factory, tune_interpreter

WITHIN_S = 300
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Caller(asyncio.Protocol):
    """One connection."""

    def __init__(self, to_send: Iterator[bytes], took_s: list[float]) -> None:
        self._to_send = to_send
        self._took_s = took_s
        self._heard = b""
        self._began_s = 0.0
        self.done = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def _next(self) -> None:
        request = next(self._to_send, None)
        if request is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._began_s = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, said = self._heard.partition(b"\r\n\r\n")
        length = _LENGTH.search(head) if found else None
        if length is None or len(said) < int(length[1]):
            return
        self._took_s.append(time.perf_counter() - self._began_s)
        if not head.startswith(b"HTTP/1.1 200"):
            self._fail(f"answered with {self._heard[:200]!r}")
            return
        self._heard = b""
        self._next()

    def connection_lost(self, _: Exception | None) -> None:
        self._fail("the connection was closed")

    def _fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(why))
            self._transport.close()


async def post(port: int, made: list[bytes], connections: int) -> tuple[float, list[float]]:
    """How long all took together, and each by itself."""
    loop, took_s, to_send = asyncio.get_running_loop(), list[float](), iter(made)
    began_s = time.perf_counter()
    async with asyncio.timeout(WITHIN_S):
        opened = [
            await loop.create_connection(lambda: Caller(to_send, took_s), "127.0.0.1", port)
            for _ in range(connections)
        ]
        await asyncio.gather(*(caller.done for _, caller in opened))
    return time.perf_counter() - began_s, took_s


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("port", "count", "warm_up", "connections", "customers"):
        parser.add_argument(name, type=int)
    parser.add_argument("paths", nargs="+")
    asked = parser.parse_args()
    tune_interpreter()
    first = list(requests(asked.paths, 0, asked.warm_up, asked.customers))
    rest = list(requests(asked.paths, asked.warm_up, asked.count, asked.customers))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(post(asked.port, first, asked.connections))
        seconds, took_s = runner.run(post(asked.port, rest, asked.connections))
    json.dump({"seconds": seconds, "took_ms": [round(s * 1e3, 3) for s in took_s]}, sys.stdout)


if __name__ == "__main__":
    main()
