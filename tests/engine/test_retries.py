"""How often a message is tried again that says so itself: of a campaign, and a single one."""

from __future__ import annotations

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Target, Wait
from paceline.core.retry import after_retries
from paceline.core.states import DeliveryState
from paceline.engine import queries
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import campaigns
from tests.engine.scenes import called, delivery, finish, gaps, to, until
from tests.engine.world import World

FAST = "10ms"
HELLO = Part("text", "hello")


def launch(world: World, targets: list[Target], retries: int | None) -> None:
    spec = CampaignSpec("spring", ("ann",), Content((HELLO,), retries))
    now = world.clock.now()

    def write(tx):  # type: ignore[no-untyped-def]
        campaigns.create(tx, spec, targets, world.providers, now)
        campaigns.launch(tx, "spring", now)

    world.write(write)


@pytest.mark.parametrize(
    ("retries", "waits"),
    [
        (None, [1, 2]),
        (0, []),
        (1, [1]),
        (4, [1, 2, 2, 2]),
    ],
)
def test_a_campaign_says_how_often_its_messages_are_tried_again(
    calm: None, world: World, retries: int | None, waits: list[int]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "1m,2m"}, latency=FAST)
        launch(world, to("transient"), retries)
        await finish(world, every_us=10 * SECOND, within_us=HOUR)
        found = delivery(world, "transient")
        assert found.state is DeliveryState.FAILED
        assert found.reason.endswith(f" ({after_retries(len(waits))})")

    world.play(script)
    assert [round(gap / MINUTE) for gap in gaps(called(world))] == waits


def test_so_does_a_single_message_and_why_says_which_retry_it_waits_for(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "1m,2m"}, latency=FAST)
        now, content = world.clock.now(), Content((HELLO,), 1)
        number = world.write(
            lambda tx: campaigns.send_direct(
                tx, "ann", "transient", content, "message", now, providers=world.providers
            )
        )
        process = world.process()
        await until(world, lambda: len(world.calls()) == 1)
        waiting = world.read(lambda tx: queries.why_delivery(tx, number, world.clock.now()))
        assert isinstance(waiting.verdict, Wait)
        assert waiting.verdict.why.endswith("; retry 1 of 1 in 1m")
        await until(
            world, lambda: delivery(world, "transient").state is DeliveryState.FAILED, MINUTE
        )
        await process.stop()

    world.play(script)
    assert len(called(world)) == 2


@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (1, 2)])
def test_what_never_arrived_is_sent_again_no_more_often_than_that(
    calm: None, world: World, retries: int, calls: int
) -> None:
    async def script(world: World) -> None:
        world.account(latency=FAST, timeout_latency="2s", lost_at=[1, 2, 3])
        launch(world, to("a"), retries)
        await finish(world, every_us=10 * SECOND, within_us=HOUR)
        found = delivery(world, "a")
        assert found.state is DeliveryState.FAILED
        assert found.reason == f"never reached the provider ({after_retries(retries)})"

    world.play(script)
    assert len(world.calls()) == calls
