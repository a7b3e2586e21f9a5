"""A mailbox at the fake server, opened and used on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Message
from paceline.providers.smtp import SmtpProvider
from paceline.providers.smtp.driver import SmtpDriver
from paceline.providers.smtp.line import Timing
from tests.providers import stage
from tests.providers.smtp.fake import FakeServer, Step

T = TypeVar("T")

CLOCK = SystemClock()
ANNA = "anna@example.com"
PATIENT = Timing(open_s=30, envelope_s=30, content_s=30)
HASTY = Timing(open_s=30, envelope_s=0.3, content_s=0.3, check_s=0.3, quit_s=0.3)
"""For answers that never come: somebody has to give up."""


def letter(
    target: str = ANNA, *, key: str = "home-7-0", text: str = "Hello", **part: Any
) -> Message:
    more = {
        name: part.pop(name)
        for name in ("handle", "attached", "thread", "unsubscribe")
        if name in part
    }
    kind = "media" if part.get("media") else "text"
    made = Part(kind, text, **({"subject": "A word"} | part))
    return Message(key, target, "email", made, **more)


def play(
    settings: dict[str, Any],
    scene: Callable[[SmtpDriver], Awaitable[T]],
    timing: Timing = PATIENT,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Open an account, let the scene use it, close it."""

    async def whole() -> T:
        account = stage.account("shop", **settings)
        driver = await SmtpProvider(CLOCK, timing=timing).open(account)
        assert isinstance(driver, SmtpDriver)
        try:
            return await scene(driver)
        finally:
            await driver.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(whole())


def send(fake: FakeServer, *script: Step, timing: Timing = PATIENT, **settings: Any) -> Outcome:
    """What one letter comes to when the server does as it is told."""

    async def scene(driver: SmtpDriver) -> Outcome:
        fake.script.extend(script)
        return await driver.send(letter())

    return play(fake.settings(**settings), scene, timing)
