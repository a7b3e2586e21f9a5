"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import httpx

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Driver, Media, Message
from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider
from paceline.providers.whatsapp_cloud.driver import WhatsAppCloudDriver
from paceline.providers.whatsapp_cloud.handles import pack
from tests.providers import stage
from tests.providers.loopback import Scripted
from tests.providers.whatsapp_cloud.fake import PHONE, FakeMeta

T = TypeVar("T")

PATIENT = httpx.Timeout(30)
HASTY = httpx.Timeout(30, read=0.2)
"""For calls that are never answered: somebody has to give up."""

CLOCK = SystemClock()


def account(settings: dict[str, Any], name: str = "shop") -> Account:
    return stage.account(name, **settings)


def message(target: str = PHONE, *, text: str = "Hello Anna", **more: Any) -> Message:
    part = Part("text", text)
    return Message("home-7-0", target, "message", part)._replace(**more)


def file(handle: str | None, text: str = "") -> Message:
    return message(part=Part("media", text, media="a" * 64), handle=handle)


def template(
    name: str = "order_ready", *values: str, language: str = "en_US", **named: str
) -> Message:
    pairs = tuple(("", text) for text in values) + tuple(named.items())
    return message(part=Part("template", template=name, language=language, values=pairs))


def with_header(sent: Message, handle: str | None) -> Message:
    return sent._replace(part=sent.part._replace(media="a" * 64), handle=handle)


def media(name: str = "a.png", mime: str = "image/png", size: int = 3) -> Media:
    return Media("a" * 64, name, mime, size)


def kept(fake: FakeMeta, name: str = "a.png", mime: str = "image/png") -> str:
    """The handle of a file that the fake has."""
    media_id = f"{2_000_000_000_000_000 + len(fake.files)}"
    fake.files[media_id] = {"name": name, "mime": mime, "content": b"PNG"}
    return pack(media(name, mime), media_id)


def play(
    settings: dict[str, Any],
    scene: Callable[[WhatsAppCloudDriver], Awaitable[T]],
    timeout: httpx.Timeout = PATIENT,
) -> T:
    """Open an account, let the scene use it, close it."""

    async def whole() -> T:
        driver: Driver = await WhatsAppCloudProvider(CLOCK, timeout=timeout).open(account(settings))
        try:
            return await scene(cast("WhatsAppCloudDriver", driver))
        finally:
            await driver.close()

    return asyncio.run(whole())


def send(fake: FakeMeta, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    """What one message comes to when the fake answers as it is told."""

    async def scene(driver: WhatsAppCloudDriver) -> Outcome:
        fake.script.extend(script)
        return await driver.send(sent)

    return play(fake.settings(**settings), scene)
