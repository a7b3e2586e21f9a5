"""An account at a fake on loopback, opened and used on a real loop: what such stages share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from paceline.core.model import Part, Target
from paceline.core.outcome import Outcome
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Driver, Message, Provider
from tests.providers import stage
from tests.providers.loopback import Fake, Scripted

T = TypeVar("T")

PATIENT = httpx.Timeout(30)
HASTY = httpx.Timeout(30, read=0.5)
"""For calls that are never answered: somebody has to give up."""

CLOCK = SystemClock()

PEOPLE = [Target(f"+49151123456{number:02}", {"name": f"N{number}"}) for number in range(5)]
GROUPS = [Target(f"1203630412345{number:05}@g.us", {"name": f"G{number}"}) for number in range(5)]
NOTE = (Part("text", "Hello {{ name }}"),)


def patience(fake: Fake) -> httpx.Timeout:
    """Hasty only where silence is what is waited for: answers may take as long as they like."""
    return HASTY if fake.silent else PATIENT


def account(settings: dict[str, Any], name: str = "shop") -> Account:
    return stage.account(name, **settings)


def message(
    target: str, *, key: str = "home-7-0", text: str = "Hello Anna", **more: Any
) -> Message:
    return stage.message(key, target, text=text, **more)


def picture(target: str, handle: str | None, **more: Any) -> Message:
    return message(target, handle=handle, media="a" * 64, **more)


def play(
    make: Callable[..., Provider],
    settings: dict[str, Any],
    scene: Callable[[Any], Awaitable[T]],
    timeout: httpx.Timeout = PATIENT,
) -> T:
    """Open an account, let the scene use it, close it."""

    async def whole() -> T:
        driver = await make(CLOCK, timeout=timeout).open(account(settings))
        try:
            return await scene(driver)
        finally:
            await driver.close()

    return asyncio.run(whole())


def send(
    make: Callable[..., Provider],
    fake: Fake,
    settings: dict[str, Any],
    sent: Message,
    *script: Scripted,
    timeout: httpx.Timeout = PATIENT,
) -> Outcome:
    """What one message comes to when the fake answers as it is told."""

    async def scene(driver: Driver) -> Outcome:
        fake.script.extend(script)
        return await driver.send(sent)

    fake.now = CLOCK.now
    return play(make, settings, scene, timeout)
