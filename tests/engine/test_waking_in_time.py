"""A lane that waits for what is not due yet sleeps until then, however near that is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND, Instant
from paceline.engine import lane
from paceline.engine.lead import LONGEST_GUARD_US, Lead
from paceline.engine.pacing import HeadStart
from tests.engine.scenes import called
from tests.engine.world import World
from tests.engine.worlds import Worlds

T = TypeVar("T")

AT_ONCE = 50
"""Steps that a lane may take in one instant: far more than it ever needs."""


def most_in_a_millisecond(steps: list[Instant]) -> int:
    return max(bisect_left(steps, at + MILLISECOND) - n for n, at in enumerate(steps))


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Instant]]:
    """When each step was taken. A lane that steps and steps while time stands still is a failure,
    and lets time go on, or the test would never end."""
    steps: list[Instant] = []
    stood_still: set[Instant] = set()
    step = lane.Lane._step

    async def noted(self: lane.Lane, sender: Any) -> Any:
        steps.append(now := self._clock.now())
        if steps[-AT_ONCE:] == [now] * AT_ONCE:
            stood_still.add(now)
            await self._clock.sleep(MILLISECOND)
        return await step(self, sender)

    monkeypatch.setattr(lane.Lane, "_step", noted)
    yield steps
    assert not stood_still


class UnevenDisk:
    """Commits take 2 ms, and every third one 20 ms: intents are written ahead as if all did."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._commits = 0

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        answer = function()
        self._commits += 1
        await self._world.clock.sleep((2 if self._commits % 3 else 20) * MILLISECOND)
        return answer

    def close(self) -> None:
        return


def postpone(world: World, due: list[Instant]) -> None:
    account_id, now = world.account_now().id, world.clock.now()
    waiting = world.read(lambda tx: tx.path.due(account_id, 1, now, len(due)))
    for delivery, due_at in zip(waiting, due, strict=True):
        number = delivery.id
        world.write(lambda tx, n=number, at=due_at: tx.deliveries.postpone(n, at, ""))


def test_messages_that_fall_due_just_before_their_gap_is_over(
    worlds: Worlds, stepped: list[Instant]
) -> None:
    """A gap that ends a little after the next one falls due, by less than intents are written
    ahead: as it comes about where they were planned as far apart as the gap, after a pause."""

    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        world.campaign(30)
        start_at = world.clock.now() + 30 * SECOND
        postpone(world, [start_at + n * MINUTE + n // 10 * 30 * SECOND for n in range(30)])
        process = world.process()
        process.journal._writer = UnevenDisk(world)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert world.counts() == {"sent": 30}

    worlds.fresh().play(script)
    assert most_in_a_millisecond(stepped) < AT_ONCE


@pytest.mark.parametrize("before_ms", [1, 30, 99, 300])
def test_nobody_is_woken_ahead_of_what_is_due(
    worlds: Worlds, stepped: list[Instant], monkeypatch: pytest.MonkeyPatch, before_ms: int
) -> None:
    """Wherever it lies in the head start that an intent is given; nor when it falls due, if its gap
    is over later than that."""
    lead_us = 100 * MILLISECOND
    monkeypatch.setattr(Lead, "us", property(lambda _: lead_us, lambda _, us: None))
    opens: list[Instant] = []

    async def script(world: World) -> None:
        world.account(policy={"spacing": "30s"})
        world.campaign(2)
        start_at = world.clock.now()
        due_at = opens[0] - before_ms * MILLISECOND if opens else start_at + MINUTE
        postpone(world, [start_at, due_at])
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert world.counts() == {"sent": 2}
        opens.append(called(world)[0] + 30 * SECOND + LONGEST_GUARD_US)

    # Once to see when the gap is over, and once more with a message that falls due before that.
    for _ in range(2):
        stepped.clear()
        worlds.fresh().play(script)
    opens_at, again_at = opens
    assert opens_at == again_at
    wakes_at = opens_at - min(before_ms * MILLISECOND, lead_us)
    idle = [at for at in stepped if opens_at - 20 * SECOND < at < wakes_at]
    assert not idle, "nothing could be done then"
    assert any(wakes_at <= at <= wakes_at + MILLISECOND for at in stepped)


def test_an_instant_that_is_past_is_not_taken_for_something_done(
    worlds: Worlds, stepped: list[Instant], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a lane ever reckon wrongly, it looks again in a moment, and others get their turn."""
    monkeypatch.setattr(HeadStart, "wake_for", lambda *_: 1)

    async def script(world: World) -> None:
        world.account(policy={"spacing": "30s"})
        world.campaign(2)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 1)
        await world.clock.sleep(100 * MILLISECOND)
        await process.stop()

    worlds.fresh().play(script)
    assert len(stepped) > AT_ONCE, "it had reason to look again"
    assert most_in_a_millisecond(stepped) < AT_ONCE // 5
