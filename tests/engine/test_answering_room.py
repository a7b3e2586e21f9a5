"""How many conversations a process answers at once, and that it keeps count of them."""

from __future__ import annotations

from paceline.core.instants import MINUTE, SECOND
from tests.engine.talking import EVA, Desk, Scripted, answered, hear, said, taking, turns
from tests.engine.world import World


def test_those_that_were_left_and_those_that_are_due_share_the_room(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        one = Desk(world, Scripted(taking(world, 300)))
        for number in range(2):
            hear(world, "hi", chat=f"+3460000{number:04}")
        await world.wait(15 * SECOND)
        await one.kill()
        for number in range(2, 6):
            hear(world, "hi", chat=f"+3460000{number:04}")
        await world.wait(MINUTE)
        responder = Scripted(taking(world, 10))
        two = Desk(world, responder, "two", at_once=3)
        await world.wait(MINUTE)
        assert two.tally.stale_cleaned == 2
        assert len(world.sends()) == 6
        assert responder.most_at_once == 3
        await two.stop()

    world.play(script)


def test_a_turn_that_was_lost_leaves_the_next_one_counted(world: World) -> None:
    """Whoever has lost a turn may hear of it only after it has begun the next one of the same
    conversation."""

    async def script(world: World) -> None:
        answered(world, quiet_us=SECOND)
        one = Desk(world, Scripted(taking(world, 60)))
        hear(world, "hi")
        await world.until(lambda: one.answerer.answering == 1)
        (turn,), now = turns(world), world.clock.now()
        world.write(lambda tx: tx.turns.take_over(turn, "elsewhere", 0, now, 0))
        two = Desk(world, Scripted(), "two")
        await world.until(lambda: said(world) == ["re: hi"])
        await two.stop()
        hear(world, "more", chat=EVA)
        await world.until(lambda: len(turns(world)) == 2)
        assert world.clock.now() - now < 5 * SECOND, "before it looks after its turn again"
        await world.wait(20 * SECOND)
        assert one.answerer.answering == 1
        await world.wait(MINUTE)
        assert said(world) == ["re: hi", "re: more"]
        assert one.answerer.answering == 0
        await one.stop()

    world.play(script)
