"""What comes in, for whoever listens: messages, receipts, and how the account stands.

It is taken as it comes and never waited for: WhatsApp reports a receipt per member of a group, and
whoever does not keep up loses the oldest of them, and is told how many.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import structlog

from paceline.core.instants import Instant
from paceline.engine.ports import AccountNews, Clock, Inbound, News, Receipt
from paceline.providers.whatsapp import errors
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Dropped,
    Standing,
    WireEvent,
)

log = structlog.get_logger("paceline.whatsapp")

MOST_KEPT = 2_000


def news_of(event: WireEvent, now: Instant, until_at: Instant | None = None) -> list[News]:
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
                )
            ]
        case Acknowledged(ids, "failed", at):
            reason = "the phone could not fetch the file"
            return [Receipt(one, "failed", at or now, "media-expired", reason) for one in ids]
        case Acknowledged(ids, state, at):
            return [Receipt(one, state, at or now) for one in ids]
        case Standing():
            return [_account_news(event, now, until_at)]
        case _:
            return []


def _account_news(standing: Standing, now: Instant, until_at: Instant | None) -> AccountNews:
    row = errors.STANDINGS.get(standing.state)
    if row is None:
        return AccountNews("ready", standing.own, now)
    text = errors.told(standing, until_at=until_at)
    return AccountNews("refused" if row.final else "offline", text, now, until_at)


class Mailbox:
    """What waits for whoever listens. As long as nobody has begun to, nothing is kept."""

    def __init__(self, clock: Clock, name: str, most: int = MOST_KEPT) -> None:
        self._clock = clock
        self._name = name
        self._most = most
        self._kept: deque[News] = deque()
        self._stirred = asyncio.Event()
        self._dropped = 0
        self._wanted = False
        self._closed = False
        self._state: AccountNews | None = None

    def put(self, event: WireEvent, until_at: Instant | None = None) -> None:
        if isinstance(event, Dropped):
            self._drop(event.reports)
            return
        for news in news_of(event, self._clock.now(), until_at):
            if isinstance(news, AccountNews):
                self._state = news
            if not self._wanted:
                continue
            if len(self._kept) >= self._most:
                self._kept.popleft()
                self._drop(1)
            self._kept.append(news)
        self._stirred.set()

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

    async def __aiter__(self) -> AsyncIterator[News]:
        """Everything from now on, beginning with how the account stands; until it is closed."""
        self._wanted = True
        if self._state is not None:
            yield self._state
        while True:
            while self._kept or self._dropped:
                if self._dropped:
                    yield self._lost()
                else:
                    yield self._kept.popleft()
            if self._closed:
                return
            self._stirred.clear()
            await self._stirred.wait()

    def _lost(self) -> AccountNews:
        """That something was dropped is news as well, and comes before what follows it."""
        count, self._dropped = self._dropped, 0
        state = "ready" if self._state is None else self._state.state
        log.warning("reports were dropped", account=self._name, count=count)
        reason = f"{count} reports were dropped: they came faster than they were taken"
        return AccountNews(state, reason, self._clock.now())
