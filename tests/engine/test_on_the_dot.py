"""The intent is written ahead of the account's pace, and the call is made on the dot.

Where commits take time, a lane that began to write when the call may be made would make each call
late by one commit. So it begins earlier by what commits have taken so far; but never earlier than a
day or a window begins, and the call itself is never early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.hours import Hours
from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND, Instant, parse_instant
from paceline.engine.lead import LONGEST_GUARD_US, Lead
from tests.engine.scenes import Begins, called, gaps, intents, outcomes
from tests.engine.test_slow_commits import SlowRunner
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

COMMIT_US = 40 * MILLISECOND
LEARNING = 30
"""After so many messages the lane knows how long a commit takes."""

PACES: list[dict[str, Any]] = [
    {"rate": "60/min"},
    {"spacing": "1s"},
    {"rate": "60/min", "concurrency": 3},
]
OPENING: Instant = parse_instant("2026-03-03T09:00:00Z")
MIDNIGHT: Instant = parse_instant("2026-03-03T00:00:00Z")


def pace_id(policy: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in policy.items())


def slow_process(world: World, takes_us: int = COMMIT_US) -> Process:
    process = world.process()
    process.journal._writer = SlowRunner(world, takes_us)
    return process


async def stop(world: World, process: Process) -> None:
    process.journal._writer = SlowRunner(world, 0)
    await process.stop()


@pytest.mark.parametrize("policy", PACES, ids=pace_id)
def test_slow_commits_do_not_cost_an_account_its_pace(
    worlds: Worlds, policy: dict[str, Any]
) -> None:
    async def script(world: World) -> None:
        world.account(policy=policy, latency="50ms")
        world.campaign(LEARNING + 51)
        process = slow_process(world)
        await world.until(lambda: world.counts() == {"sent": LEARNING + 51}, 3 * MINUTE, SECOND)
        await stop(world, process)
        found = gaps(called(world)[LEARNING:])
        assert len(found) == 50
        assert 0.99 * sum(found) <= 50 * SECOND, "at least 99 % of its pace"
        assert min(found) >= SECOND, "and never more than all of it"
        assert max(found) <= SECOND + 2 * COMMIT_US

    worlds.fresh().play(script)


@pytest.mark.parametrize("policy", PACES, ids=pace_id)
def test_no_call_is_early_though_its_intent_was_stored_sooner_than_usual(
    worlds: Worlds, policy: dict[str, Any]
) -> None:
    """The disk has been slow for a while, and from one moment on it is quick."""

    async def script(world: World) -> None:
        world.account(policy=policy, latency="50ms")
        world.campaign(LEARNING + 10)
        process = slow_process(world)
        await world.until(lambda: len(world.calls()) == LEARNING, MINUTE)
        process.journal._writer = SlowRunner(world, 0)
        quick_at = world.clock.now()
        await world.until_finished(within_us=MINUTE)
        await process.stop()
        assert min(gaps(called(world))) >= SECOND
        quick = [row for row in outcomes(world) if row.intent_at > quick_at]
        waited = [row.started_at - row.intent_at for row in quick if row.started_at is not None]
        assert max(waited) > COMMIT_US // 2, "the intent was there long before its call"
        dot_us = SECOND + LONGEST_GUARD_US + MILLISECOND
        assert max(gaps(called(world)[LEARNING:])) <= dot_us, "but the call was on the dot"

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- days and windows


def closed(world: World) -> None:
    world.account(policy={"hours": "Mon-Fri 09:00-18:00 UTC"})
    world.campaign(3)


def out_of_window(world: World) -> None:
    world.account()
    world.campaign(3, window=Hours.parse("09:00-12:00 UTC"))


def used_up(world: World) -> None:
    world.account(policy={"daily": {"message": 2}})
    world.campaign(5)


@pytest.mark.parametrize(
    ("scene", "opening_at"),
    [(closed, OPENING), (out_of_window, OPENING), (used_up, MIDNIGHT)],
    ids=["hours", "window", "day"],
)
def test_no_intent_is_written_ahead_of_a_day_or_a_window(
    world_at: Begins, scene: Callable[[World], None], opening_at: Instant
) -> None:
    """Not even if the lane looks up a moment before, for whatever reason."""

    async def script(world: World) -> None:
        scene(world)
        world.account("bob", policy={"rate": "60/min"})
        world.campaign(90, name="teaching", on=("bob",))
        process = slow_process(world)
        await world.clock.sleep_until(opening_at - 2 * COMMIT_US)
        before = len(intents(world))
        assert process.supervisor._context.lead.us > COMMIT_US - MILLISECOND
        while world.clock.now() < opening_at:
            await world.wait(5 * MILLISECOND)
            process.supervisor._running[world.account_now().id].lane.touch()
        await world.wait(10 * SECOND)
        await stop(world, process)
        first, *_ = later = intents(world)[before:]
        assert opening_at <= first.at <= opening_at + 2 * COMMIT_US
        assert len(later) == len(outcomes(world)) - before
        assert all(row.outcome == "accepted" for row in outcomes(world)), "no slot was misused"

    world_at(opening_at - 40 * SECOND).play(script)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is learned, intents are given a tenth of a second."""
    monkeypatch.setattr(Lead, "learn", lambda self, took_us: setattr(self, "us", 100 * MILLISECOND))


@pytest.mark.parametrize(
    "policy",
    [
        {"daily": {"message": 1}},
        {"daily": {"message": 5}},
        {"weekly": {"message": 5}},
        {"warmup": "1 +100%/day to 9"},
    ],
    ids=["used up", "not used up", "weekly", "warm-up"],
)
@pytest.mark.parametrize("after_ms", [0, 1, 40, 99, 101])
def test_a_gap_that_ends_just_after_midnight_is_counted_on_the_new_day(
    slow: None, world_at: Begins, policy: dict[str, Any], after_ms: int
) -> None:
    """The pacer names the gate that opens last, and the day opens before it."""

    async def script(world: World) -> None:
        world.account(policy={"spacing": "10m", **policy}, latency="0s")
        world.campaign(2)
        process = world.process()
        await world.until(lambda: len(world.sends()) == 2, within_us=2 * HOUR)
        await process.stop()
        assert [row.outcome for row in outcomes(world)] == ["accepted"] * 2, "none was in vain"
        first, second = called(world)
        assert second - first <= 10 * MINUTE + LONGEST_GUARD_US + MILLISECOND
        assert intents(world)[1].at >= MIDNIGHT

    world_at(MIDNIGHT - 10 * MINUTE + after_ms * MILLISECOND).play(script)


def test_nothing_is_written_ahead_for_what_is_over_before_its_gap(
    slow: None, worlds: Worlds
) -> None:
    """It is looked at when its time is over, which is no opening; and whatever was written ahead
    would begin the gap anew."""

    async def script(world: World) -> None:
        world.account(policy={"spacing": "10m"}, latency="0s")
        world.campaign(3, at_close="skip", window=Hours.parse("09:00-09:15 UTC"))
        process = world.process()
        await world.wait(16 * MINUTE)
        assert world.counts() == {"sent": 2, "skipped": 1}
        world.campaign(1, name="summer")
        await world.until_finished("summer", within_us=HOUR)
        await process.stop()
        assert [row.outcome for row in outcomes(world)] == ["accepted"] * 3, "none was in vain"
        assert gaps(called(world))[-1] <= 10 * MINUTE + SECOND

    worlds.fresh().play(script)
