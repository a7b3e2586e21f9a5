"""Looking ahead in a pool: nothing is bound before its account may send it."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, MILLISECOND, MINUTE
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Account, Driver
from tests.engine.scenes import deliveries, outcomes
from tests.engine.test_lookahead import QUICKLY, Server, answering
from tests.engine.world import World
from tests.engine.worlds import Worlds

TOO_FAST = Outcome(OutcomeKind.THROTTLED, "not so fast", "421", retry_after_us=6 * HOUR)


class ServerOfTwo(Server):
    """For two accounts, whose calls may be under way together: only ann's follow the script."""

    async def open(self, account: Account) -> Driver:
        driver: Any = await super().open(account)
        if account.name != "ann":
            del driver.begin
        return driver  # type: ignore[no-any-return]


def play(worlds: Worlds, refused: int, *, beside: bool) -> World:
    """The so-manieth call of ann's is answered with a wait of hours, and bob goes on."""

    async def script(world: World) -> None:
        world.account("ann", policy={"timeout": "10s"}, finds=False)
        world.account("bob", policy={"rate": "6/min"}, finds=False)
        pool = world.campaign(10, on=("ann", "bob"), assignment="pooled")
        if beside:
            world.campaign(10, name="autumn")
        quickly = [QUICKLY] * (refused - 1)
        server = ServerOfTwo(world, answering(*quickly, (5 * MILLISECOND, TOO_FAST), then=QUICKLY))
        process = world.process(providers=server.registry())
        await world.until(lambda: len(server.calls) == refused, MINUTE, MILLISECOND)
        await world.wait(20 * MINUTE)
        await process.stop()
        said = outcomes(world)
        (run,) = world.read(lambda tx: tx.runs.of_campaign(pool.id))
        assert run.id not in {row.run_id for row in said if row.outcome == "withdrawn"}
        refused_to = {row.delivery_id for row in said if row.outcome == "throttled"}
        left = [row for row in deliveries(world) if row.state == "ready" and row.run_id == run.id]
        assert {row.id for row in left} <= refused_to, "bob has sent all the others"

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen little of it
    world.play(script)
    return world


@pytest.mark.parametrize("refused", [2, 3, 5, 8])
def test_what_could_not_be_sent_after_all_is_left_to_the_others(
    worlds: Worlds, refused: int
) -> None:
    assert play(worlds, refused, beside=False).counts_at_end == {"sent": 9, "ready": 1}


@pytest.mark.parametrize("refused", [2, 3, 4, 5, 6, 7])
def test_so_it_is_where_a_campaign_that_is_no_pool_takes_turns_with_it(
    worlds: Worlds, refused: int
) -> None:
    assert play(worlds, refused, beside=True).counts_at_end["sent"] >= 9
