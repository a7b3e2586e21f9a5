"""The time of arrival of campaigns that are too large to be laid out whenever somebody asks."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Content, Part, Step
from paceline.engine import arrival, launching
from paceline.engine.arrival import Eta
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.campaigns import find
from tests.engine.scenes import change, sql
from tests.engine.world import World

AGAIN = Content((Part("text", "and again"),))
DESK = {"spacing": "5m..20m", "hours": "Mon-Fri 09:00-18:00 UTC", "daily": {"message": 20}}
NAMES = ("ann", "bob", "cyd")


def look(world: World, name: str = "spring") -> Eta:
    found = world.read(lambda tx: arrival.eta(tx, find(tx, name), world.clock.now()))
    assert found is not None
    return found


def both(world: World, patch: pytest.MonkeyPatch, near: int, name: str = "spring") -> list[Eta]:
    """Every message laid out, and only so many."""
    patch.setattr(arrival, "NEAR", 1_000_000)
    exactly = look(world, name)
    assert exactly.going_by is None
    patch.setattr(arrival, "NEAR", near)
    return [exactly, look(world, name)]


def launch(world: World, count: int, name: str = "spring", **spec: Any) -> None:
    world.campaign(count, name=name, launch=False, **spec)
    launching.launch(world.store, name, world.clock.now(), world.providers)


def assert_alike(world: World, exactly: Eta, about: Eta, share: float = 0.02) -> None:
    assert exactly.finish_at is not None and about.finish_at is not None
    lasts_us = exactly.finish_at - world.clock.now()
    assert abs(about.finish_at - exactly.finish_at) <= share * lasts_us, (
        lasts_us / DAY,
        (about.finish_at - world.clock.now()) / DAY,
    )
    assert about.left == exactly.left and about.going_by is not None
    assert about.going_by < exactly.left / 3
    assert (about.next_at, about.account, about.waits_for) == (
        exactly.next_at,
        exactly.account,
        exactly.waits_for,
    )


async def on_time(world: World) -> None:
    launch(world, 900, on=NAMES)


async def nobody_was_there_for_three_days(world: World) -> None:
    launch(world, 900, on=NAMES)
    await world.wait(3 * DAY)


async def a_lower_limit(world: World) -> None:
    launch(world, 900, on=NAMES)
    for name in NAMES:
        change(world, name, overrides={"daily": {"message": 11}})


async def a_pool(world: World) -> None:
    launch(world, 900, on=NAMES, assignment="pooled")


async def another_campaign_comes_first(world: World) -> None:
    launch(world, 500, on=NAMES)
    world.campaign(120, name="urgent", on=("bob",), priority=9)


async def follow_ups(world: World) -> None:
    launch(world, 400, on=NAMES, steps=(Step(2 * DAY, AGAIN), Step(3 * DAY, AGAIN)))


async def spread_over_days(world: World) -> None:
    launch(world, 600, on=NAMES, spread_days=30)


STORIES = [
    (on_time, 0.02),
    (nobody_was_there_for_three_days, 0.1),
    (a_lower_limit, 0.1),
    (a_pool, 0.02),
    (another_campaign_comes_first, 0.05),
    (spread_over_days, 0.02),
]


@pytest.mark.parametrize(("story", "share"), STORIES, ids=[s.__name__ for s, _ in STORIES])
def test_the_next_ones_tell_when_all_are_done(
    world: World, monkeypatch: pytest.MonkeyPatch, story: Callable[[World], Any], share: float
) -> None:
    async def script(world: World) -> None:
        for name in NAMES:
            world.account(name, policy=DESK)
        await story(world)
        exactly, about = both(world, monkeypatch, near=180)
        assert_alike(world, exactly, about, share)

    world.play(script)


def test_follow_ups_come_after_the_last_of_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        for name in NAMES:
            world.account(name, policy=DESK | {"daily": {"message": 200}})
        await follow_ups(world)
        exactly, about = both(world, monkeypatch, near=90)
        assert exactly.finish_at is not None and about.finish_at is not None
        assert about.left == exactly.left == 1_200
        lasts_us = exactly.finish_at - world.clock.now()
        assert abs(about.finish_at - exactly.finish_at) <= 0.2 * lasts_us
        assert about.finish_at > world.clock.now() + 8 * DAY

    world.play(script)


def test_what_follows_is_reckoned_from_when_the_one_before_was_sent(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3, steps=(Step(HOUR, AGAIN),))
        process = world.process()
        await world.until(lambda: world.counts().get("sent") == 3)
        await process.stop()
        assert world.counts() == {"sent": 3, "planned": 3}, "nobody has released them yet"
        sent = [effect.at for effect in world.sends()]
        await world.wait(40 * MINUTE)
        found = look(world)
        assert found.left == 3 and found.next_at is not None and found.finish_at is not None
        assert abs(found.next_at - (sent[0] + HOUR)) <= SECOND
        assert abs(found.finish_at - (sent[2] + HOUR)) <= SECOND

    world.play(script)


def test_what_cannot_go_is_counted_beyond_the_next_ones_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        for name in NAMES:
            world.account(name, policy=DESK)
        launch(world, 600, on=NAMES)
        now = world.clock.now()
        world.write(lambda tx: accounts.pause(tx, "bob", now, "on holiday"))
        exactly, about = both(world, monkeypatch, near=120)
        assert (about.stuck, about.stuck_why) == (200, "account is paused: on holiday")
        assert exactly.stuck == 200
        assert_alike(world, exactly, about)
        for name in ("ann", "cyd"):
            world.write(lambda tx, name=name: accounts.pause(tx, name, now, "as well"))
        exactly, about = both(world, monkeypatch, near=120)
        assert about.finish_at is None and about.stuck == exactly.stuck == 600

    world.play(script)


def test_a_campaign_that_begins_after_all_that_is_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy=DESK)
        world.account("bob", policy=DESK)
        launch(world, 300, name="before", on=("ann", "bob"))
        later_at: Instant = world.clock.now() + 21 * DAY
        launch(world, 60, on=("ann", "bob"), start_at=later_at)
        exactly, about = both(world, monkeypatch, near=50)
        assert about.next_at == exactly.next_at and about.waits_for == "scheduled for later"
        assert about.left == 60 and about.going_by == 0
        assert exactly.finish_at is not None and about.finish_at is not None
        assert abs(about.finish_at - exactly.finish_at) < 12 * HOUR
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now(), "on holiday"))
        assert (look(world).stuck, look(world).stuck_why) == (30, "account is paused: on holiday")

    world.play(script)


def test_what_nobody_has_laid_out_is_laid_out_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is due at once, so there is nothing to go by but the pace."""

    async def script(world: World) -> None:
        world.account("ann", policy=DESK)
        world.campaign(300)
        exactly, about = both(world, monkeypatch, near=50)
        assert about == exactly

    world.play(script)


def test_nothing_is_foretold_of_what_is_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy=DESK)
        launch(world, 200, name="other")
        world.campaign(1)
        sql(world, "UPDATE deliveries SET due_at = due_at + 1 WHERE run_id = 1")
        now = world.clock.now()
        world.write(lambda tx: campaigns.cancel(tx, "spring", now))
        monkeypatch.setattr(arrival, "NEAR", 10)
        assert world.read(lambda tx: arrival.eta(tx, find(tx, "spring"), now)) is None

    world.play(script)


def test_how_long_it_takes_grows_far_slower_than_the_campaign(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"spacing": "1m"})
        launch(world, 12_000)
        monkeypatch.setattr(arrival, "NEAR", 1_000_000)
        took = []
        for near in (1_000_000, 1_000):
            monkeypatch.setattr(arrival, "NEAR", near)
            look(world)
            began = time.process_time()
            found = look(world)
            took.append(time.process_time() - began)
            assert found.finish_at == world.clock.now() + 11_999 * MINUTE
        assert took[1] < took[0] / 3

    world.play(script)
