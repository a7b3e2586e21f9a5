"""A turn whose lease reaches further than any may: the database's clock was set back meanwhile."""

from __future__ import annotations

from paceline.core.instants import HOUR, MINUTE, SECOND
from tests.engine.talking import Desk, Scripted, answered, hear, said, taking, turns
from tests.engine.world import World


def set_back(world: World) -> None:
    """As it looks from the turn that there is."""
    (turn,) = turns(world)
    assert world.write(lambda tx: tx.turns.renew(turn, HOUR))


def test_whoever_lives_keeps_its_turn(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        one, two = (Desk(world, Scripted(taking(world, 40)), name) for name in ("one", "two"))
        hear(world, "hi")
        await world.until(lambda: len(turns(world)) == 1)
        (begun,) = turns(world)
        for _ in range(5):
            await world.wait(6 * SECOND)
            set_back(world)
        await world.wait(MINUTE)
        (turn,) = turns(world)
        assert (turn.owner, turn.generation, turn.attempts) == (begun.owner, 1, 1)
        assert said(world) == ["re: hi"]
        for desk in (one, two):
            await desk.stop()

    world.play(script)


def test_whoever_is_gone_loses_it_after_a_lease(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        one = Desk(world, Scripted(taking(world, HOUR)), "one")
        hear(world, "hi")
        await world.until(lambda: len(turns(world)) == 1)
        await one.stop()
        set_back(world)
        two = Desk(world, Scripted(), "two")
        await world.wait(10 * SECOND)
        assert said(world) == []
        await world.wait(15 * SECOND)
        assert said(world) == ["re: hi"]
        await two.stop()

    world.play(script)
