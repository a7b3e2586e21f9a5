"""A campaign that was launched by its plan is done when the plan said: pools, steps, drawn gaps."""

from itertools import pairwise
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Content, Part, Step
from paceline.engine.launching import launch
from tests.engine.world import World

AGAIN = Step(20 * MINUTE, Content((Part("text", "and again"),)))


async def kept(world: World, accounts: dict[str, dict[str, Any]], count: int, **spec: Any) -> None:
    """Launch it by plan, let it run, and compare the ends."""
    for name, policy in accounts.items():
        world.account(name, policy=policy, latency="50ms")
    world.campaign(count, on=tuple(accounts), launch=False, **spec)
    start_at: Instant = world.clock.now()
    found = launch(world.store, "spring", start_at, world.providers).plan
    assert found.nevers == () and found.plan.finish_at is not None
    process = world.process()
    await world.until_finished(every_us=MINUTE, within_us=48 * HOUR)
    await process.stop()
    assert len(world.sends()) == found.plan.messages
    planned_us = found.plan.finish_at - start_at
    really_us = world.sends()[-1].called_at - start_at
    assert abs(really_us - planned_us) <= 0.05 * planned_us, (planned_us, really_us)
    for account in found.plan.accounts:
        sent = len(world.sends(account.account))
        assert abs(sent - account.messages) <= 0.05 * account.messages + 1


@pytest.mark.usefixtures("calm")
def test_a_pool_of_unequal_accounts(world: World) -> None:
    async def script(world: World) -> None:
        accounts = {"ann": {"spacing": "10s"}, "bob": {"spacing": "30s"}}
        await kept(world, accounts, 200, assignment="pooled")

    world.play(script)


def test_steps_that_follow_each_other(world: World) -> None:
    async def script(world: World) -> None:
        await kept(world, {"ann": {"spacing": "1m"}}, 30, steps=(AGAIN,))

    world.play(script)


@pytest.mark.usefixtures("calm")
def test_gaps_that_are_drawn_again_when_it_is_sent(world: World) -> None:
    """The plan drew its own: each message keeps to the later of its slot and its gap."""

    async def script(world: World) -> None:
        await kept(world, {"ann": {"spacing": "20s..40s"}}, 250)

    world.play(script)


def test_the_plan_leaves_no_two_messages_closer_than_they_may_be(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "10s", "batch": "3 then 1m"})
        world.campaign(9, launch=False)
        found = launch(world.store, "spring", world.clock.now(), world.providers).plan
        instants = sorted(slot.at for slot in found.slots.values())
        gaps = [(later - sooner) // SECOND for sooner, later in pairwise(instants)]
        assert gaps == [10, 10, 70, 10, 10, 70, 10, 10]

    world.play(script)
