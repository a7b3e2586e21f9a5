"""What is in the store of whose commit nobody heard is given back, whenever it comes to light."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.engine import lane
from paceline.engine.ports import Intent, LaneUnit, Tx
from paceline.engine.sender import Sender
from tests.engine.scenes import until
from tests.engine.world import World


def _intend(tx: Tx, self: lane.Lane, number: int, world: World) -> None:
    """An intent of this lane's that is committed behind its back, as a flight is that waited for a
    row until its sender had given it up."""
    account_id = self._lease.account_id
    run = tx.path.restore(account_id).runs[0]
    attempt, policy_id = tx.deliveries.get(number).attempts + 1, self._memory.account.policy_id
    wish = Intent(number, run.id, 0, attempt, "message", world.clock.now(), policy_id)
    unit = LaneUnit(self._lease, tx.lanes.get(account_id).revision, None, (), wish)
    assert tx.path.apply([unit])[0].intended


def test_what_comes_to_light_at_the_second_look_is_given_back_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, looks, look_over = [29, 28], list[list[int]](), lane.Lane._look_over

    async def look(self: lane.Lane, sender: Sender) -> Any:
        if late:
            world.write(lambda tx: _intend(tx, self, late.pop(0), world))
        found, snapshot = await look_over(self, sender)
        looks.append([delivery.id for delivery, _ in found])
        return found, snapshot

    async def script(world: World) -> None:
        world.account(policy={"spacing": "10s"})
        world.campaign(30)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 3)
        monkeypatch.setattr(lane.Lane, "_look_over", look)
        (running,) = process.supervisor._running.values()
        running.lane._outbox.doubt()
        running.lane.touch()
        await until(world, lambda: len(world.sends()) == 30)
        assert looks[:3] == [[29], [28], []]
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 30}
