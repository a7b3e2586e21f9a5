"""A clock that is set back while a lane is in the middle of reading anew: it is followed once."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import SECOND
from paceline.engine import recovery
from tests.engine.test_clock_steps import SetClock
from tests.engine.world import World
from tests.engine.worlds import Worlds

GAP_US = 90 * SECOND
BACK_US = 200 * SECOND


def test_a_gap_is_not_cut_short_by_a_clock_that_is_set_back_while_a_lane_reads_anew(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a simulated world: the last call was moved to the new clock when its instant was
    seen to lie in the future, and moved once more when the step was noticed."""

    async def script(world: World) -> None:
        clock = SetClock(world.clock)
        world.account(policy={"spacing": "90s"})
        world.campaign(2)
        await world.wait(2 * BACK_US)  # both are due by any clock
        process = world.process(clock=clock)
        await world.until(lambda: len(world.sends()) == 1)
        first_at = world.clock.now()
        take_back = recovery.take_back

        async def set_back(*args: Any) -> None:
            clock.off_us = -BACK_US
            await take_back(*args)

        monkeypatch.setattr(recovery, "take_back", set_back)
        await world.wait(10 * SECOND)
        (running,) = process.supervisor._running.values()
        running.lane.touch()
        await world.until(lambda: len(world.sends()) == 2, within_us=5 * GAP_US)
        assert world.clock.now() - first_at >= GAP_US
        await process.stop()

    worlds.fresh().play(script)
