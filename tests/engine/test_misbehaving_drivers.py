"""Drivers that raise, hang, cannot be opened or do not close: none of it takes a lane down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paceline.core.errors import ProviderError
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Part
from paceline.providers.registry import Registry
from tests.engine.doubles import Double, Watcher, hanging, raising
from tests.engine.world import World
from tests.engine.worlds import Worlds

SANDBOX = "sandbox"


def double(world: World, **acts: Any) -> Double:
    return Double(world.providers.get(SANDBOX), **acts)


# ---------------------------------------------------------------------- drivers that raise


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a defect"),
        ProviderError("closed"),
        TimeoutError("its own"),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_driver_that_raises_leaves_a_doubt_and_crashes_nothing(
    worlds: Worlds, error: BaseException, concurrency: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": concurrency}, finds=False)
        world.campaign(4)
        watcher = Watcher()
        provider = double(world, send=raising(error, times=1))
        process = world.process(observer=watcher, providers=provider.registry())
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes
        assert world.counts() == {"unknown": 1, "sent": 3}

    worlds.fresh().play(script)


def test_a_driver_that_raises_when_asked_is_asked_again(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_at=(1,), timeout_latency="5s")
        world.campaign(2)
        watcher = Watcher()
        provider = double(world, find=raising(asyncio.CancelledError(), times=1))
        process = world.process(observer=watcher, providers=provider.registry())
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert provider.called["find"] == 2
        assert not watcher.crashes
        assert world.counts() == {"sent": 2}

    worlds.fresh().play(script)


def test_an_upload_that_raises_is_made_again_and_crashes_nothing(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        media = world.write(
            lambda tx: tx.media.put("a.png", "image/png", b"picture", world.clock.now())
        )
        world.account(policy={"rate": "60/min"})
        world.campaign(2, parts=(Part("media", "look", media=media.id),))
        watcher = Watcher()
        provider = double(world, upload=raising(ConnectionResetError("reset"), times=1))
        process = world.process(observer=watcher, providers=provider.registry())
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert provider.called["upload"] == 2
        assert not watcher.crashes

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 2}


@pytest.mark.parametrize(
    "act", [raising(OSError("gone")), hanging()], ids=["close raises", "close hangs"]
)
def test_a_driver_that_does_not_close_holds_up_nobody(worlds: Worlds, act: Any) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(2)
        watcher = Watcher()
        provider = double(world, close=act)
        process = world.process(observer=watcher, providers=provider.registry())
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        world.campaign(2, name="again")
        await world.until_finished("again", within_us=MINUTE)
        await process.stop()
        assert not watcher.crashes

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- accounts that do not open


def test_refused_credentials_suspend_the_account_with_the_reason(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(unauthorised=True)
        world.campaign(2)
        watcher = Watcher()
        process = world.process(observer=watcher)
        await world.until(lambda: world.account_now().state == "suspended", MINUTE)
        assert "refuses the credentials of ann" in world.account_now().state_reason
        await world.wait(5 * MINUTE)
        await process.stop()
        assert not watcher.crashes
        assert world.counts() == {"ready": 2}

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    ("act", "after_us"),
    [
        (raising(ProviderError("away"), times=3), 60 * SECOND),
        (raising(asyncio.CancelledError(), times=7), 140 * SECOND),
        (hanging(times=2), 100 * SECOND),
    ],
    ids=["it is away", "it gives up", "it does not answer"],
)
def test_an_account_that_cannot_be_opened_now_is_tried_again_later(
    worlds: Worlds, act: Any, after_us: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "30s"})
        world.campaign(2)
        watcher = Watcher()
        provider = double(world, open=act)
        process = world.process(observer=watcher, providers=provider.registry())
        began_at = world.clock.now()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes
        assert world.calls()[0].called_at - began_at >= after_us
        assert world.counts() == {"sent": 2}

    worlds.fresh().play(script)


def test_a_driver_with_a_defect_ends_in_a_suspension_that_names_it(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2)
        watcher = Watcher()
        provider = double(world, open=raising(RuntimeError("a defect")))
        process = world.process(observer=watcher, providers=provider.registry())
        await world.until(lambda: world.account_now().state == "suspended", MINUTE)
        assert watcher.crashes == {"ann": 5}
        reason = "Too many worker crashes (last: RuntimeError: a defect)"
        assert world.account_now().state_reason == reason
        await process.stop()

    worlds.fresh().play(script)


def test_a_driver_this_installation_does_not_have_suspends_its_accounts_and_nothing_else(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2)
        process = world.process(providers=Registry([]))
        await world.until(lambda: world.account_now().state == "suspended", MINUTE)
        assert "there is no provider 'sandbox'" in world.account_now().state_reason
        await world.wait(MINUTE)
        assert process.supervisor.healthy
        await process.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- calls that hang


def test_a_call_that_hangs_ends_at_the_timeout_and_holds_the_lane_no_longer(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "20s"}, finds=False)
        world.campaign(3)
        provider = double(world, send=hanging(times=1))
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert world.counts() == {"unknown": 1, "sent": 2}
        first, second = world.read(lambda tx: tx.deliveries.page())[:2]
        assert "no answer within 20 s" in first.reason
        (intent,) = (
            row
            for row in world.read(lambda tx: tx.ledger.of_delivery(first.id))
            if row.kind == "intent"
        )
        follower = next(e for e in world.calls() if e.target == second.target)
        assert 20 * SECOND <= follower.called_at - intent.at <= 21 * SECOND

    worlds.fresh().play(script)


def test_a_call_that_hangs_holds_up_no_call_beside_it(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 2, "timeout": "20s"}, finds=False)
        world.campaign(10)
        provider = double(world, send=hanging(times=1))
        process = world.process(providers=provider.registry())
        await world.until(lambda: len(world.sends()) == 9, within_us=15 * SECOND)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert world.counts() == {"unknown": 1, "sent": 9}

    worlds.fresh().play(script)
