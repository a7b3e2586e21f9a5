"""Conversations for tests: somebody writes, and something answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from paceline.core.instants import SECOND, Instant
from paceline.engine.answering import LOOK_EVERY_US, Answerer
from paceline.engine.asking import Answers
from paceline.engine.commands import returns
from paceline.engine.ports import Inbound
from paceline.engine.ports.answering import Answer, Burst
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.talk_tally import TalkTally
from tests.engine.world import Process, World

WAY = "sales"
EVA = "+34600111222"
BEN = "+34600333444"

_numbers = count(1)


async def echo(burst: Burst) -> Answer:
    """Says what was said."""
    return Answer(f"re: {burst.text}")


@dataclass
class Scripted:
    """A responder that does what a test says, and keeps what it was asked."""

    answers: Callable[[Burst], Awaitable[Answer]] = echo
    asked: list[Burst] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def answer(self, burst: Burst) -> Answer:
        self.asked.append(burst)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.answers(burst)
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        return None


def taking(world: World, seconds: float) -> Callable[[Burst], Awaitable[Answer]]:
    """An echo that takes its time."""

    async def slowly(burst: Burst) -> Answer:
        await world.clock.sleep(int(seconds * SECOND))
        return await echo(burst)

    return slowly


def answered(world: World, name: str = "ann", **more: Any) -> None:
    """An account, and whoever writes to it is answered."""
    account = world.account(name)
    wish = {"way": WAY, "quiet_us": 8 * SECOND, "max_wait_us": 65 * SECOND, **more}
    world.write(lambda tx: tx.accounts.update(account.id, answering=wish))


def hear(
    world: World,
    text: str,
    *,
    chat: str = EVA,
    account: str = "ann",
    provider_id: str = "",
    at: Instant = 0,
    **more: Any,
) -> None:
    """Somebody writes to an account."""
    found = world.account_now(account)
    name = provider_id or f"in-{next(_numbers)}"
    message = Inbound(name, chat, more.pop("sender", chat), text, at, **more)
    now = world.clock.now()
    world.write(lambda tx: returns.take_in(tx, found, [message], now))


class Desk:
    """A process with what answers beside its lanes."""

    def __init__(
        self,
        world: World,
        responder: Scripted,
        name: str = "one",
        *,
        retries: int = 2,
        at_once: int = 20,
        look_every_us: int = LOOK_EVERY_US,
        **more: Any,
    ) -> None:
        # Whoever looks seldom looks seldom at everything.
        self.process: Process = world.process(name, poll_us=max(SECOND, look_every_us))
        self.tally = TalkTally()
        self.answerer = Answerer(
            self.process.journal,
            world.clock,
            world.providers,
            {WAY: Answers(responder, retries=retries, **more)},
            name=name,
            at_once=at_once,
            look_every_us=look_every_us,
            tally=self.tally,
        )
        self._task = asyncio.ensure_future(self.answerer.run())

    async def stop(self) -> None:
        self.answerer.stop()
        await self._task
        await self.process.stop()

    async def kill(self) -> None:
        """As ``kill -9``: the ports die first."""
        self.process.die()
        tasks = [self._task, *self.answerer._answering.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def conversation(world: World, chat: str = EVA) -> Conversation:
    account = world.account_now()
    found = world.read(lambda tx: tx.conversations.find(account.id, chat))
    assert found is not None
    return found


def turns(world: World, chat: str = EVA) -> list[Turn]:
    """All of its turns, the oldest first."""
    number = conversation(world, chat).id
    return world.read(lambda tx: tx.turns.of_conversation(number, 100))[::-1]


def said(world: World, chat: str = EVA) -> list[str]:
    """What was said to somebody, in order, by what is kept of it."""
    rows = world.read(lambda tx: tx.deliveries.page(limit=1_000))
    texts = {f"{row.id}": row.content[0]["text"] for row in rows if row.content}
    sends = [effect for effect in world.sends() if effect.target == chat]
    return [texts[effect.key.split("-")[1]] for effect in sends]
