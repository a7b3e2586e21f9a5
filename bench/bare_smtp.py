"""A bare loop over aiosmtplib: so many connections, each sending one letter after the other.

As a program: sends its letters to a port of this machine, and prints how many they were. Nothing is
written down, nothing is looked up, and the letters are made beforehand. It runs as Python runs it,
or ``tuned``: on the event loop and with the settings of the interpreter that our service has.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

import aiosmtplib

from bench.scenes import SENDER
from paceline.interpreter import loop_factory, tune_interpreter


def letters(count: int) -> list[tuple[str, bytes]]:
    """As plain as a letter can be."""
    return [
        (
            f"spring-{number:07}@example.com",
            f"From: <{SENDER}>\r\nTo: <spring-{number:07}@example.com>\r\nSubject: A word\r\n"
            f"Message-ID: <{number}@shop.example>\r\nDate: Mon, 16 Nov 2026 09:00:00 +0000\r\n"
            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
            f"Good morning spring-{number:07}@example.com\r\n".encode(),
        )
        for number in range(count)
    ]


async def send_all(port: int, count: int, connections: int) -> None:
    waiting = letters(count)
    clients = [
        aiosmtplib.SMTP(hostname="127.0.0.1", port=port, use_tls=False, start_tls=False)
        for _ in range(connections)
    ]
    for client in clients:
        await client.connect()

    async def send(client: aiosmtplib.SMTP) -> None:
        while waiting:
            recipient, raw = waiting.pop()
            await client.sendmail(SENDER, [recipient], raw)

    await asyncio.gather(*(send(client) for client in clients))
    for client in clients:
        await client.quit()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("port", "count", "connections"):
        parser.add_argument(name, type=int)
    parser.add_argument("--tuned", action="store_true")
    asked = parser.parse_args()
    sending = send_all(asked.port, asked.count, asked.connections)
    if asked.tuned:
        tune_interpreter()
    with asyncio.Runner(loop_factory=loop_factory() if asked.tuned else None) as runner:
        runner.run(sending)
    json.dump({"count": asked.count}, sys.stdout)


if __name__ == "__main__":
    main()
