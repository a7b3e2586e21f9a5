"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import httpx

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Driver, Media, Message, Uploaded
from paceline.providers.waha import WahaProvider
from paceline.providers.waha.driver import WahaDriver
from tests.providers import stage
from tests.providers.loopback import Scripted
from tests.providers.waha.fake import PHONE, FakeWaha

T = TypeVar("T")

PATIENT = httpx.Timeout(30)
HASTY = httpx.Timeout(30, read=0.2)
"""For calls that are never answered: somebody has to give up."""

CLOCK = SystemClock()
CONTENT = b"\r\n--%PDF\x00\xff\r\n"


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


def media(mime: str = "application/pdf", name: str = "offer “1”.pdf") -> Media:
    return Media("a" * 64, name, mime, len(CONTENT))


async def hand_over(driver: WahaDriver, file: Media | None = None) -> str:
    uploaded = await driver.upload(file or media(), CONTENT)
    assert isinstance(uploaded, Uploaded), uploaded
    return uploaded.handle


def play(
    settings: dict[str, Any],
    scene: Callable[[WahaDriver], Awaitable[T]],
    timeout: httpx.Timeout = PATIENT,
) -> T:
    """Open an account, let the scene use it, close it."""

    async def whole() -> T:
        driver: Driver = await WahaProvider(CLOCK, timeout=timeout).open(account(settings))
        try:
            return await scene(cast("WahaDriver", driver))
        finally:
            await driver.close()

    return asyncio.run(whole())


def send(fake: FakeWaha, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    """What one message comes to when the fake answers as it is told."""

    async def scene(driver: WahaDriver) -> Outcome:
        fake.script.extend(script)
        return await driver.send(sent)

    fake.now = CLOCK.now
    return play(fake.settings(**settings), scene)
