"""Whose turn it is: recipients who must wait block nobody, and campaigns share an account."""

from zoneinfo import ZoneInfo

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant, to_datetime
from paceline.core.model import Target
from tests.engine.scenes import (
    Begins,
    called,
    deliveries,
    delivery,
    finish,
)
from tests.engine.world import World

NEW_YORK = ZoneInfo("America/New_York")


# ---------------------------------------------------------------------- one person


def test_a_person_is_not_written_to_too_often_and_blocks_nobody(calm: None, world: World) -> None:
    # Both campaigns have read ahead by the time one of them comes to the person they share.
    shared = [Target("adam"), Target("eve"), Target("seth")]

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "per_recipient": "1/day"})
        world.campaign(targets=shared)
        world.campaign(name="again", targets=[Target("noah"), Target("eve")])
        process = world.process(poll_us=HOUR)
        await world.wait(MINUTE)
        assert sorted(effect.target for effect in world.sends()) == ["adam", "eve", "noah", "seth"]
        waiting = [row for row in deliveries(world) if row.state == "ready"]
        assert [row.reason for row in waiting] == [
            "recipient was contacted already (at most 1/day)"
        ]
        await finish(world, "again", process=process, every_us=HOUR, within_us=2 * DAY)

    world.play(script)
    to_eve = [effect for effect in world.sends() if effect.target == "eve"]
    assert len(to_eve) == 2
    assert to_eve[1].called_at - to_eve[0].at >= DAY


def test_the_frequency_counts_what_other_accounts_sent(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"per_recipient": "1/2h"})
        world.account("bob", policy={"per_recipient": "1/2h"})
        world.campaign(targets=[Target("eve")])
        await finish(world)
        world.campaign(name="again", on=("bob",), targets=[Target("eve"), Target("adam")])
        await finish(world, "again", every_us=10 * MINUTE, within_us=DAY, poll_us=HOUR)

    world.play(script)
    order = [(effect.account, effect.target) for effect in world.sends()]
    assert order == [("ann", "eve"), ("bob", "adam"), ("bob", "eve")]
    assert world.sends()[2].called_at - world.sends()[0].at >= 2 * HOUR


def test_recipients_own_hours_hold_back_only_themselves(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-02T15:00:00Z"))  # 10:00 in New York, 00:00 in Tokyo

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(
            targets=[
                Target("tokyo", {"zone": "Asia/Tokyo"}),
                Target("york", {"zone": "America/New_York"}),
            ],
            recipient_hours="09:00-17:00",
        )
        await finish(world, every_us=10 * MINUTE, within_us=DAY, poll_us=HOUR)

    world.play(script)
    assert [effect.target for effect in world.sends()] == ["york", "tokyo"]
    assert called(world)[0] < parse_instant("2026-03-02T15:00:05Z")
    tokyo = to_datetime(called(world)[1]).astimezone(ZoneInfo("Asia/Tokyo"))
    assert (tokyo.hour, tokyo.minute) == (9, 0)


def test_a_recipient_who_opens_later_than_the_account_does_not_hold_up_the_morning(
    calm: None, world_at: Begins
) -> None:
    """In the evening the account is shut and Los Angeles is not; next morning it is the reverse."""
    world = world_at(
        parse_instant("2026-03-03T00:00:00Z")
    )  # 19:00 in New York, 16:00 in Los Angeles

    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-18:00 America/New_York"})
        world.campaign(
            targets=[
                Target("angeles", {"zone": "America/Los_Angeles"}),
                Target("york", {"zone": "America/New_York"}),
            ],
            recipient_hours="09:00-17:00",
        )
        await finish(world, every_us=10 * MINUTE, within_us=DAY, poll_us=HOUR)

    world.play(script)
    hours = {e.target: to_datetime(e.called_at).astimezone(NEW_YORK).hour for e in world.sends()}
    assert hours == {"york": 9, "angeles": 12}


def test_hours_that_never_meet_the_recipients_are_told_and_skipped(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-17:00 UTC"})
        world.campaign(
            targets=[Target("eve", {"zone": "UTC"}), Target("adam", {"zone": "Asia/Tokyo"})],
            recipient_hours="10:00-12:00",
        )
        await finish(world, every_us=MINUTE, within_us=2 * HOUR, poll_us=HOUR)
        skipped = delivery(world, "adam")
        assert skipped.state == "skipped"
        assert "no instant within 400 days" in skipped.reason

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "skipped": 1}


# ---------------------------------------------------------------------- whose turn it is


@pytest.mark.parametrize("policy", [{"rate": "60/min"}, {"spacing": "5m..6m"}])
def test_two_campaigns_on_one_account_take_turns(
    calm: None, world: World, policy: dict[str, str]
) -> None:
    async def script(world: World) -> None:
        world.account(policy=policy)
        world.campaign(6)
        world.campaign(6, name="autumn")
        poll_us = SECOND if "rate" in policy else 10 * MINUTE
        await finish(world, "spring", "autumn", every_us=poll_us, within_us=DAY, poll_us=poll_us)

    world.play(script)
    order = [effect.target.split("-")[0] for effect in world.sends()]
    assert order == ["spring", "autumn"] * 6


def test_turns_are_kept_although_the_store_is_read_anew_all_the_time(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "bounce_pause": "off"})
        world.campaign(targets=[Target(f"bounce-{n}") for n in range(6)])
        world.campaign(6, name="autumn")
        await finish(world, "spring", "autumn")

    world.play(script)
    order = [effect.target.split("-")[0] for effect in world.calls()]
    assert order == ["bounce", "autumn"] * 6


def test_a_higher_priority_goes_first(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(4)
        world.campaign(4, name="urgent", priority=5)
        await finish(world, "spring", "urgent")

    world.play(script)
    order = [effect.target.split("-")[0] for effect in world.sends()]
    assert order == ["urgent"] * 4 + ["spring"] * 4
