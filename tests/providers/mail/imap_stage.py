"""What the tests of mailboxes share: how one is opened, and what is put into it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from paceline.engine.clock import SystemClock
from paceline.engine.ports.webhooks import Inbound, News
from paceline.providers.mail.mailbox import ImapMailbox, ImapMailboxes
from tests.providers.mail.imap_server import USER, ImapServer
from tests.providers.mail.letters_in import WHOM

T = TypeVar("T")


class Turned(SystemClock):
    """A clock on which pauses end when they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[int] = []
        self.pauses = asyncio.Semaphore(0)
        self.rests = asyncio.Event()

    async def sleep(self, us: int) -> None:
        self.slept.append(us)
        self.rests.set()
        await self.pauses.acquire()


def play(scene: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await scene

    try:
        return asyncio.run(bounded())
    finally:
        # Whatever was cancelled or closed has let go of its thread.
        for thread in threading.enumerate():
            if thread.name == "paceline-imap":
                thread.join(10)
                assert not thread.is_alive()


def letter(text: str, number: int = 1) -> bytes:
    return f"From: {WHOM}\r\nMessage-ID: <{number}@client.example>\r\n\r\n{text}\r\n".encode()


def texts(news: list[News]) -> list[str]:
    return [each.text for each in news if isinstance(each, Inbound)]


async def opened(
    server: ImapServer, boxes: ImapMailboxes | None = None, **more: Any
) -> ImapMailbox:
    boxes = boxes or ImapMailboxes(SystemClock())
    return await boxes.open("anna", server.access(**more), [USER])


async def put(server: ImapServer, raw: bytes, folder: str = "INBOX", user: str = USER) -> None:
    await asyncio.to_thread(server.append, raw, folder, user)
