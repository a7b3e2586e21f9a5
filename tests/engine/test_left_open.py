"""Runs that nobody has ended: how they are found without going through all counters each time."""

from __future__ import annotations

from paceline.core.instants import MINUTE
from paceline.engine.runs import LeftOpen
from tests.engine.world import World
from tests.store.counting import counted


def test_an_account_that_had_something_left_is_asked_first_and_then_the_others(
    world: World,
) -> None:
    async def script(world: World) -> None:
        first, second = (world.account(name) for name in ("ann", "bob"))
        campaign = world.campaign(4, on=("ann", "bob"))
        (run_id,) = [run.id for run in world.read(lambda tx: tx.runs.of_campaign(campaign.id))]
        left_open = LeftOpen()
        assert world.read(left_open.look) == []
        assert left_open._likely == [first.id]
        now = world.clock.now()
        for account, likely in ((first, [second.id]), (second, [])):
            world.write(
                lambda tx, at=account.id: tx.deliveries.move_all(
                    run_id, "skip", at=now, reason="left out", account_id=at
                )
            )
            found = world.read(left_open.look)
            assert left_open._likely == likely
        assert found == [run_id], "nothing is left anywhere, and nobody has ended it"
        process = world.process()
        await world.until_finished(within_us=5 * MINUTE)
        await process.stop()

    world.play(script)


def test_to_look_takes_one_statement_however_many_runs_there_are(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        for number in range(5):
            world.campaign(10, name=f"campaign-{number}")
        left_open = LeftOpen()
        with counted() as asked:
            assert world.read(left_open.look) == world.read(left_open.look) == []
        assert len([statement for statement in asked if "counters" in statement]) == 2

    world.play(script)
