"""A clock that is set while a lane is in the middle of something: it is followed once, and what may
go is asked by one clock alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.instants import SECOND
from paceline.engine import lane
from paceline.engine.chooser import Chooser
from paceline.engine.outbox import Outbox
from paceline.engine.sender import Sender
from tests.engine.test_clock_steps import SetClock
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

GAP_US = 90 * SECOND
BACK_US = 200 * SECOND


async def _first_of_two(world: World) -> tuple[SetClock, Process]:
    """One message is sent, and the other waits for its gap alone."""
    clock = SetClock(world.clock)
    world.account(policy={"spacing": "90s"})
    world.campaign(2)
    await world.wait(2 * BACK_US)  # both are due by any clock
    process = world.process(clock=clock)
    await world.until(lambda: len(world.sends()) == 1)
    return clock, process


def test_a_gap_is_not_cut_short_by_a_clock_that_is_set_back_while_a_lane_reads_anew(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a simulated world: the last call was moved to the new clock when its instant was
    seen to lie in the future, and moved once more when the step was noticed."""

    async def script(world: World) -> None:
        clock, process = await _first_of_two(world)
        first_at = world.clock.now()
        hand_over = Outbox.hand_over

        async def set_back(self: Outbox) -> None:
            clock.off_us = -BACK_US
            await hand_over(self)

        monkeypatch.setattr(Outbox, "hand_over", set_back)
        await world.wait(10 * SECOND)
        (running,) = process.supervisor._running.values()
        running.lane.touch()
        await world.until(lambda: len(world.sends()) == 2, within_us=5 * GAP_US)
        assert world.clock.now() - first_at >= GAP_US
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize("off_us", [-BACK_US, BACK_US])
def test_what_was_read_by_another_clock_is_read_once_more(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, off_us: int
) -> None:
    """A call of the lane that begins or ends while it reads anew follows the clock."""

    async def script(world: World) -> None:
        clock, process = await _first_of_two(world)
        first_at = world.clock.now()
        await world.wait(10 * SECOND)
        look_over = lane.Lane._look_over

        async def looked(self: lane.Lane, sender: Sender) -> Any:
            seen = await look_over(self, sender)
            if not clock.off_us:
                clock.off_us = off_us
                sender.follow_the_clock()
            return seen

        monkeypatch.setattr(lane.Lane, "_look_over", looked)
        (running,) = process.supervisor._running.values()
        running.lane.touch()
        await world.until(lambda: len(world.sends()) == 2, within_us=5 * GAP_US)
        assert GAP_US <= world.clock.now() - first_at <= GAP_US + 10 * SECOND
        await process.stop()

    worlds.fresh().play(script)


def _after_reading_anew(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    reopen = lane.Lane._reopen_account

    async def reopened(self: lane.Lane) -> None:
        await reopen(self)
        then()

    monkeypatch.setattr(lane.Lane, "_reopen_account", reopened)


def _after_reading_a_page(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """And another call of the same lane has looked at the clock meanwhile."""
    serve = Chooser._serve

    async def served(self: Chooser, *args: Any, **more: Any) -> Any:
        then()
        self._sender.follow_the_clock()
        return await serve(self, *args, **more)

    monkeypatch.setattr(Chooser, "_serve", served)


def _after_a_message_is_prepared(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """A file that had to be uploaded, say."""
    prepare = Sender._prepare

    async def prepared(self: Sender, *args: Any) -> Any:
        message = await prepare(self, *args)
        then()
        return message

    monkeypatch.setattr(Sender, "_prepare", prepared)


@pytest.mark.parametrize("off_us", [-BACK_US, BACK_US])
@pytest.mark.parametrize(
    "midway", [_after_reading_anew, _after_reading_a_page, _after_a_message_is_prepared]
)
def test_a_gap_is_kept_by_a_clock_that_is_right_again_midway(
    worlds: Worlds,
    monkeypatch: pytest.MonkeyPatch,
    midway: Callable[[pytest.MonkeyPatch, Callable[[], None]], None],
    off_us: int,
) -> None:
    """Found by a simulated world: set back by hours, and right again while the lane was reading
    anew, so that the last call seemed to lie hours ago."""

    async def script(world: World) -> None:
        clock, process = await _first_of_two(world)
        first_at = world.clock.now()
        await world.wait(10 * SECOND)
        clock.off_us = off_us
        (running,) = process.supervisor._running.values()
        running.lane.touch()
        await world.wait(SECOND)
        midway(monkeypatch, lambda: setattr(clock, "off_us", 0))
        running.lane.touch()
        await world.until(lambda: len(world.sends()) == 2, within_us=5 * GAP_US)
        assert GAP_US <= world.clock.now() - first_at <= GAP_US + 10 * SECOND
        await process.stop()

    worlds.fresh().play(script)
