"""An account on a scripted WhatsApp, opened and used in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from paceline.core.instants import Instant, parse_instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Account, Media, Message
from paceline.providers.whatsapp.driver import WhatsAppDriver
from paceline.providers.whatsapp.provider import WhatsAppProvider
from paceline.sim.loop import run_virtual
from tests.providers import stage
from tests.providers.whatsapp.scripted import FAMILY, ScriptedWhatsApp

T = TypeVar("T")

START: Instant = parse_instant("2026-11-15T09:00:00Z")
PICTURE = Media("a" * 64, "poster.png", "image/png", 9)
ANNA = "+4915187654321"
ANNA_JID = "4915187654321@s.whatsapp.net"


def account(name: str = "team", **settings: Any) -> Account:
    return replace(stage.account(name, **settings), provider="whatsapp")


def message(
    target: str = FAMILY.jid, text: str = "Hello", *, handle: str | None = None, **part: Any
) -> Message:
    kind = "media" if handle is not None or "media" in part else "text"
    media = part.pop("media", PICTURE.id if kind == "media" else None)
    action = part.pop("action", "message")
    return Message("home-7-0", target, action, Part(kind, text, media=media, **part), handle)


def brief(answer: object) -> tuple[OutcomeKind, str]:
    """An outcome by what it means."""
    assert isinstance(answer, Outcome), answer
    return answer.kind, answer.code


class Stage:
    """A provider whose sessions are in a folder, the one of the account paired."""

    def __init__(self, folder: Path, *, paired: bool = True) -> None:
        self.folder = folder
        self.clock = LoopClock(START)
        self.whatsapp = ScriptedWhatsApp()
        self.provider = WhatsAppProvider(self.clock, folder, self.whatsapp.make)
        if paired:
            (folder / "team.session").touch()

    async def open(self, **settings: Any) -> WhatsAppDriver:
        driver = await self.provider.open(account(**settings))
        assert isinstance(driver, WhatsAppDriver)
        return driver

    def play(self, scene: Callable[[WhatsAppDriver], Awaitable[T]], **settings: Any) -> T:
        """Open the account, let the scene use it, close it."""

        async def whole() -> T:
            driver = await self.open(**settings)
            try:
                return await scene(driver)
            finally:
                await driver.close()

        return run_virtual(whole(), start_at=START)
