"""Drivers that neither answer nor end when they are called off: no lane waits for them for ever."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest

from paceline.core.errors import ProviderError
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Part
from paceline.engine import drivers
from paceline.engine.drivers import CLEAN_UP_US, within_time
from paceline.sim.loop import run_virtual
from tests.engine.doubles import Act, Double, Watcher, forever, raising
from tests.engine.world import World
from tests.engine.worlds import Worlds


def clinging(times: int = 1) -> Act:
    """Never answers, and when it is told to end says goodbye over a dead connection."""
    left = times

    async def act(real: Act, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            return await real(*arguments)
        try:
            await forever()
        finally:
            await forever()

    return act


def double(world: World, **acts: Act) -> Double:
    return Double(world.providers.get("sandbox"), **acts)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_send_that_does_not_end_leaves_a_doubt_and_the_lane_goes_on(
    worlds: Worlds, concurrency: int
) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "60/min", "concurrency": concurrency, "timeout": "10s"}
        world.account(policy=policy, finds=False)
        world.campaign(20)
        watcher = Watcher()
        provider = double(world, send=clinging(3))
        process = world.process(providers=provider.registry(), observer=watcher)
        await world.until(lambda: world.counts().get("unknown") == 3, 2 * MINUTE)
        assert len(drivers._left_behind) == 3, "kept, so that nothing vanishes half-way"
        await world.until(lambda: world.counts().get("sent") == 17, 5 * MINUTE)
        assert not watcher.crashes
        await process.stop()
        await world.wait(SECOND)
        assert not drivers._left_behind, "the end of the lane is the end of its calls"

    worlds.fresh().play(script)


def test_an_upload_that_does_not_end_is_made_again(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        media = world.write(lambda tx: tx.media.put("a.png", "image/png", b"x", 1))
        world.account(policy={"rate": "60/min", "timeout": "10s"})
        world.campaign(2, parts=(Part("media", "look", media=media.id),))
        watcher = Watcher()
        provider = double(world, upload=clinging())
        process = world.process(providers=provider.registry(), observer=watcher)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes, "nobody had to restart the lane"

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 2}


@pytest.mark.parametrize("act", ["open", "find", "close"])
def test_whatever_else_does_not_end_does_not_hold_the_lane(worlds: Worlds, act: str) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10s"}, lost_at=(1,))
        world.campaign(3)
        watcher = Watcher()
        provider = double(world, **{act: clinging()})
        process = world.process(providers=provider.registry(), observer=watcher)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        began_at = world.clock.now()
        await process.stop()
        assert world.clock.now() - began_at < 20 * SECOND
        assert not watcher.crashes

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_lane_in_the_middle_of_such_a_call_can_be_killed(
    worlds: Worlds, concurrency: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": concurrency, "timeout": "10m"})
        world.campaign(3)
        provider = double(world, send=clinging())
        process = world.process(providers=provider.registry())
        await world.until(lambda: provider.called["send"] == 1)
        assert process.supervisor.kill("ann")
        await world.until(lambda: not process.supervisor._running, MINUTE)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


# ---------------------------------------------------------------------- logins that come too late


def reluctant_login(world: World, after_us: int) -> Act:
    """The first login does not hear that it was called off, and succeeds in the end."""
    first = True

    async def act(real: Act, *arguments: Any) -> Any:
        nonlocal first
        ends_at = world.clock.now() + (after_us if first else 0)
        first = False
        while world.clock.now() < ends_at:
            with suppress(asyncio.CancelledError):
                await world.clock.sleep_until(ends_at)
        return await real(*arguments)

    return act


@pytest.mark.parametrize("after_us", [12 * SECOND, 5 * MINUTE], ids=["tidying up", "left behind"])
@pytest.mark.parametrize("closes", ["at once", "never", "with an error"])
def test_an_account_that_opens_when_nobody_waits_any_more_is_closed(
    worlds: Worlds, closes: str, after_us: int
) -> None:
    act = {"never": clinging(10), "with an error": raising(OSError("gone"))}.get(closes)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10s"})
        watcher = Watcher()
        acts = {"open": reluctant_login(world, after_us)} | ({"close": act} if act else {})
        provider = double(world, **acts)
        world.campaign(2)
        process = world.process(providers=provider.registry(), observer=watcher)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await world.wait(10 * MINUTE)
        assert (provider.called["open"], provider.called["close"]) == (2, 2)
        assert not watcher.crashes
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 2}


# ---------------------------------------------------------------------- the bound itself


def test_an_answer_in_time_is_passed_on_and_so_is_an_error() -> None:
    async def answer() -> str:
        await asyncio.sleep(9)
        return "yes"

    async def fail() -> str:
        raise ValueError("no")

    async def script() -> None:
        assert await within_time(answer(), 10 * SECOND) == "yes"
        with pytest.raises(ValueError, match="no"):
            await within_time(fail(), 10 * SECOND)

    run_virtual(script(), start_at=0)


def test_a_call_that_ends_when_told_to_is_late_at_its_limit() -> None:
    async def script() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TimeoutError):
            await within_time(forever(), 10 * SECOND)
        assert loop.time() - began == pytest.approx(10)

    run_virtual(script(), start_at=0)


def test_a_call_that_does_not_end_gets_a_few_seconds_and_is_told_of() -> None:
    async def script() -> None:
        loop, late = asyncio.get_running_loop(), list[asyncio.Future[Any]]()
        began = loop.time()
        with pytest.raises(TimeoutError):
            await within_time(clinging()(forever), 10 * SECOND, late.append)
        assert loop.time() - began == pytest.approx(10 + CLEAN_UP_US / SECOND)
        (left,) = late
        left.cancel()
        await asyncio.sleep(1)
        assert left.done() and not drivers._left_behind

    run_virtual(script(), start_at=0)


def test_an_answer_given_while_tidying_up_is_an_answer() -> None:
    async def reluctant() -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "sent after all"

    async def script() -> None:
        assert await within_time(reluctant(), 10 * SECOND) == "sent after all"

    run_virtual(script(), start_at=0)


def test_a_driver_that_breaks_off_its_own_call_is_told_from_a_late_one() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    async def script() -> None:
        with pytest.raises(ProviderError, match="broke off its own call"):
            await within_time(give_up(), 10 * SECOND)

    run_virtual(script(), start_at=0)


def test_whoever_is_cancelled_while_waiting_takes_the_call_along() -> None:
    ended = []

    async def call() -> None:
        try:
            await forever()
        finally:
            ended.append(True)

    async def script() -> None:
        waiting = asyncio.ensure_future(within_time(call(), HOUR))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended

    run_virtual(script(), start_at=0)


def test_an_error_in_the_very_moment_of_a_cancellation_is_not_lost() -> None:
    unseen: list[dict[str, Any]] = []

    async def script() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: unseen.append(about))
        answer: asyncio.Future[str] = loop.create_future()

        async def call() -> str:
            return await answer

        waiting = asyncio.ensure_future(within_time(call(), HOUR))
        await asyncio.sleep(1)
        answer.set_exception(ValueError("the driver has a defect"))
        await asyncio.sleep(0)  # The call has failed, and whoever waits for it has not heard yet.
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run_virtual(script(), start_at=0)
    gc.collect()
    assert unseen == []
