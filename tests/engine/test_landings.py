"""A yes that comes while the next intent is being committed: it is settled as it comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND
from paceline.engine.commands import campaigns
from paceline.engine.lane import Lane
from paceline.engine.ports import Lease, Tx
from tests.engine.scenes import intents, outcomes
from tests.engine.test_lookahead import NO, YES, Server, answering, play
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

T = TypeVar("T")

MS = MILLISECOND
COMMIT_US = 40 * MS
"""Between what an answer takes and what is worth being looked past."""


class SlowDisk:
    """What is written is there at once, and takes its time to be heard of."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        answer = function()
        await self._world.wait(COMMIT_US)
        return answer

    def close(self) -> None:
        return


def amid(
    worlds: Worlds, *first: tuple[int, Any], act: Callable[[World, Process, Server], Any]
) -> World:
    """A lane that writes the intent of a fifth letter when the fourth is called for, and is
    answered long before that is committed; ``act`` sees the beginning of it."""

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        server = Server(world, answering(*first, then=(5 * MS, YES)))
        process = world.process(providers=server.registry(), runner=SlowDisk(world))

        def at_call(number: int) -> None:
            if number == 4:
                act(world, process, server)

        server.at_call = at_call
        await world.until(lambda: len(server.calls) == 4, within_us=MINUTE, every_us=MS)
        await world.wait(10 * SECOND)
        await process.kill()

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)
    return world


def lane_of(process: Process) -> Lane:
    (running,) = process.supervisor._running.values()
    return running.lane


def in_the_outbox(world: World, process: Process) -> list[str]:
    names = {one.id: one.target for one in world.read(lambda tx: tx.deliveries.page())}
    return [names[one.settlement.delivery_id] for one in lane_of(process)._outbox._waiting]


def test_a_yes_is_settled_while_the_next_intent_is_committed(worlds: Worlds) -> None:
    """And is written down with the one after that: what is on its way now has been told."""
    found: list[tuple[list[str], int]] = []

    def act(world: World, process: Process, server: Server) -> None:
        def look() -> None:
            found.append((in_the_outbox(world, process), len(intents(world))))

        world.clock.timer(COMMIT_US // 2, look)

    world = amid(worlds, act=act)
    assert found == [(["spring-0002", "spring-0003"], 5)]
    assert world.counts() == {"sent": 6}


def test_anything_else_waits_for_the_lane(worlds: Worlds) -> None:
    found: list[list[str]] = []

    def act(world: World, process: Process, server: Server) -> None:
        world.clock.timer(COMMIT_US // 2, lambda: found.append(in_the_outbox(world, process)))

    yes, no = (5 * MS, YES), (5 * MS, NO)
    world = amid(worlds, yes, yes, yes, no, act=act)
    assert found == [["spring-0002"]]
    assert world.counts() == {"sent": 5, "failed": 1}


def test_a_yes_counts_though_the_intent_beside_it_was_refused(worlds: Worlds) -> None:
    """Usage is put back to before that intent, but not to before the answer."""
    found: list[int] = []

    def look(lane: Lane) -> None:
        ((_, window),) = lane._memory.usage.health.items()
        found.append(window.size)

    def act(world: World, process: Process, server: Server) -> None:
        world.write(lambda tx: campaigns.pause(tx, "spring", world.clock.now()))
        world.clock.timer(COMMIT_US + MS, partial(look, lane_of(process)))

    world = amid(worlds, act=act)
    assert len(intents(world)) == 4, "the fifth was refused"
    assert found == [4]
    assert world.counts() == {"sent": 4, "ready": 2}


def test_a_yes_is_told_though_the_lane_was_lost_meanwhile(worlds: Worlds) -> None:
    def take_over(tx: Tx, lease: Lease) -> None:
        """Another process has it, as if ours had been thought dead."""
        assert tx.lanes.release(lease)
        other = tx.processes.join("other", HOUR)
        assert tx.lanes.take(lease.account_id, other.id) is not None

    def act(world: World, process: Process, server: Server) -> None:
        world.write(lambda tx: take_over(tx, lane_of(process)._lease))

    world = amid(worlds, act=act)
    assert len(intents(world)) == 4, "the fifth was refused"
    assert len(outcomes(world)) == 4
    assert world.counts() == {"sent": 4, "ready": 2}


def test_the_last_of_a_campaign_ends_it_all_the_same(worlds: Worlds) -> None:
    world, server, _, said = play(worlds, answering(then=(5 * MS, YES)), count=5)
    assert len(server.calls) == len(said) == 5
    assert world.counts_at_end == {"sent": 5}
