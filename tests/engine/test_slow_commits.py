"""Commits that take their time: what was allowed when asked may be forbidden by then."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest

from paceline.core.instants import MINUTE, SECOND, parse_instant
from paceline.core.model import Part, Target
from tests.engine.world import World

T = TypeVar("T")


class SlowRunner:
    """A disk on which every group takes a while."""

    def __init__(self, world: World, takes_us: int) -> None:
        self._world = world
        self._takes_us = takes_us

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        answer = function()
        await self._world.wait(self._takes_us)
        return answer

    def close(self) -> None:
        return


def test_effects_are_as_far_apart_as_the_rate_says_however_slow_the_disk(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 3}, latency="50ms")
        world.campaign(20)
        process = world.process()
        process.journal._writer = SlowRunner(world, 300_000)
        await world.until(lambda: len(world.calls()) == 10)
        process.journal._writer = SlowRunner(world, 0)  # and then the disk recovers
        await world.until_finished()
        await process.stop()

    world.play(script)
    called = [effect.called_at for effect in world.calls()]
    assert min(b - a for a, b in pairwise(called)) >= SECOND


@pytest.mark.parametrize("before_s", range(1, 8))
def test_a_slot_of_yesterday_is_not_used_today(tmp_path: Path, before_s: int) -> None:
    """Whichever commit it is that midnight falls into."""
    midnight = parse_instant("2026-03-03T00:00:00Z")
    start_at = midnight - before_s * SECOND + SECOND // 2
    world = World(f"sqlite:///{tmp_path}/world.db", start_at=start_at)

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 3}})
        world.campaign(8)
        process = world.process()
        process.journal._writer = SlowRunner(world, SECOND)
        await world.wait(5 * MINUTE)
        process.journal._writer = SlowRunner(world, 0)
        await process.stop()

    world.play(script)
    monday = [effect for effect in world.calls() if effect.called_at < midnight]
    assert len(monday) <= 3
    assert len(world.calls()) - len(monday) == 3


def test_closing_time_is_looked_at_once_more_before_the_call(tmp_path: Path) -> None:
    closing = parse_instant("2026-03-02T18:00:00Z")
    world = World(f"sqlite:///{tmp_path}/world.db", start_at=closing - 5 * SECOND)

    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-18:00 UTC"})
        world.campaign(20)
        process = world.process()
        process.journal._writer = SlowRunner(world, 900_000)
        await world.wait(5 * MINUTE)
        process.journal._writer = SlowRunner(world, 0)
        await process.stop()

    world.play(script)
    assert world.calls()
    assert all(effect.called_at < closing for effect in world.calls())


def test_what_expires_during_the_upload_is_not_sent(world: World) -> None:
    async def script(world: World) -> None:
        now = world.clock.now()
        media = world.write(lambda tx: tx.media.put("a.png", "image/png", b"x", now))
        world.account(policy={"rate": "60/min"}, upload_latency="20s")
        part = Part("media", "look", media=media.id)
        world.campaign(1, parts=(part,), expire_after_us=10 * SECOND)
        process = world.process()
        await world.until_finished()
        await process.stop()

    world.play(script)
    assert not world.calls()
    assert world.counts_at_end == {"skipped": 1}


def test_the_recipients_closing_time_is_looked_at_once_more_too(tmp_path: Path) -> None:
    closing = parse_instant("2026-03-02T18:00:00Z")
    world = World(f"sqlite:///{tmp_path}/world.db", start_at=closing - 5 * SECOND)

    async def script(world: World) -> None:
        world.account()
        targets = [Target(f"t{number}", {"zone": "UTC"}) for number in range(20)]
        world.campaign(targets=targets, recipient_hours="Mon-Fri 09:00-18:00")
        process = world.process()
        process.journal._writer = SlowRunner(world, 900_000)
        await world.wait(5 * MINUTE)
        process.journal._writer = SlowRunner(world, 0)
        await process.stop()

    world.play(script)
    assert world.calls()
    assert all(effect.called_at < closing for effect in world.calls())


def test_calls_that_meet_one_throttle_together_are_one_setback(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"concurrency": 3}, throttle_at=[1, 2, 3], retry_after="none", latency="1s"
        )
        world.campaign(4)
        process = world.process()
        await world.until_finished()
        await process.stop()

    world.play(script)
    called = [effect.called_at for effect in world.calls()]
    # All three are held back by the one minute of the first, not by one, two and four minutes.
    assert MINUTE <= called[3] - called[2] <= MINUTE + 5 * SECOND
