"""The other side of a webhook, in virtual time, and couriers that bring it events."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.events import EventKind, Wanted
from paceline.core.instants import MINUTE, Instant
from paceline.core.webhooks import Webhook
from paceline.engine.courier import Courier
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.ports import Hook, Posted, Store
from tests.engine.world import World

SECRET = "a-secret-of-some-length"
OK = Posted(204)
DOWN = Posted(500, "answered 500: oops")


@dataclass
class Receiver:
    """The other side: keeps what it was sent, and answers as it is told."""

    world: World
    answers: list[Posted] = field(default_factory=list)
    """To the next tries; after them, ``usual``."""
    usual: Posted = OK
    takes_us: int = 0
    tried: list[tuple[Instant, str, dict[str, Any]]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    refuses: Callable[[dict[str, Any]], Posted | None] = lambda event: None
    meanwhile: Callable[[], Awaitable[None]] | None = None
    closed: bool = False

    async def post(self, headers: Mapping[str, str], body: bytes) -> Posted:
        event = json.loads(body)
        signed = f"{headers['Paceline-Timestamp']}.".encode() + body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert hmac.compare_digest(headers["Paceline-Signature"], f"v1={expected}")
        self.tried.append((self.world.clock.now(), headers["Paceline-Event-Id"], event))
        if self.takes_us:
            await self.world.wait(self.takes_us)
        if self.meanwhile is not None:
            await self.meanwhile()
        answer = self.refuses(event) or (self.answers.pop(0) if self.answers else self.usual)
        if answer.ok:
            self.taken.append(event["id"])
        return answer

    async def close(self) -> None:
        self.closed = True

    @property
    def ids(self) -> list[int]:
        return [event["id"] for _, _, event in self.tried]


def courier_of(
    world: World, receiver: Receiver, *patterns: str, store: Store | None = None
) -> Courier:
    runner = InlineRunner()
    journal = GroupJournal(
        store or world.store, world.clock, writer=runner, reader=runner, here=True
    )
    wanted = Wanted.parse(patterns or ["*"])
    webhook = Webhook("crm", "https://crm.example.com/", SECRET, wanted)
    return Courier(journal, world.clock, webhook, receiver, instance="test", secret=SECRET)


def happen(world: World, count: int = 1, kind: EventKind = EventKind.SENDING_RESUMED) -> list[int]:
    """So many events; their numbers."""
    now = world.clock.now()
    for _ in range(count):
        told = {"reason": "x"} if kind is EventKind.SENDING_STOPPED else {}
        world.write(lambda tx, told=told: tx.events.add(kind, "something", at=now, data=told))
    newest = world.read(lambda tx: tx.events.latest(limit=count))
    return [event.id for event in reversed(newest)]


def hook(world: World) -> Hook:
    found = world.read(lambda tx: tx.hooks.get("crm"))
    assert found is not None
    return found


def kinds(world: World) -> list[str]:
    return [event.kind for event in reversed(world.read(lambda tx: tx.events.latest(limit=500)))]


async def keep_looking(world: World, courier: Courier, us: int, every_us: int = MINUTE) -> None:
    ends_at = world.clock.now() + us
    while world.clock.now() < ends_at:
        await courier.look()
        await world.wait(every_us)
