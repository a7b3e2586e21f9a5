"""What an account shows whose cap is used up: until the cap begins anew and no longer, whatever
else is shut by then."""

from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.core.states import AccountState
from paceline.engine import launching
from paceline.engine.ports import Account
from tests.engine.scenes import (
    TWO_PARTS,
    Begins,
    called,
    change,
    deliveries,
    delivery,
    events,
    finish,
    reply,
    until,
    violations,
)
from tests.engine.world import World

OFFICE = "Mon-Fri 09:00-18:00 America/New_York"
EVERY_DAY = "09:00-18:00 America/New_York"
NINE = parse_instant("2026-03-02T14:00:00Z")
"""A Monday in New York, at nine."""
MIDNIGHT = parse_instant("2026-03-03T05:00:00Z")


def label(account: Account) -> tuple[str, str, Instant | None]:
    return str(account.state), account.state_reason, account.state_until_at


def reached(why: str, until_at: str | Instant) -> tuple[str, str, Instant | None]:
    at = until_at if isinstance(until_at, int) else parse_instant(until_at)
    return "limit_reached", why, at


ACTIVE = ("active", "", None)


def shown(world: World) -> bool:
    return world.account_now().state is AccountState.LIMIT_REACHED


def sent(world: World, name: str = "spring") -> int:
    return world.counts(name).get("sent", 0)


