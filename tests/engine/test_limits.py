"""Caps as a lane keeps them: counted per day and week, given back, raised, lowered, ramped."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.states import AccountState
from paceline.engine import launching
from paceline.engine.catalogue import Catalogue, apply_catalogue
from tests.engine.scenes import (
    TWO_PARTS,
    Begins,
    called,
    change,
    deliveries,
    finish,
    gaps,
    intents,
    per_day,
    say,
    until,
)
from tests.engine.world import World

NEW_YORK = ZoneInfo("America/New_York")


def test_a_daily_cap_is_shown_kept_and_over_the_next_day(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-02T22:00:00Z"))

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 5}, "zone": "Europe/Paris"})
        world.campaign(12)
        process = world.process(poll_us=HOUR)
        await world.wait(10 * MINUTE)
        assert len(world.sends()) == 5
        shown = world.account_now()
        assert shown.state is AccountState.LIMIT_REACHED
        assert shown.state_reason == "daily cap reached (5/5)"
        # Midnight in Paris is 23:00 UTC.
        assert shown.state_until_at == parse_instant("2026-03-02T23:00:00Z")
        lane = world.read(lambda tx: tx.lanes.get(shown.id))
        assert (lane.owner, lane.wake_at) == (None, shown.state_until_at)
        await world.wait(51 * MINUTE)
        assert len(world.sends()) == 10
        assert world.account_now().state is AccountState.LIMIT_REACHED
        await until(world, lambda: world.state() == "finished", HOUR, 30 * HOUR)
        assert world.account_now().state is AccountState.ACTIVE
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 12}
    assert per_day(called(world), "Europe/Paris") == {
        "2026-03-02": 5,
        "2026-03-03": 5,
        "2026-03-04": 2,
    }


@pytest.mark.parametrize(
    ("start", "zone", "night_hours"),
    [
        ("2026-03-28T12:00:00Z", "Europe/Paris", 23),  # the clock goes forward that night
        ("2026-10-24T12:00:00Z", "Europe/Paris", 25),
        ("2026-04-23T12:00:00Z", "Africa/Cairo", 23),  # where midnight itself is skipped
    ],
)
def test_a_cap_is_over_at_midnight_also_when_the_clocks_change(
    calm: None, world_at: Begins, start: str, zone: str, night_hours: int
) -> None:
    world = world_at(parse_instant(start))

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 2}, "zone": zone})
        world.campaign(6)
        await finish(world, every_us=HOUR, within_us=4 * DAY, poll_us=HOUR)

    world.play(script)
    counts = per_day(called(world), zone)
    assert list(counts.values()) == [2, 2, 2]
    first_of_day = called(world)[::2][1:]
    assert round((first_of_day[1] - first_of_day[0]) / HOUR) == night_hours


def test_a_refusal_gives_its_slot_back_but_never_its_token(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"rate": "60/min", "daily": {"message": 3}}, reject_at=[1, 3], latency="100ms"
        )
        world.campaign(6)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"failed": 2, "sent": 3, "ready": 1}
    # Five calls for three slots, each a full second after the one before.
    assert gaps(called(world)) == [SECOND] * 4


def test_an_unknown_keeps_its_slot(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"daily": {"message": 3}}, lost_at=[2], timeout_latency="1s", finds=False
        )
        world.campaign(5)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        assert world.account_now().state_reason == "daily cap reached (3/3)"
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 2, "unknown": 1, "ready": 2}


def test_a_proof_of_absence_gives_the_slot_back_after_all(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 3}}, lost_at=[2], timeout_latency="1s")
        world.campaign(3)
        await finish(world, every_us=5 * SECOND)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}
    assert len(world.calls()) == 4


def test_caps_count_each_action_type_for_itself(world: World) -> None:
    async def script(world: World) -> None:
        world.account(preset="linkedin", policy={"daily": {"message": 3, "connection_request": 2}})
        world.campaign(5)
        world.campaign(5, name="invite", action="connection_request")
        process = world.process()
        await world.wait(10 * SECOND)
        assert world.counts()["sent"] == 3
        assert world.counts("invite")["sent"] == 2
        await process.stop()

    world.play(script)


def test_a_weekly_cap_holds_until_monday(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-05T10:00:00Z"))  # a Thursday

    async def script(world: World) -> None:
        world.account(
            policy={"daily": {"message": 4}, "weekly": {"message": 6}, "zone": "UTC"},
        )
        world.campaign(9)
        process = world.process(poll_us=HOUR)
        await world.wait(30 * HOUR)
        shown = world.account_now()
        assert shown.state_reason == "weekly cap reached (6/6)"
        assert shown.state_until_at == parse_instant("2026-03-09T00:00:00Z")
        await finish(world, process=process, every_us=HOUR, within_us=5 * DAY)

    world.play(script)
    days = per_day(called(world), "UTC")
    assert days == {"2026-03-05": 4, "2026-03-06": 2, "2026-03-09": 3}


def test_a_message_starts_only_where_the_cap_has_room_for_all_its_parts(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"daily": {"message": 5}, "concurrency": 3, "part_gap": "1s"}, latency="500ms"
        )
        world.campaign(4, parts=TWO_PARTS)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 2, "ready": 2}
    assert len(world.calls()) == 4


def test_a_raised_cap_wakes_the_lane_at_once(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "daily": {"message": 2}})
        world.campaign(5)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        changed_at = world.clock.now()
        change(world, overrides={"daily": {"message": 4}})
        await until(world, lambda: len(world.sends()) == 3, SECOND // 10)
        assert called(world)[2] - changed_at <= 2 * SECOND
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        assert world.account_now().state_reason == "daily cap reached (4/4)"
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 4, "ready": 1}


def test_a_cap_raised_in_the_catalogue_wakes_the_lane_and_takes_the_label_off(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.house = type(world.house)(
            world.providers, Catalogue({"ours": {"daily": {"message": 2}}})
        )
        world.account(preset="ours")
        world.campaign(4)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        raised = Catalogue({"ours": {"daily": {"message": 9}}})
        now = world.clock.now()
        changed = world.write(lambda tx: apply_catalogue(tx, raised, now))
        assert [account.name for account in changed] == ["ann"]
        await finish(world, process=process, within_us=10 * SECOND)
        assert world.account_now().state is AccountState.ACTIVE

    world.play(script)


def test_a_lowered_cap_holds_from_the_next_message(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "daily": {"message": 10}})
        world.campaign(10)
        process = world.process()
        await world.wait(4 * SECOND + 500_000)
        sent = len(intents(world))
        change(world, overrides={"daily": {"message": 2}})
        await world.wait(10 * SECOND)
        assert len(intents(world)) == sent
        assert world.account_now().state_reason == f"daily cap reached ({sent}/2)"
        await process.stop()

    world.play(script)


def test_a_label_does_not_outlive_its_day_when_the_work_is_gone(
    calm: None, world_at: Begins
) -> None:
    world = world_at(parse_instant("2026-03-02T22:00:00Z"))

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 1}, "zone": "UTC"})
        world.campaign(3)
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        say(world, "cancel campaign")
        await world.wait(3 * HOUR)
        assert world.account_now().state is AccountState.ACTIVE
        await process.stop()

    world.play(script)


def launched(world: World, count: int, name: str = "spring", **spec: Any) -> None:
    world.campaign(count, name=name, launch=False, **spec)
    launching.launch(world.store, name, world.clock.now(), world.providers)


def test_a_cap_is_not_shown_while_something_else_may_go(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"connection_request": 5}, "spacing": "20m"})
        launched(world, 10, action="connection_request")
        launched(world, 40, name="summer")
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: len(world.sends()) == 12, MINUTE, DAY)
        await world.wait(10 * MINUTE)
        assert {world.counts()[state] for state in ("sent", "ready")} == {5}
        assert world.account_now().state == "active"
        await process.stop()

    world.play(script)


def test_a_cap_that_is_used_up_is_shown_though_the_rest_is_planned_for_later(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 5}, "rate": "60/min"})
        launched(world, 10)
        process = world.process(poll_us=MINUTE)
        await world.wait(10 * MINUTE)
        shown = world.account_now()
        assert (shown.state, shown.state_reason) == ("limit_reached", "daily cap reached (5/5)")
        assert shown.state_until_at == parse_instant("2026-03-03T00:00:00Z")
        assert not any(row.reason for row in deliveries(world)), "everything is as it was planned"
        await finish(world, process=process, every_us=HOUR, within_us=2 * DAY)
        assert world.account_now().state == "active"

    world.play(script)


def test_a_warm_up_grows_from_day_to_day(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-02T08:00:00Z"))

    async def script(world: World) -> None:
        world.account(policy={"warmup": "4 +50%/day to 12", "zone": "UTC"})
        world.campaign(40)
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        assert world.account_now().state_reason == "daily cap reached (4/4) of the warm-up"
        await finish(world, process=process, every_us=HOUR, within_us=8 * DAY)

    world.play(script)
    assert list(per_day(called(world), "UTC").values()) == [4, 6, 9, 12, 9]
