"""What a restart must not forget: limits, gaps, pauses, holds, the day's counts, and uploads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from paceline.core import usage as usages
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Part
from paceline.core.usage import Usage
from paceline.engine.memory import take_snapshot
from tests.engine.faults import TrippedStore, Wire
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

ENDS = ["stop", "kill"]


async def end(process: Process, how: str) -> None:
    await (process.stop() if how == "stop" else process.kill())


def checkpoint(world: World) -> Usage:
    restored = world.read(lambda tx: tx.path.restore(world.account_now().id))
    assert restored is not None
    assert restored.checkpoint is not None
    return usages.decode(restored.checkpoint)


def called(world: World) -> list[Instant]:
    return [effect.called_at for effect in world.calls()]


def gaps(world: World) -> list[int]:
    return [later - earlier for earlier, later in pairwise(called(world))]


async def restart_until(
    world: World, how: str, done: Callable[[], bool], every_us: int, **options: Any
) -> None:
    """Run one process after the other, each for a while only, until something is so."""
    number = 0
    while not done():
        process = world.process(f"p{number}", **options)
        await world.wait(every_us)
        await end(process, how)
        number += 1
        assert number < 400


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize("how", ENDS)
def test_a_restart_never_grants_a_fresh_burst(worlds: Worlds, how: str) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min burst 3"}, latency="10ms")
        world.campaign(9)
        await restart_until(world, how, lambda: len(world.sends()) == 9, 20 * SECOND)
        times = called(world)
        assert times[2] - times[0] < SECOND, "the burst itself"
        for first in range(9):
            for last in range(first, 9):
                allowed = 3 + (times[last] - times[first]) // MINUTE
                assert last - first + 1 <= allowed
        # Nothing is wasted either: six more minutes for the six after the burst, and the time
        # that it takes to find out that a predecessor is dead.
        assert times[-1] - times[0] <= (6 * MINUTE if how == "stop" else 11 * MINUTE) + SECOND

    worlds.fresh().play(script)


@pytest.mark.parametrize("how", ENDS)
def test_a_gap_is_drawn_once_however_often_one_restarts(worlds: Worlds, how: str) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "5m..20m"}, latency="10ms")
        world.campaign(3)
        for count in (1, 2):
            await restart_until(
                world,
                how,
                lambda count=count: len(world.sends()) == count,
                40 * SECOND,  # type: ignore[misc]
            )
            drawn = checkpoint(world)
            assert drawn.last_at is not None
            for _ in range(3):
                process = world.process("again", poll_us=5 * SECOND)
                await world.wait(MINUTE)
                await end(process, how)
                assert checkpoint(world) == drawn
            process = world.process("last", poll_us=5 * SECOND)
            await world.until(
                lambda count=count: len(world.sends()) == count + 1,  # type: ignore[misc]
                HOUR,
                SECOND,
            )
            await process.stop()
            late_us = called(world)[count] - (drawn.last_at + drawn.gap_us)
            assert 0 <= late_us <= 20_000, "to the moment it takes to open the account"

    worlds.fresh().play(script)


@pytest.mark.parametrize("how", ENDS)
def test_the_place_in_a_batch_is_remembered(worlds: Worlds, how: str) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "10s", "batch": "3 then 5m"}, latency="10ms")
        world.campaign(7)
        process = world.process()
        for count in (2, 4, 5):
            await world.until(lambda count=count: len(world.sends()) == count)  # type: ignore[misc]
            await world.wait(SECOND)
            await end(process, how)
            process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        long = [number for number, gap in enumerate(gaps(world), start=1) if gap >= 5 * MINUTE]
        assert long == [3, 6]
        assert min(gaps(world)) >= 10 * SECOND

    worlds.fresh().play(script)


@pytest.mark.parametrize("how", ENDS)
def test_a_hold_after_a_throttle_and_its_slower_pace_are_remembered(
    worlds: Worlds, how: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="10ms", throttle_at=(3,), retry_after="5m")
        world.campaign(6)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 3)
        await world.wait(SECOND)
        await end(process, how)
        await restart_until(
            world, how, lambda: world.state() == "finished", 50 * SECOND, poll_us=5 * SECOND
        )
        found = gaps(world)
        assert found[2] >= 5 * MINUTE
        assert all(gap >= 1_400_000 for gap in found[3:]), "slower by half, and recovering"

    worlds.fresh().play(script)


@pytest.mark.parametrize("how", ENDS)
def test_the_days_count_is_remembered_and_a_refusal_gives_its_slot_back(
    worlds: Worlds, how: str
) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "60/min", "daily": {"message": 4}}
        world.account(policy=policy, latency="10ms", reject_at=(2,))
        world.campaign(8)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 2)
        await end(process, how)
        process = world.process()
        await world.until(lambda: len(world.sends()) == 4)
        await world.wait(5 * SECOND)
        await end(process, how)
        process = world.process()
        await world.wait(5 * MINUTE)
        await process.stop()
        assert (len(world.calls()), len(world.sends())) == (5, 4)
        assert world.account_now().state == "limit_reached"
        await world.wait(14 * HOUR + 40 * MINUTE)  # nobody runs until shortly before midnight
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.state() == "finished", HOUR, MINUTE)
        await process.stop()
        days = [effect.called_at // DAY for effect in world.sends()]
        assert len(set(days)) == 2

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 7, "failed": 1}


def test_a_takeover_counts_the_call_in_doubt_from_now_and_says_so_at_once(worlds: Worlds) -> None:
    """Whoever takes over after the one that took over finds it in the checkpoint."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min", "timeout": "10s"}, latency="2s", finds=False)
        world.campaign(2)

        def cut(call: int, moment: str) -> None:
            if moment == "during":
                first.die()

        wire = Wire(world.providers.get("sandbox"), cut)
        first = world.process(providers=wire.registry())
        await world.until(lambda: first.dead)
        await first.gone()
        second = world.process("two")
        await world.until(lambda: world.counts() == {"unknown": 1, "ready": 1})
        taken_at = world.clock.now()
        await second.kill()
        assert checkpoint(world).tat_at >= taken_at - SECOND + MINUTE
        third = world.process("three")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await third.stop()
        assert called(world)[1] >= taken_at - SECOND + MINUTE

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- uploads


