"""Lanes that end because they seem to be another's: whoever they belong to, they are run again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import TypeVar

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome
from paceline.engine.leases import LEASE_US
from paceline.engine.media import Handles
from tests.engine.test_media import picture
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

T = TypeVar("T")


class Gate:
    """A database that answers nobody for a while, whoever asks it."""

    def __init__(self, process: Process) -> None:
        self._open = asyncio.Event()
        self._open.set()
        process.journal._writer = process.journal._reader = self  # type: ignore[assignment]

    def shut(self) -> None:
        self._open.clear()

    def is_shut(self) -> bool:
        return not self._open.is_set()

    def open(self) -> None:
        self._open.set()

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        await self._open.wait()
        answer = function()
        await self._open.wait()
        return answer

    def close(self) -> None:
        return


def test_a_lease_that_ran_out_while_a_file_was_looked_for_leaves_the_lane_to_somebody(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulator: nobody had taken the lane meanwhile, so it was its process's for
    ever after, and nobody there ran it."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3, parts=(picture(world),))
        process = world.process()
        gate, looks, ensure = Gate(process), count(1), Handles.ensure

        async def ensured(self: Handles, media_id: str, timeout_us: int) -> str | Outcome:
            if next(looks) == 1:
                gate.shut()
            return await ensure(self, media_id, timeout_us)

        monkeypatch.setattr(Handles, "ensure", ensured)
        await world.until(gate.is_shut)
        await world.wait(2 * LEASE_US)
        gate.open()
        await world.until_finished(within_us=5 * MINUTE, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}
