"""What comes in, for whoever listens: messages, receipts, and how the account stands.

It is taken as it comes and never waited for: WhatsApp reports a receipt per member of a group, and
whoever does not keep up loses the oldest of them. What people write is not lost so: it is kept at
the other end until it was confirmed.
"""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from paceline.core.instants import Instant
from paceline.engine.ports import AccountNews, Clock, Heard, Inbound, News, Receipt, Typing
from paceline.providers.whatsapp import errors
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Composing,
    Dropped,
    Standing,
    WireEvent,
)

log = structlog.get_logger("paceline.whatsapp")

MOST_KEPT = 2_000
AT_ONCE = 200
"""News that are taken at once at most."""


def news_of(
    event: WireEvent, now: Instant, until_at: Instant | None = None, name: str = ""
) -> list[News]:
    """What an event means to the rest of the house; nothing, for most."""
    match event:
        case Came():
            return [
                Inbound(
                    event.id,
                    event.chat,
                    event.sender,
                    event.text,
                    event.at or now,
                    event.from_us,
                    event.kind,
                    event.group,
                    files=event.files,
                    also=event.also,
                )
            ]
        case Composing(chat):
            return [Typing(chat, now)]
        case Acknowledged(ids, "failed", at):
            reason = "the phone could not fetch the file"
            return [Receipt(one, "failed", at or now, "media-expired", reason) for one in ids]
        case Acknowledged(ids, state, at):
            return [Receipt(one, state, at or now) for one in ids]
        case Standing():
            return [_account_news(event, now, until_at, name)]
        case _:
            return []


def _account_news(
    standing: Standing, now: Instant, until_at: Instant | None, name: str
) -> AccountNews:
    row = errors.STANDINGS.get(standing.state)
    if row is None:
        return AccountNews("ready", standing.own, now)
    text = errors.told(standing, name, until_at)
    return AccountNews("refused" if row.final else "offline", text, now, until_at)


class Mailbox:
    """What waits for whoever listens. As long as nobody has begun to, nothing is kept but what has
    to be confirmed: of that the other end tells only so much."""

    def __init__(self, clock: Clock, name: str, most: int = MOST_KEPT) -> None:
        self._clock = clock
        self._name = name
        self._most = most
        self._kept: deque[tuple[News, str]] = deque()
        self._passing = 0
        self._stirred = asyncio.Event()
        self._dropped = 0
        self._wanted = False
        self._closed = False
        self._state: AccountNews | None = None

    def put(self, event: WireEvent, until_at: Instant | None = None) -> None:
        if isinstance(event, Dropped):
            self._drop(event.reports)
            return
        mark = event.mark if isinstance(event, Came) else ""
        for news in news_of(event, self._clock.now(), until_at, self._name):
            if isinstance(news, AccountNews):
                self._state = news
            if mark or self._wanted:
                self._keep(news, mark)
        self._stirred.set()

    def _keep(self, news: News, mark: str) -> None:
        self._kept.append((news, mark))
        self._passing += not mark
        if self._passing > self._most:
            oldest = next(one for one in self._kept if not one[1])
            self._kept.remove(oldest)
            self._passing -= 1
            self._drop(1)

    def _drop(self, count: int) -> None:
        if not self._wanted:
            return
        if not self._dropped:
            log.warning("reports come faster than they are taken", account=self._name)
        self._dropped += count
        self._stirred.set()

    def close(self) -> None:
        self._closed = True
        self._stirred.set()

    @property
    def waits(self) -> bool:
        """Whether something has come that nobody has taken."""
        return bool(self._kept)

    async def take(self, most: int = AT_ONCE) -> Heard:
        """What has come since; waits until something has. The first time it begins with how the
        account stands; once it is closed, and all of it was taken, nothing comes any more."""
        if not self._wanted:
            self._wanted = True
            if self._state is not None:
                self._kept.appendleft((self._state, ""))
                self._passing += 1
        while not (self._kept or self._dropped or self._closed):
            self._stirred.clear()
            await self._stirred.wait()
        if self._dropped:
            log.warning("reports were dropped", account=self._name, count=self._dropped)
            self._dropped = 0
        taken = [self._kept.popleft() for _ in range(min(most, len(self._kept)))]
        self._passing -= sum(not mark for _, mark in taken)
        marks = [mark for _, mark in taken if mark]
        return Heard([news for news, _ in taken], marks[-1] if marks else "")