def with_picture(world: World, count: int, *names: str, **settings: Any) -> str:
    policy = settings.pop("policy", {"rate": "60/min"})
    media = world.write(
        lambda tx: tx.media.put("a.png", "image/png", b"a picture", world.clock.now())
    )
    for name in names:
        world.account(name, policy=policy, **settings)
    world.campaign(count, on=names, parts=(Part("media", "look", media=media.id),))
    return media.id


def uploads(world: World) -> list[str]:
    return [effect.account for effect in world.effects.all() if effect.kind == "upload"]


@pytest.mark.parametrize("how", ENDS)
def test_a_file_is_uploaded_once_per_account_however_often_one_restarts(
    worlds: Worlds, how: str
) -> None:
    async def script(world: World) -> None:
        with_picture(world, 24, "ann", "bob")
        await restart_until(world, how, lambda: world.state() == "finished", 7 * SECOND)
        assert sorted(uploads(world)) == ["ann", "bob"]
        handles = {effect.part.handle for effect in world.sends()}
        assert len(handles) == 2

    worlds.fresh().play(script)


def test_an_upload_that_was_not_put_down_is_made_again_and_nothing_else(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        with_picture(world, 3, "ann")

        def trip(commit: int, moment: str) -> None:
            if uploads(world) and moment == "before" and not first.dead:
                first.die()
                raise OSError("the power is off")

        first = world.process(store=TrippedStore(world.store, trip))
        await world.until(lambda: first.dead)
        await first.gone()
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        assert uploads(world) == ["ann", "ann"]

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_handle_about_to_expire_is_replaced_in_time(worlds: Worlds, restarts: bool) -> None:
    async def script(world: World) -> None:
        with_picture(
            world, 8, "ann", policy={"spacing": "10m"}, handle_expires="30m", latency="10ms"
        )
        process = world.process(poll_us=30 * SECOND)
        while world.state() != "finished":
            await world.wait(7 * MINUTE)
            if restarts:
                await process.stop()
                process = world.process(poll_us=30 * SECOND)
        await process.stop()
        # Each is good for 25 minutes, which is three sends: 0, 10, 20 | 30, 40, 50 | 60, 70.
        assert len(uploads(world)) == 3
        used = [effect.part.handle for effect in world.sends()]
        assert [used.index(handle) for handle in used] == [0, 0, 0, 3, 3, 3, 6, 6]

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 8}


def test_the_pace_goes_on_from_the_call_though_only_its_intent_was_checkpointed(
    worlds: Worlds,
) -> None:
    """A slow commit, then the call, then the lane is lost: its outcome is told by somebody who may
    no longer write the usage. The next owner must not count from the intent."""

    async def script(world: World) -> None:
        world.account(policy={"spacing": "5m", "rate": "1/min"}, latency="10ms")
        world.campaign(2)
        process = world.process()
        await world.until(lambda: world.counts().get("sent") == 1)
        await process.stop()
        truth = checkpoint(world)
        assert truth.last_at is not None
        early = truth._replace(last_at=truth.last_at - 9 * SECOND, tat_at=truth.tat_at - 9 * SECOND)
        account_id = world.account_now().id
        world.write(lambda tx: tx.path._checkpoint({account_id: usages.to_json(early)}))  # type: ignore[attr-defined]
        snapshot = world.read(lambda tx: take_snapshot(tx, account_id, world.clock.now()))
        # The intent was made as long before the call as the checkpoint says.
        assert snapshot.usage().last_at == truth.last_at
        assert snapshot.usage().tat_at == truth.tat_at
        process = world.process("two")
        await world.until_finished()
        await process.stop()
        assert gaps(world)[0] >= 5 * MINUTE

    worlds.fresh().play(script)
