"""The stage of a driver that speaks HTTP: its fake on a port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx

from paceline.core.instants import Instant
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Clock, Driver, Provider
from tests.providers import stage as stages
from tests.providers.conformance.case import Loss
from tests.providers.loopback import HTML, JSON, Fake, Scripted

T = TypeVar("T")

PATIENT = httpx.Timeout(30)
HASTY = httpx.Timeout(30, read=0.5)

Make = Callable[[Clock, httpx.Timeout], Provider]


class WebStage:
    """What the stages of all such drivers have in common; what they send is their own."""

    def __init__(self, fake: Fake, make: Make, settings: Mapping[str, Any]) -> None:
        self.fake = fake
        self.settings = settings
        self._make = make
        self._clock = SystemClock()
        self.restart()

    def restart(self) -> None:
        self._patient = self._make(self._clock, PATIENT)
        self._hasty = self._make(self._clock, HASTY)

    @property
    def provider(self) -> Provider:
        return self._patient

    def now(self) -> Instant:
        return self._clock.now()

    def play(self, scene: Callable[[Driver], Awaitable[T]], *, hasty: bool = False) -> T:
        provider = self._hasty if hasty else self._patient

        async def whole() -> T:
            driver = await provider.open(stages.account("sales", **self.settings))
            try:
                return await scene(driver)
            finally:
                await driver.close()

        return asyncio.run(whole())

    def lose(self, loss: Loss) -> None:
        match loss.name:
            case "nobody there":
                self.fake.leave()
            case "reset while writing":
                self.script(Scripted(drops="unread"))
            case "hung up, taken" | "hung up, not taken":
                self.script(Scripted(drops="read", takes=loss.takes))
            case "cut short, taken":
                self.script(Scripted(201, b'{"id": "', JSON, takes=True, drops="midway"))
            case _:
                self.script(Scripted(hangs=True, takes=loss.takes))

    def page(self, status: int) -> None:
        """Let the next send be answered with somebody's page instead of the provider's words."""
        body = b"" if status == 204 else b"<html><h1>Oh</h1></html>"
        self.script(Scripted(status, body, HTML))

    def script(self, *answers: Scripted) -> None:
        """How the next sends are answered."""
        self.fake.script.extend(answers)
