"""Follow-ups, as the simulator found them broken: each here by itself."""

from __future__ import annotations

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Target
from paceline.engine.commands import retrying
from tests.engine.following_up import ON_REPLY, follow_ups, second_messages
from tests.engine.scenes import deliveries, until
from tests.engine.talking import EVA, hear
from tests.engine.world import Process, World

FLAKY = "flaky-1"
"""Refused the first time, and tried again a minute later."""


def in_vain(world: World) -> Process:
    """A campaign whose message is refused after 20 seconds, and is sent a minute after that."""
    world.account(policy={"rate": "60/min", "retry": "1m"}, latency="20s..20s")
    world.campaign(targets=[Target(FLAKY)], follow_up=ON_REPLY)
    return world.process()


async def written_while_it_was_tried(world: World) -> None:
    await world.until(lambda: world.counts().get("sending") == 1)
    hear(world, "are you open?", chat=FLAKY)


def skipped(world: World) -> list[str]:
    rows = [row for row in deliveries(world) if row.run_id == follow_ups(world).id]
    return [row.reason for row in rows if row.state == "skipped"]


def test_who_wrote_before_it_was_sent_after_all_has_not_answered_it(on_either: World) -> None:
    """When they wrote it was being tried, in vain; what they got came later."""

    async def script(world: World) -> None:
        process = in_vain(world)
        await written_while_it_was_tried(world)
        await world.wait(5 * MINUTE)
        assert [one.accepted for one in world.effects.all()] == [False, True]
        assert second_messages(world) == []
        assert skipped(world) == ["they had written before step 1 was sent"]
        await process.stop()

    on_either.play(script)


@pytest.mark.parametrize("after_us", [65 * SECOND, 90 * SECOND, 4 * MINUTE])
def test_and_when_they_answer_it_then_they_have(world: World, after_us: int) -> None:
    """Whether it is on its way for the second time, has just been sent, or was settled."""

    async def script(world: World) -> None:
        process = in_vain(world)
        await written_while_it_was_tried(world)
        await world.wait(20 * SECOND + after_us)
        hear(world, "yes please", chat=FLAKY)
        await until(world, lambda: len(second_messages(world)) == 1, SECOND, 5 * MINUTE)
        await world.wait(5 * MINUTE)
        assert [one.target for one in second_messages(world)] == [FLAKY]
        assert len(skipped(world)) == 1
        await process.stop()

    world.play(script)


def test_who_answers_what_had_failed_and_was_retried_is_sent_one(world: World) -> None:
    """Though the follow-up was skipped that they had bidden while it was tried in vain."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="20s..20s", reject_at=[1])
        world.campaign(targets=[Target(EVA)], follow_up=ON_REPLY)
        process = world.process()
        await world.until(lambda: world.counts().get("sending") == 1)
        hear(world, "are you open?")
        await world.wait(3 * MINUTE)
        assert skipped(world) == ["step 1 was not delivered: it is failed"]
        world.write(lambda tx: retrying.retry_failed(tx, "spring", world.clock.now()))
        await world.wait(3 * MINUTE)
        assert second_messages(world) == []
        hear(world, "yes please")
        await world.wait(3 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    world.play(script)
