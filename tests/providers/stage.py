"""A stage for the sandbox: one account, a virtual clock, and what is sent on it."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from paceline.core.instants import Instant, parse_instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.core.states import AccountState
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Account, Driver, Message
from paceline.providers.sandbox import Effect, Effects, MemoryEffects, SandboxProvider
from paceline.sim.loop import run_virtual

T = TypeVar("T")

START = parse_instant("2026-11-15T09:00:00Z")


def account(name: str = "first", **settings: Any) -> Account:
    return Account(
        id=1,
        name=name,
        provider="sandbox",
        address=f"{name}@example.com",
        settings=settings,
        policy_name=None,
        overrides={},
        policy_id=1,
        policy={},
        state=AccountState.ACTIVE,
        state_reason="",
        state_until_at=None,
        warm_since_at=0,
        created_at=0,
    )


def message(
    key: str = "k1",
    target: str = "anna@example.com",
    *,
    text: str = "hello",
    action: str = "message",
    handle: str | None = None,
    media: str | None = None,
) -> Message:
    part = Part("text" if media is None else "media", text, media=media)
    return Message(key, target, action, part, handle)


class Stage:
    """A provider over a log that survives it, opened and used in virtual time."""

    def __init__(self, effects: Effects | None = None, start_at: Instant = START) -> None:
        self.effects = effects or MemoryEffects()
        self.start_at = start_at
        self.clock = LoopClock(start_at)
        self.provider = SandboxProvider(self.clock, self.effects)

    async def open(self, name: str = "first", **settings: Any) -> Driver:
        # Instant unless a test says otherwise, so that its arithmetic stays readable.
        calm = {"latency": "0s", "upload_latency": "0s"}
        return await self.provider.open(account(name, **(calm | settings)))

    def play(self, scene: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return run_virtual(scene(), start_at=self.start_at)

    def send_all(self, messages: list[Message], **settings: Any) -> list[Outcome]:
        """Send one after the other on a fresh driver."""

        async def scene() -> list[Outcome]:
            driver = await self.open(**settings)
            return [await driver.send(each) for each in messages]

        return self.play(scene)

    def accepted(self) -> list[Effect]:
        return [e for e in self.effects.all() if e.kind == "send" and e.accepted]
