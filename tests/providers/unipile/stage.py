"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Driver, Message
from paceline.providers.unipile import UnipileProvider
from tests.providers import stage
from tests.providers.loopback import Scripted
from tests.providers.unipile.fake import FakeUnipile

T = TypeVar("T")

PATIENT = httpx.Timeout(30)
HASTY = httpx.Timeout(30, read=0.2)
"""For calls that are never answered: somebody has to give up."""


def account(settings: dict[str, Any], name: str = "sales") -> Account:
    return stage.account(name, **settings)


def message(
    action: str = "message",
    target: str = "ACoAA-anna",
    *,
    key: str = "home-7-0",
    text: str = "Hello Anna",
    handle: str | None = None,
    **part: Any,
) -> Message:
    kind = "media" if "media" in part else "text"
    return Message(key, target, action, Part(kind, text, **part), handle)


def letter(**more: Any) -> Message:
    """An e-mail."""
    given = {"target": "anna@example.com", "subject": "A word", **more}
    return message("email", **given)


def play(
    settings: dict[str, Any],
    scene: Callable[[Driver], Awaitable[T]],
    timeout: httpx.Timeout = PATIENT,
) -> T:
    """Open an account, let the scene use it, close it."""

    async def whole() -> T:
        driver = await UnipileProvider(SystemClock(), timeout=timeout).open(account(settings))
        try:
            return await scene(driver)
        finally:
            await driver.close()

    return asyncio.run(whole())


def kind_for(sent: Message) -> str:
    return "email" if sent.action == "email" else "linkedin"


def send(
    fake: FakeUnipile, sent: Message, *script: Scripted, timeout: httpx.Timeout = PATIENT
) -> Outcome:
    """What one message comes to when the fake answers as it is told."""

    async def scene(driver: Driver) -> Outcome:
        fake.script.extend(script)
        return await driver.send(sent)

    return play(fake.settings(kind_for(sent)), scene, timeout)