def launched(world: World, count: int, name: str = "spring", **spec: Any) -> None:
    world.campaign(count, name=name, launch=False, **spec)
    launching.launch(world.store, name, world.clock.now(), world.providers)


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize(
    ("hours", "times"),
    [
        # Monday: morning, afternoon, and so late that there is hardly any rest of the day.
        (OFFICE, ("2026-03-02T15:00:00Z", "2026-03-03T05:00:00Z", "2026-03-03T14:00:00Z")),
        (OFFICE, ("2026-03-02T20:30:00Z", "2026-03-03T05:00:00Z", "2026-03-03T14:00:00Z")),
        (OFFICE, ("2026-03-02T22:30:00Z", "2026-03-03T05:00:00Z", "2026-03-03T14:00:00Z")),
        # Friday, before a weekend in which the clocks go forward.
        (OFFICE, ("2026-03-06T15:00:00Z", "2026-03-07T05:00:00Z", "2026-03-09T13:00:00Z")),
        # The night in which they do, the day of 23 hours, and the one of 25.
        (EVERY_DAY, ("2026-03-07T20:00:00Z", "2026-03-08T05:00:00Z", "2026-03-08T13:00:00Z")),
        (EVERY_DAY, ("2026-03-08T20:00:00Z", "2026-03-09T04:00:00Z", "2026-03-09T13:00:00Z")),
        (EVERY_DAY, ("2026-11-01T20:00:00Z", "2026-11-02T05:00:00Z", "2026-11-02T14:00:00Z")),
    ],
)
def test_it_is_shown_until_the_day_ends_and_sending_goes_on_when_hours_open(
    calm: None, world_at: Begins, planned: bool, hours: str, times: tuple[str, str, str]
) -> None:
    begins, day_ends, opens = times
    world = world_at(parse_instant(begins))

    async def script(world: World) -> None:
        world.account(preset="cold-email", policy={"hours": hours, "daily": {"email": 2}})
        if planned:
            launched(world, 5, action="email")
        else:
            world.campaign(5, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(25 * MINUTE)
        assert len(world.sends()) == 2
        assert label(world.account_now()) == reached("daily cap reached (2/2)", day_ends)
        over_at = parse_instant(day_ends) + MINUTE
        await until(world, lambda: world.clock.now() > over_at, MINUTE, DAY)
        assert label(world.account_now()) == ACTIVE
        await until(world, lambda: len(world.sends()) == 3, MINUTE, 3 * DAY)
        await process.stop()
        assert violations(world) == []

    world.play(script)
    assert 0 <= called(world)[2] - parse_instant(opens) < 25 * MINUTE


def test_a_week_ends_at_its_midnight_and_is_named_before_the_day(
    calm: None, world_at: Begins
) -> None:
    world = world_at(parse_instant("2026-03-05T15:00:00Z"))  # a Thursday

    async def script(world: World) -> None:
        caps = {"daily": {"email": 2}, "weekly": {"email": 2}}
        world.account(preset="cold-email", policy=caps)
        world.campaign(4, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        ends = "2026-03-09T04:00:00Z"  # Monday, by the new time
        assert label(world.account_now()) == reached("weekly cap reached (2/2)", ends)
        await world.wait(2 * DAY)
        assert label(world.account_now()) == reached("weekly cap reached (2/2)", ends)
        await finish(world, process=process, every_us=HOUR, within_us=4 * DAY)

    world.play(script)
    assert called(world)[2] >= parse_instant("2026-03-09T13:00:00Z")


def test_the_day_of_a_warm_up(calm: None, world_at: Begins) -> None:
    world = world_at(NINE)

    async def script(world: World) -> None:
        warm = {"warmup": "2 +50%/day to 20"}
        world.account(preset="cold-email", policy=warm)
        world.campaign(6, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        why = "daily cap reached (2/2) of the warm-up"
        assert label(world.account_now()) == reached(why, MIDNIGHT)
        await process.stop()

    world.play(script)


def test_a_message_for_whose_parts_there_is_no_room_today(calm: None, world_at: Begins) -> None:
    world = world_at(NINE)

    async def script(world: World) -> None:
        world.account(preset="cold-email", policy={"daily": {"email": 3}})
        world.campaign(3, action="email", parts=TWO_PARTS)
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        assert label(world.account_now()) == reached("daily cap reached (2/3)", MIDNIGHT)
        await process.stop()

    world.play(script)


def test_hours_alone_are_no_limit_reached(calm: None, world_at: Begins) -> None:
    world = world_at(NINE + 8 * HOUR)

    async def script(world: World) -> None:
        world.account(preset="cold-email")
        world.campaign(20, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(2 * HOUR)
        assert 0 < len(world.sends()) < 20
        assert label(world.account_now()) == ACTIVE
        await process.stop()

    world.play(script)


def test_one_action_is_used_up_and_another_may_go(calm: None, world_at: Begins) -> None:
    world = world_at(NINE)

    async def script(world: World) -> None:
        caps = {"daily": {"email": 2, "message": 10}, "spacing": "20m"}
        world.account(preset="cold-email", policy=caps)
        world.campaign(5, action="email")
        launched(world, 12, name="other")
        process = world.process(poll_us=HOUR)
        await until(world, lambda: sent(world) == 2, MINUTE, 4 * HOUR)
        await world.wait(50 * MINUTE)
        assert 1 < sent(world, "other") < 10
        assert label(world.account_now()) == ACTIVE
        await until(world, lambda: sent(world, "other") == 10, MINUTE, 8 * HOUR)
        await world.wait(HOUR)
        state, why, ends_at = label(world.account_now())
        assert (state, ends_at) == ("limit_reached", MIDNIGHT)
        assert why in ("daily cap reached (2/2)", "daily cap reached (10/10)")
        await process.stop()

    world.play(script)


def test_it_is_shown_no_longer_when_there_is_something_else_to_send(
    calm: None, world_at: Begins
) -> None:
    world = world_at(NINE)

    async def script(world: World) -> None:
        world.account(preset="cold-email", policy={"daily": {"email": 2}})
        world.campaign(5, action="email")
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: shown(world), MINUTE, HOUR)
        world.campaign(5, name="other")
        await until(world, lambda: sent(world, "other") == 1, SECOND, HOUR)
        assert label(world.account_now()) == ACTIVE
        await until(world, lambda: sent(world, "other") == 2, MINUTE, HOUR)
        await world.wait(2 * MINUTE)
        assert label(world.account_now()) == ACTIVE
        await until(world, lambda: sent(world, "other") == 5, MINUTE, 2 * HOUR)
        await world.wait(2 * MINUTE)
        assert label(world.account_now()) == reached("daily cap reached (2/2)", MIDNIGHT)
        assert len(events(world, "account.limit_reached")) == 2
        await process.stop()

    world.play(script)


def test_it_is_shown_again_where_limits_change_and_none_of_them_helps(
    calm: None, world_at: Begins
) -> None:
    """A lane that begins anew has asked for nothing yet, and what waits is planned for later."""
    world = world_at(NINE)

    async def script(world: World) -> None:
        world.account(preset="cold-email", policy={"daily": {"email": 2}})
        launched(world, 5, action="email")
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: shown(world), MINUTE, HOUR)
        change(world, overrides={"daily": {"email": 2}, "min_gap": "7m"})
        assert label(world.account_now()) == ACTIVE
        await world.wait(2 * MINUTE)
        assert label(world.account_now()) == reached("daily cap reached (2/2)", MIDNIGHT)
        await process.stop()

    world.play(script)


def test_the_accounts_of_a_pool_each_show_it(calm: None, world_at: Begins) -> None:
    world = world_at(NINE)

    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, preset="cold-email", policy={"daily": {"email": 2}})
        world.campaign(7, action="email", on=("ann", "bob"), assignment="pooled")
        process = world.process(poll_us=HOUR)
        await world.wait(2 * HOUR)
        for name in ("ann", "bob"):
            assert label(world.account_now(name)) == reached("daily cap reached (2/2)", MIDNIGHT)
        await until(world, lambda: world.clock.now() > MIDNIGHT + MINUTE, MINUTE, DAY)
        for name in ("ann", "bob"):
            assert label(world.account_now(name)) == ACTIVE
        await finish(world, process=process, every_us=HOUR, within_us=2 * DAY)

    world.play(script)


def test_what_a_cap_has_put_off_says_so(calm: None, world_at: Begins) -> None:
    """Also where the night after it is longer than what was left of the day."""
    world = world_at(NINE + 6 * HOUR)

    async def script(world: World) -> None:
        world.account(preset="cold-email", policy={"daily": {"email": 2}})
        world.campaign(5, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        waiting = deliveries(world, lambda row: row.state == "ready")
        assert [row.reason for row in waiting] == ["Daily cap reached (2/2)"] * 3
        await process.stop()

    world.play(script)


@pytest.mark.parametrize(("count", "is_shown"), [(2, False), (3, True)])
def test_a_doubt_is_nothing_that_waits_to_be_sent(
    calm: None, world_at: Begins, count: int, is_shown: bool
) -> None:
    """It keeps its slot, and is looked into before the cap begins anew."""
    world = world_at(NINE)

    async def script(world: World) -> None:
        doubts = {"timeout_at": [2], "timeout_latency": "2s", "find_lag": "20m"}
        world.account(preset="cold-email", policy={"daily": {"email": 2}}, **doubts)
        launched(world, count, action="email")
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: world.counts().get("unknown") == 1, SECOND, HOUR)
        await world.wait(3 * MINUTE)  # until the next look at it is so far off that the lane parks
        assert shown(world) is is_shown
        await world.wait(5 * MINUTE)
        assert shown(world) is is_shown
        await process.stop()

    world.play(script)


def test_replies_may_go_at_any_time(calm: None, world_at: Begins) -> None:
    world = world_at(NINE)

    async def script(world: World) -> None:
        fates = {"transient_at": [3]}
        world.account(preset="cold-email", policy={"daily": {"email": 2}}, **fates)
        world.campaign(5, action="email")
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: shown(world), MINUTE, HOUR)
        reply(world, "eve", action="email")
        await until(world, lambda: "retry 1" in delivery(world, "eve").reason, SECOND, HOUR)
        await world.wait(10 * SECOND)
        assert shown(world)
        await world.wait(5 * MINUTE)
        assert delivery(world, "eve").state == "sent"
        assert len(events(world, "account.limit_reached")) == 1
        await process.stop()

    world.play(script)
