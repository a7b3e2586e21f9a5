"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import httpx

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Driver, Message
from paceline.providers.wassenger import WassengerProvider
from paceline.providers.wassenger.driver import WassengerDriver
from tests.providers import stage
from tests.providers.loopback import Scripted
from tests.providers.wassenger.fake import PHONE, FakeWassenger

T = TypeVar("T")

PATIENT = httpx.Timeout(30)
HASTY = httpx.Timeout(30, read=0.2)
"""For calls that are never answered: somebody has to give up."""

CLOCK = SystemClock()


def account(settings: dict[str, Any], name: str = "shop") -> Account:
    return stage.account(name, **settings)


def message(
    target: str = PHONE,
    *,
    key: str = "home-7-0",
    text: str = "Hello Anna",
    handle: str | None = None,
    action: str = "message",
    media: str | None = None,
) -> Message:
    kind = "text" if media is None else "media"
    return Message(key, target, action, Part(kind, text, media=media), handle)  # type: ignore[arg-type]


def picture(handle: str | None, **more: Any) -> Message:
    return message(handle=handle, media="a" * 64, **more)


def play(
    settings: dict[str, Any],
    scene: Callable[[WassengerDriver], Awaitable[T]],
    timeout: httpx.Timeout = PATIENT,
) -> T:
    """Open an account, let the scene use it, close it."""

    async def whole() -> T:
        driver: Driver = await WassengerProvider(CLOCK, timeout=timeout).open(account(settings))
        try:
            return await scene(cast("WassengerDriver", driver))
        finally:
            await driver.close()

    return asyncio.run(whole())


def send(fake: FakeWassenger, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    """What one message comes to when the fake answers as it is told."""

    async def scene(driver: WassengerDriver) -> Outcome:
        fake.script.extend(script)
        return await driver.send(sent)

    fake.now = CLOCK.now
    return play(fake.settings(**settings), scene)
