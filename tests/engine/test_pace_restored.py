"""The pace goes on from the last call, though the checkpoint knows only of its intent.

The checkpoint is written with the intent, and the call comes a commit later. Who loses the lane in
between may still tell the outcome, but no longer write the usage. Whoever takes the lane then finds
nothing stranded and a checkpoint that is too early; the ledger knows when the call was made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.engine.ports import Tx
from tests.engine.doubles import Double
from tests.engine.faults import intends
from tests.engine.scenes import called, gaps, reply
from tests.engine.test_late_calls import take_away_the_lanes
from tests.engine.test_restarts import checkpoint
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

T = TypeVar("T")

SLOW_US = 5 * SECOND
CALL_US = 2 * SECOND
"""So long takes a call, and so long takes the next owner to open the account."""


class SlowIntents:
    """A disk on which it takes a while to hear that an intent is stored."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.slow = False

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        answer = function()
        if self.slow and intends(function):
            await self._world.wait(SLOW_US)
        return answer

    def close(self) -> None:
        return


def pass_by(world: World) -> None:
    """Another process takes the lane and is gone again at once."""
    take_away_the_lanes(world)
    account_id = world.account_now().id

    def take(tx: Tx) -> None:
        assert tx.lanes.take(account_id, tx.processes.join("passer-by", 0).id) is not None

    world.write(take)


class Story:
    """One process whose disk can be slow, and a provider who takes two seconds."""

    def __init__(self, world: World, policy: dict[str, Any]) -> None:
        self.world = world
        world.account(policy=policy, latency="2s")
        self.disk = SlowIntents(world)
        self.provider = Double(world.providers.get("sandbox"))

    def process(self) -> Process:
        providers = self.provider.registry()
        return self.world.process(runner=self.disk, providers=providers)

    async def lose_the_lane_during_a_call(self) -> Instant:
        """After a slow commit; its outcome is told all the same. When it was called for."""
        world = self.world
        calls = self.provider.called["send"]
        self.disk.slow = True
        await world.until(lambda: self.provider.called["send"] == calls + 1, 2 * MINUTE)
        self.disk.slow = False
        pass_by(world)
        await world.until(lambda: len(world.sends()) == calls + 1, 2 * MINUTE)
        await world.wait(SECOND)
        called_at = called(world)[-1]
        assert checkpoint(world).tat_at < called_at + MINUTE, "only its intent was checkpointed"
        return called_at


@pytest.mark.parametrize("policy", [{"rate": "1/min"}, {"spacing": "1m"}], ids=["rate", "spacing"])
def test_the_next_owner_counts_from_the_call(worlds: Worlds, policy: dict[str, Any]) -> None:
    async def script(world: World) -> None:
        story = Story(world, policy)
        world.campaign(2)
        process = story.process()
        await story.lose_the_lane_during_a_call()
        await world.until_finished(within_us=2 * MINUTE)
        await process.stop()
        (gap_us,) = gaps(called(world))
        assert MINUTE <= gap_us <= MINUTE + CALL_US

    worlds.fresh().play(script)


def test_a_reply_counts_from_its_call_too_as_to_the_rate(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        story = Story(world, {"rate": "1/min"})
        world.campaign(2)
        process = story.process()
        await world.until(lambda: len(world.sends()) == 1, MINUTE)
        reply(world, "bea")
        replied_at = await story.lose_the_lane_during_a_call()
        await world.until_finished(within_us=3 * MINUTE)
        await process.stop()
        first_at, _, last_at = called(world)
        assert replied_at - first_at >= MINUTE
        assert MINUTE <= last_at - replied_at <= MINUTE + CALL_US

    worlds.fresh().play(script)


def test_but_as_to_the_spacing_it_does_not_count_at_all(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        story = Story(world, {"spacing": "1m"})
        world.campaign(2)
        process = story.process()
        await world.until(lambda: len(world.sends()) == 1, MINUTE)
        reply(world, "bea")
        await story.lose_the_lane_during_a_call()
        await world.until_finished(within_us=3 * MINUTE)
        await process.stop()
        first_at, _, last_at = called(world)
        assert MINUTE <= last_at - first_at <= MINUTE + CALL_US

    worlds.fresh().play(script)


def test_where_only_replies_were_sent_the_last_of_them_counts(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        story = Story(world, {"rate": "1/min"})
        process = story.process()
        reply(world, "bea")
        await story.lose_the_lane_during_a_call()
        reply(world, "cy")
        await world.until(lambda: len(world.sends()) == 2, 3 * MINUTE)
        await process.stop()
        (gap_us,) = gaps(called(world))
        assert gap_us >= MINUTE

    worlds.fresh().play(script)
