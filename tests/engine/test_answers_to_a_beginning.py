"""Whoever got the first part of a message and not the second has got something to answer."""

from __future__ import annotations

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Part
from paceline.core.states import DeliveryState
from tests.engine.following_up import AGAIN, first_to, outreach, second_messages
from tests.engine.scenes import deliveries, until
from tests.engine.talking import EVA, hear
from tests.engine.world import Process, World

TWO = (Part("text", "one"), Part("text", "two"))


async def begun(world: World, refused: int = 2) -> Process:
    """A message in two parts, of which the provider refuses one."""
    process = outreach(world, names=(EVA,), parts=TWO)
    account = world.account_now()
    settings = {"reject_at": [refused]}
    world.write(lambda tx: tx.accounts.update(account.id, settings=settings))
    await until(world, lambda: first_to(world, EVA).state is DeliveryState.FAILED, SECOND, MINUTE)
    return process


@pytest.mark.usefixtures("looked_after")
def test_whoever_answers_the_first_part_has_answered(on_either: World) -> None:
    async def script(world: World) -> None:
        process = await begun(world)
        assert first_to(world, EVA).parts_done == 1
        await world.wait(20 * HOUR)
        hear(world, "tell me more")
        hear(world, "please")
        await world.wait(2 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    on_either.play(script)


@pytest.mark.usefixtures("calm")
def test_but_not_too_late(world: World) -> None:
    async def script(world: World) -> None:
        process = await begun(world)
        await world.wait(DAY + MINUTE)
        hear(world, "tell me more")
        await world.wait(2 * MINUTE)
        assert second_messages(world) == []
        await process.stop()

    world.play(script)


def test_whoever_got_nothing_answers_nothing(world: World) -> None:
    async def script(world: World) -> None:
        process = await begun(world, refused=1)
        assert first_to(world, EVA).parts_done == 0
        await world.wait(MINUTE)
        hear(world, "tell me more")
        await world.wait(2 * MINUTE)
        assert second_messages(world) == []
        await process.stop()

    world.play(script)


def test_an_answer_between_the_parts_counts_when_the_second_is_refused(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world, names=(EVA,), parts=TWO, steps=(AGAIN,))
        account = world.account_now()
        settings = {"reject_at": [2], "latency": "5s"}
        world.write(lambda tx: tx.accounts.update(account.id, settings=settings))
        await until(world, lambda: first_to(world, EVA).parts_done == 1, SECOND, MINUTE)
        assert first_to(world, EVA).state is DeliveryState.SENDING
        hear(world, "tell me more")
        await world.wait(4 * HOUR)
        assert first_to(world, EVA).state is DeliveryState.FAILED
        assert [one.target for one in second_messages(world)] == [EVA]
        texts = [row.state for row in deliveries(world) if row.step == 2 and not row.reply]
        assert texts == [DeliveryState.SKIPPED], "what would have followed by itself does not"
        await process.stop()

    world.play(script)
