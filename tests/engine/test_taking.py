"""Lanes that are taken: what was read along with them, and accounts that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine import lane as lanes
from paceline.engine import taking
from paceline.engine.memory import take_snapshot
from tests.engine.doubles import Watcher
from tests.engine.world import World
from tests.engine.worlds import Worlds


def test_a_lane_begins_with_what_was_read_when_it_was_taken(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Instant] = []

    def look(tx: Any, account_id: int, now: Instant, *, known: Any = None) -> Any:
        looks.append(now)
        return take_snapshot(tx, account_id, now, known=known)

    monkeypatch.setattr(lanes, "take_snapshot", look)

    async def script(world: World) -> None:
        for name in ("ann", "ben"):
            world.account(name, policy={"rate": "60/min"})
        world.campaign(4, on=("ann", "ben"))
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not looks, "nothing was touched, so nobody had to look again"

    worlds.fresh().play(script)


def test_an_account_that_cannot_be_read_keeps_no_other_from_being_taken(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        bad = world.account("ann", policy={"rate": "60/min"})
        world.account("ben", policy={"rate": "60/min"})
        world.campaign(4, on=("ann", "ben"))

        def look(tx: Any, account_id: int, now: Instant, *, known: Any = None) -> Any:
            if account_id == bad.id:
                raise InputError("no such limit", key="rate")
            return take_snapshot(tx, account_id, now, known=known)

        for module in (lanes, taking):
            monkeypatch.setattr(module, "take_snapshot", look)
        watcher = Watcher()
        process = world.process(observer=watcher)
        await world.wait(MINUTE)
        assert world.counts()["sent"] == 2, "all of the other's"
        assert watcher.crashes["ann"], "and this one is told of"
        await process.stop()

    worlds.fresh().play(script)
