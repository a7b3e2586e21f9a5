"""What others have sent, told to a lane that is under way: it counts before the next message.

The gaps are so short that nobody parks the lane in between: one that starts anew would find it out
anyway.
"""

from __future__ import annotations

import pytest

from paceline.core.instants import SECOND, Instant
from paceline.engine.commands import history
from paceline.engine.commands.history import Past, PastRow
from paceline.engine.ports import Tx
from tests.engine.scenes import called, gaps
from tests.engine.world import World


def told(world: World, at: Instant, action: str = "message") -> None:
    """As another process would: ``paceline history import``."""

    def work(tx: Tx) -> None:
        row = PastRow(2, at, "ann", action, "")
        new, rejects = history.take_in(tx, [row], Past(), world.providers, world.clock.now())
        assert (new, rejects) == (1, [])

    world.write(work)


@pytest.mark.parametrize("policy", [{"spacing": "20s"}, {"rate": "3/min"}], ids=["spacing", "rate"])
def test_the_next_message_keeps_its_distance(world: World, policy: dict[str, str]) -> None:
    async def script(world: World) -> None:
        world.account(policy=policy)
        world.campaign(3)
        process = world.process(poll_us=SECOND)
        await world.until(lambda: len(world.sends()) == 2)
        await world.wait(8 * SECOND)
        elsewhere_at = world.clock.now() - 2 * SECOND
        told(world, elsewhere_at)
        await world.until_finished()
        await process.stop()
        first_at, second_at, third_at = called(world)
        assert second_at - first_at < 21 * SECOND
        assert 20 * SECOND <= third_at - elsewhere_at <= 21 * SECOND

    world.play(script)


def test_what_is_older_than_our_last_changes_nothing(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "20s"})
        world.campaign(3)
        process = world.process(poll_us=SECOND)
        await world.until(lambda: len(world.sends()) == 2)
        told(world, called(world)[0] + SECOND)
        await world.until_finished()
        await process.stop()
        assert all(20 * SECOND <= gap < 21 * SECOND for gap in gaps(called(world)))

    world.play(script)


def test_a_reply_of_others_takes_a_token_and_no_distance(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "20s"})
        world.campaign(3)
        process = world.process(poll_us=SECOND)
        await world.until(lambda: len(world.sends()) == 2)
        await world.wait(8 * SECOND)
        told(world, world.clock.now(), "reply")
        await world.until_finished()
        await process.stop()
        assert all(20 * SECOND <= gap < 21 * SECOND for gap in gaps(called(world)))

    world.play(script)
