"""Whoever is muted is sent no follow-up, and everybody can see why; nothing else of a campaign
depends on it."""

from __future__ import annotations

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE
from paceline.core.model import FollowUp, Target
from paceline.core.states import DeliveryState
from paceline.engine import conversations, muting
from paceline.engine.commands import returns
from paceline.engine.muted import REASON
from paceline.engine.ports import Accepted, Delivery
from paceline.engine.queries import why_delivery
from tests.engine.following_up import (
    AGAIN,
    ON_REPLY,
    SECOND_MESSAGE,
    first_messages,
    follow_ups,
    outreach,
    second_messages,
)
from tests.engine.scenes import deliveries, until
from tests.engine.talking import BEN, EVA, conversation, hear
from tests.engine.world import World


def mute(world: World, chat: str = EVA, *, everywhere: bool = False) -> None:
    number, now = conversation(world, chat).id, world.clock.now()
    if everywhere:
        world.write(lambda tx: muting.mute_everywhere(tx, number, now))
    else:
        world.write(lambda tx: muting.mute(tx, number, now))


def unmute(world: World) -> None:
    number, now = conversation(world).id, world.clock.now()
    world.write(lambda tx: muting.unmute(tx, number, now))


def bidden(world: World) -> list[Delivery]:
    run = follow_ups(world).id
    return [one for one in deliveries(world) if one.run_id == run]


@pytest.mark.parametrize("everywhere", [False, True])
def test_nothing_follows_for_whoever_is_muted_and_it_is_said_why(
    on_either: World, everywhere: bool
) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        hear(world, "hello")
        mute(world, everywhere=everywhere)
        await first_messages(world)
        hear(world, "yes please")
        hear(world, "hello?")
        hear(world, "yes please", chat=BEN)
        await world.wait(5 * MINUTE)
        assert [one.target for one in second_messages(world)] == [BEN]
        (row,) = [one for one in bidden(world) if one.target == EVA]
        assert (row.state, row.reason) == (DeliveryState.SKIPPED, REASON)
        told = world.read(lambda tx: why_delivery(tx, row.id, world.clock.now()))
        assert told.settled and told.delivery is not None and told.delivery.reason == REASON
        await until(world, lambda: world.state() == "finished", HOUR, 2 * DAY)
        await process.stop()
        world.check()

    on_either.play(script)


def test_whoever_is_answered_again_may_bid_it_again(on_either: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        hear(world, "hello")
        mute(world)
        await first_messages(world)
        hear(world, "yes please")
        await world.wait(5 * MINUTE)
        unmute(world)
        await world.wait(5 * MINUTE)
        assert second_messages(world) == [], "what was skipped stays so"
        hear(world, "are you there?")
        hear(world, "well?")
        await world.wait(5 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        assert [row.state for row in bidden(world)] == [DeliveryState.SKIPPED, DeliveryState.SENT]
        await process.stop()

    on_either.play(script)


@pytest.mark.parametrize("everywhere", [False, True])
def test_what_was_bidden_and_waits_is_called_off(world: World, everywhere: bool) -> None:
    """Whoever accepts an invitation is written to within hours; and is muted before that."""

    async def script(world: World) -> None:
        accepted = FollowUp(SECOND_MESSAGE, on="accepted")
        process = outreach(world, follow_up=accepted)
        await first_messages(world)
        account, now = world.account_now(), world.clock.now()
        hear(world, "hello")
        world.write(lambda tx: tx.accounts.move(account.id, "pause"))
        news = [Accepted((name,), now) for name in (EVA, BEN)]
        world.write(lambda tx: returns.take_in(tx, account, news, now))
        assert [one.state for one in bidden(world)] == [DeliveryState.READY] * 2
        mute(world, everywhere=everywhere)
        states = {one.target: (one.state, one.reason) for one in bidden(world)}
        assert states[EVA] == (DeliveryState.SKIPPED, REASON)
        assert states[BEN][0] is DeliveryState.READY
        await process.stop()

    world.play(script)


def test_other_steps_and_other_campaigns_go_on(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world, steps=(AGAIN,))
        hear(world, "hello")
        mute(world, everywhere=True)
        await first_messages(world)
        await world.wait(3 * HOUR)
        assert sorted(one.target for one in world.sends()) == sorted([EVA, BEN] * 2)
        await process.stop()

    world.play(script)


def test_one_that_is_answered_here_and_muted_elsewhere_is_followed(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        hear(world, "hello")
        mute(world, everywhere=True)
        unmute(world)
        await first_messages(world)
        hear(world, "yes please")
        await world.wait(5 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    world.play(script)


def test_one_that_was_bidden_in_doubt_is_looked_at_again_when_that_is_settled(
    world: World,
) -> None:
    """It was bidden in the very moment in which they were muted, while the message was sent."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="20s..20s")
        world.campaign(targets=[Target(EVA)], follow_up=ON_REPLY)
        process = world.process()
        await world.until(lambda: world.counts().get("sending") == 1)
        hear(world, "I see that you are writing")
        assert [one.state for one in bidden(world)] == [DeliveryState.PLANNED]
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.mute(tx, number, now))
        await world.wait(4 * MINUTE)
        assert [(one.state, one.reason) for one in bidden(world)] == [
            (DeliveryState.SKIPPED, REASON)
        ]
        await process.stop()

    world.play(script)


@pytest.mark.parametrize("everywhere", [False, True])
def test_what_was_bidden_by_a_name_that_is_told_once_is_called_off(
    on_either: World, everywhere: bool
) -> None:
    """The campaign has their profile, their chat and what they write from are ids."""

    async def script(world: World) -> None:
        process = outreach(world, names=("eva", "ben"))
        await first_messages(world)
        account = world.account_now()
        world.write(lambda tx: tx.accounts.move(account.id, "pause"))
        hear(world, "yes", chat="chat:1", sender="ACoAAEva", also=("eva",))
        hear(world, "yes", chat="chat:2", sender="ACoAABen", also=("ben",))
        assert [one.state for one in bidden(world)] == [DeliveryState.READY] * 2
        mute(world, "chat:1", everywhere=everywhere)
        states = {one.target: (one.state, one.reason) for one in bidden(world)}
        assert states["eva"] == (DeliveryState.SKIPPED, REASON)
        assert states["ben"][0] is DeliveryState.READY
        await process.stop()

    on_either.play(script)
