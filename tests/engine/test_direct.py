"""Single messages: ahead of every campaign, and under every limit all the same."""

from itertools import pairwise

from paceline.core.instants import MINUTE, SECOND, parse_instant
from paceline.core.states import DeliveryState
from tests.engine.scenes import (
    Begins,
    called,
    delivery,
    finish,
    say,
    send_direct,
    suppress,
    until,
)
from tests.engine.world import World


def test_a_direct_message_goes_ahead_of_a_running_campaign(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(10)
        process = world.process()
        await world.wait(3 * SECOND + 500_000)
        send_direct(world, "eve")
        await finish(world, process=process)

    world.play(script)
    order = [effect.target for effect in world.sends()]
    assert order.index("eve") == 4
    times = called(world)
    assert min(b - a for a, b in pairwise(times)) >= SECOND


def test_a_direct_message_waits_for_hours_caps_and_a_pause_like_any_other(
    world_at: Begins,
) -> None:
    night = world_at(parse_instant("2026-03-02T08:59:30Z"))

    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-18:00 UTC", "daily": {"message": 1}})
        send_direct(world, "eve")
        send_direct(world, "adam")
        process = world.process()
        await world.wait(2 * MINUTE)
        assert [e.target for e in world.calls()] == ["eve"]
        assert world.calls()[0].called_at >= parse_instant("2026-03-02T09:00:00Z")
        assert delivery(world, "adam").state is DeliveryState.READY
        await process.stop()

    night.play(script)


def test_a_direct_message_to_the_suppressed_or_from_a_paused_account_does_not_go(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        suppress(world, "eve")
        send_direct(world, "eve")
        process = world.process()
        await world.wait(3 * SECOND)
        assert delivery(world, "eve").state is DeliveryState.SKIPPED
        say(world, "pause account")
        send_direct(world, "adam")
        await world.wait(10 * SECOND)
        assert world.calls() == []
        say(world, "resume account")
        await until(world, lambda: len(world.sends()) == 1)
        await process.stop()

    world.play(script)


def test_a_direct_message_that_must_wait_does_not_block_one_that_need_not(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"connection_request": 1}})
        for name in ("eve", "adam", "seth"):
            send_direct(world, name, action="connection_request")
        send_direct(world, "noah")
        process = world.process()
        await world.wait(5 * SECOND)
        assert {effect.target for effect in world.sends()} == {"eve", "noah"}
        await process.stop()

    world.play(script)
