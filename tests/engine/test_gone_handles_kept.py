"""A file that the provider dropped is forgotten in the store before its lane is given back."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.media import Handles
from tests.engine.doubles import Act, Double
from tests.engine.test_handles_gone import forgetful, picture
from tests.engine.test_lost_lanes import Gate
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


def test_a_former_owner_does_not_forget_what_was_uploaded_after_it(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        async def cleaned_up(self: Handles) -> None:
            if self._gone and not stood_still:
                stood_still.append(True)
                gate.shut()
                await world.until(lambda: not gate.is_shut())
            await clean_up(self)

        world.account(policy={"rate": "60/min"})
        world.campaign(4, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=forgetful("media-expired", 1))
        former = world.process("one", providers=provider.registry())
        gate, stood_still, clean_up = Gate(former), list[bool](), Handles.clean_up
        monkeypatch.setattr(Handles, "clean_up", cleaned_up)
        await world.until(gate.is_shut)
        present = world.process("two", providers=provider.registry())
        await world.until_finished(within_us=5 * MINUTE)
        gate.open()
        await world.wait(MINUTE)
        (kept,) = world.read(lambda tx: tx.media.uploads())
        assert kept.handle == world.sends()[-1].part.handle
        await former.stop()
        await present.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 4}
