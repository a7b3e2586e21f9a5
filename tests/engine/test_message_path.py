"""The message path from end to end: a campaign is sent, once, in order, and everything adds up."""

from itertools import pairwise

from paceline.core.instants import SECOND
from paceline.core.model import Part
from tests.engine.world import World


def test_a_campaign_reaches_everybody_once(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(25)
        process = world.process()
        await world.until_finished()
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 25}
    assert [effect.target for effect in world.sends()] == [f"spring-{n:04}" for n in range(25)]


def test_a_rate_is_kept_and_nothing_is_wasted(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "40/min"}, latency="300ms")
        world.campaign(20)
        process = world.process()
        await world.until_finished()
        await process.stop()

    world.play(script)
    called = [effect.called_at for effect in world.calls()]
    gaps = [later - earlier for earlier, later in pairwise(called)]
    assert gaps == [1_500_000] * 19


def test_parts_of_one_message_keep_their_order_and_each_takes_a_token(world: World) -> None:
    parts = (Part("text", "one"), Part("text", "two {{ target }}"), Part("text", "three"))

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 3, "part_gap": "200ms..500ms"})
        world.campaign(6, parts=parts)
        process = world.process()
        await world.until_finished()
        await process.stop()

    world.play(script)
    order: dict[str, list[int]] = {}
    for effect in world.sends():
        order.setdefault(effect.target, []).append(int(effect.key.rsplit("-", 1)[1]))
    assert all(parts == [0, 1, 2] for parts in order.values())
    assert len(order) == 6
    called = [effect.called_at for effect in world.calls()]
    assert min(b - a for a, b in pairwise(called)) >= SECOND
