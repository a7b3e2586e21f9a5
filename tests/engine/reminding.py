"""Reminders for tests: a Monday morning in Kuala Lumpur, and groups to remind."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from paceline.core.instants import Instant, parse_instant
from paceline.core.model import Target
from paceline.engine.clock import LoopClock
from paceline.engine.commands import reminders
from paceline.engine.ports import Run
from paceline.engine.reminder_spec import ReminderSpec
from paceline.store.database import open_store
from tests.engine.world import World

T = TypeVar("T")

ZONE = "Asia/Kuala_Lumpur"
EIGHT: Instant = parse_instant("2026-03-02T08:00:00", ZONE)
"""A Monday morning."""


def groups(count: int) -> list[Target]:
    return [Target(f"1203630{number:05}@g.us") for number in range(count)]


POSTER = "poster.png"


def remind(world: World, count: int = 10, *, name: str = "standup", **changes: Any) -> None:
    """At nine every morning unless told otherwise; parts may show the poster."""
    raw: dict[str, Any] = {
        "name": name,
        "account": "ann",
        "cron": "0 9 * * *",
        "zone": ZONE,
        "parts": [{"text": "good morning"}],
        **changes,
    }
    if "at" in changes:
        del raw["cron"]
    if "accounts" in changes:
        del raw["account"]
    spec = ReminderSpec.from_mapping(raw)
    now = world.clock.now()
    poster = world.write(lambda tx: tx.media.put(POSTER, "image/png", b"x" * 5_000_000, now))
    spec = ReminderSpec(spec.campaign.with_media({POSTER: poster.id}), spec.rule)
    world.write(lambda tx: reminders.create(tx, spec, groups(count), world.providers, now))


def runs_of(world: World, name: str = "standup") -> list[Run]:
    return world.read(lambda tx: tx.runs.of_campaign(reminders.find(tx, name).campaign_id))


class Morning(World):
    """A world that begins at eight. Nobody waits for the disk: no simulated crash empties the
    operating system's cache."""

    def __init__(self, folder: Path) -> None:
        clock = LoopClock(EIGHT)
        url = f"sqlite:///{folder / 'reminders.db'}"
        super().__init__(url, EIGHT, opened=open_store(url, clock=clock.now, durable=False))

    def play(self, script: Callable[[World], Coroutine[Any, Any, T]]) -> T:
        try:
            return super().play(script)
        finally:
            self.store.close()


def fresh(folder: Path) -> World:
    return Morning(folder)
