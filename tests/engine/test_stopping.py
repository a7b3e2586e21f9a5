"""A graceful stop: what is under way settles, lanes are handed back, and it always ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Part
from paceline.engine.journal import InlineRunner
from paceline.engine.leases import LEASE_US
from tests.engine.doubles import Watcher, forever
from tests.engine.faults import LostStore, TrippedStore
from tests.engine.world import World
from tests.engine.worlds import Worlds

T = TypeVar("T")

THREE_PARTS = (Part("text", "one"), Part("text", "two"), Part("text", "three"))


def left_behind(world: World) -> tuple[int, int]:
    """Lanes that somebody owns, and processes that have not left."""

    def look(tx: Any) -> tuple[int, int]:
        owners = [tx.lanes.get(account.id).owner for account in tx.accounts.list()]
        return sum(owner is not None for owner in owners), len(tx.processes.list())

    return world.read(look)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_messages_under_way_settle_and_none_is_started_any_more(
    worlds: Worlds, concurrency: int
) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "60/min", "concurrency": concurrency}
        world.account(policy=policy, latency="20s")
        world.campaign(12)
        process = world.process()
        await world.until(lambda: len(world.calls()) >= concurrency, every_us=SECOND)
        stopped_at = world.clock.now()
        await process.stop()
        assert world.clock.now() - stopped_at <= 20 * SECOND
        assert not [effect for effect in world.calls() if effect.called_at > stopped_at]
        assert world.counts() == {"sent": concurrency, "ready": 12 - concurrency}
        assert left_behind(world) == (0, 0)
        assert not process.running
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        assert world.counts() == {"sent": 12}

    worlds.fresh().play(script)


def test_the_parts_of_a_started_message_are_finished_first(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "6/min", "part_gap": "2s"}, latency="3s")
        world.campaign(2, parts=THREE_PARTS)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 1)
        await process.stop()
        assert world.counts() == {"sent": 1, "ready": 1}
        assert len(world.sends()) == 3
        assert left_behind(world) == (0, 0)

    worlds.fresh().play(script)


def test_beyond_the_grace_a_call_is_dropped_and_looked_into_later(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10m"}, latency="8m")
        world.campaign(1)
        process = world.process(grace_us=30 * SECOND, poll_us=MINUTE)
        await world.until(lambda: world.counts() == {"sending": 1}, every_us=10 * SECOND)
        stopped_at = world.clock.now()
        await process.stop()
        assert world.clock.now() - stopped_at == 30 * SECOND
        assert world.counts() == {"sending": 1}
        assert left_behind(world) == (0, 0)
        second = world.process("two", poll_us=MINUTE)
        await world.until(lambda: world.state() == "finished", 2 * HOUR, MINUTE)
        await second.stop()
        assert world.counts() == {"sent": 1}

    worlds.fresh().play(script)


def test_beyond_the_grace_a_message_is_left_between_two_parts_and_continued(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min"}, finds=False)
        world.campaign(1, parts=THREE_PARTS)
        process = world.process(grace_us=30 * SECOND)
        await world.until(lambda: len(world.sends()) == 1)
        await world.wait(SECOND)
        await process.stop()
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        assert [effect.key.rsplit("-", 1)[1] for effect in world.sends()] == ["0", "1", "2"]
        assert world.counts() == {"sent": 1}

    worlds.fresh().play(script)


def test_a_stop_while_the_store_is_away_ends_with_the_grace(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="5s")
        world.campaign(5)
        store = LostStore(world.store, world.clock, 6, "before", HOUR)
        process = world.process(store=store, grace_us=40 * SECOND)
        await world.until(lambda: store.gone)
        stopped_at = world.clock.now()
        await process.stop()
        assert world.clock.now() - stopped_at <= 40 * SECOND + LEASE_US
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        assert world.counts() == {"sent": 5}

    worlds.fresh().play(script)


def test_an_outcome_that_came_while_the_store_was_away_is_told_if_it_comes_back_in_time(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="5s", finds=False)
        world.campaign(5)
        store = LostStore(world.store, world.clock, 6, "before", 30 * SECOND)
        process = world.process(store=store)
        await world.until(lambda: store.gone)
        await process.stop()
        counts = world.counts()
        assert counts == {"sent": len(world.sends()), "ready": 5 - len(world.sends())}
        assert left_behind(world) == (0, 0)

    worlds.fresh().play(script)


@pytest.mark.parametrize("calls", [0, 1, 4, 9])
def test_a_stop_while_the_store_hangs_does_not_hang(worlds: Worlds, calls: int) -> None:
    """Neither error nor answer: the thread that has the database simply never returns."""

    class Hanging(InlineRunner):
        def __init__(self) -> None:
            self.left = calls

        async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
            self.left -= 1
            if self.left < 0:
                await forever()
            return function()

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(5)
        process = world.process(runner=Hanging(), grace_us=20 * SECOND)
        await world.wait(2 * MINUTE)
        stopped_at = world.clock.now()
        await process.stop()
        assert world.clock.now() - stopped_at <= 20 * SECOND + LEASE_US
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 5}


@pytest.mark.parametrize("commit", range(1, 12))
def test_a_stop_at_any_commit_is_quick_and_leaves_nothing_behind(
    worlds: Worlds, commit: int
) -> None:
    """Also in the middle of taking a lane, which must not go on to send as if nothing were."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="200ms")
        world.campaign(30)
        stopped_at: list[int] = []

        def trip(number: int, moment: str) -> None:
            if number == commit and moment == "before":
                stopped_at.append(world.clock.now())
                process.supervisor.stop()

        process = world.process(store=TrippedStore(world.store, trip))
        await process.gone()
        assert world.clock.now() - stopped_at[0] <= SECOND
        assert left_behind(world) == (0, 0)
        assert set(world.counts()) <= {"sent", "ready"}
        late = [effect for effect in world.calls() if effect.called_at > stopped_at[0]]
        assert not late

    worlds.fresh().play(script)


def test_a_stop_before_anything_else_and_a_second_one_are_harmless(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2)
        process = world.process()
        process.supervisor.stop()
        process.supervisor.stop()
        await process.stop()
        assert world.counts() == {"ready": 2}
        assert left_behind(world)[0] == 0

    worlds.fresh().play(script)


def test_a_stop_hands_back_a_lane_that_waits_out_a_crash(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(5)
        watcher = Watcher()
        process = world.process(observer=watcher)
        await world.until(lambda: process.supervisor.kill("ann"), HOUR)
        await process.stop()
        assert left_behind(world) == (0, 0)
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()

    worlds.fresh().play(script)


def test_when_run_is_cancelled_nothing_runs_on(worlds: Worlds) -> None:
    """A second interrupt: no grace, as after a crash; but no lane goes on without a supervisor."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 3}, latency="2s")
        world.campaign(20)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 5)
        process._task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await process._task
        cancelled_at = world.clock.now()
        await world.wait(MINUTE)
        assert not [effect for effect in world.calls() if effect.at > cancelled_at]
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 20}
