"""A file that the provider dropped is forgotten in the store before its lane is given back."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from tests.engine.doubles import Act, Double
from tests.engine.test_handles_gone import picture
from tests.engine.world import World
from tests.engine.worlds import Worlds


async def refuse(real: Act, message: Any) -> Any:
    return Outcome(OutcomeKind.REJECTED, "no such media", "media-expired")


@pytest.mark.parametrize("parting", ["park", "end"])
def test_whoever_runs_the_lane_next_does_not_try_it(worlds: Worlds, parting: str) -> None:
    async def script(world: World) -> None:
        # So slow that the lane is parked after its first message, long before the next.
        world.account(policy={"rate": "1/hour"})
        world.campaign(3, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=refuse)
        options = {} if parting == "park" else {"park_after_us": 24 * 60 * MINUTE}
        process = world.process(providers=provider.registry(), **options)
        await world.until(lambda: provider.called["send"] == 1)
        await world.wait(SECOND)
        lane = world.read(lambda tx: tx.lanes.get(world.account_now().id))
        assert (lane.owner is None) is (parting == "park")
        if parting == "end":
            assert world.read(lambda tx: len(tx.media.uploads())) == 1, "nobody was in a hurry"
            await process.stop()
        assert world.read(lambda tx: tx.media.uploads()) == []
        await process.stop()

    worlds.fresh().play(script)
