"""Pace as a lane keeps it: spacing, batches, errors, bursts, hours, and parking in between."""

from zoneinfo import ZoneInfo

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant, to_datetime
from paceline.core.model import Part
from paceline.core.states import AccountState
from tests.engine.scenes import (
    Begins,
    called,
    change,
    finish,
    gaps,
    intents,
    outcomes,
    per_day,
    send_direct,
    until,
)
from tests.engine.world import World

NEW_YORK = ZoneInfo("America/New_York")


# ---------------------------------------------------------------------- pace


def test_spacing_is_drawn_anew_within_its_bounds_and_never_below_the_least_gap(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "5m..20m", "min_gap": "6m"})
        world.campaign(25)
        await finish(world, every_us=5 * MINUTE, within_us=DAY, poll_us=HOUR)

    world.play(script)
    drawn = gaps(called(world))
    assert all(6 * MINUTE <= gap <= 20 * MINUTE + SECOND for gap in drawn)
    assert len(set(drawn)) > 20
    assert max(drawn) > 15 * MINUTE and min(drawn) < 9 * MINUTE


def test_the_batch_pause_comes_on_top_of_the_spacing(calm: None, world: World) -> None:
    """Document D counts N·D + (N/B)·P: 1000 at 3 s, 75 and 30 s take 56 minutes."""

    async def script(world: World) -> None:
        world.account(preset="campaign-whatsapp", policy={"batch": "10 then 30s"}, latency="50ms")
        world.campaign(40)
        await finish(world, every_us=10 * SECOND)

    world.play(script)
    expected = ([3 * SECOND] * 9 + [33 * SECOND]) * 3 + [3 * SECOND] * 9
    assert gaps(called(world)) == expected
    took = called(world)[-1] - called(world)[0]
    assert took == 39 * 3 * SECOND + 3 * 30 * SECOND


def test_errors_slow_the_pace_by_half_and_their_passing_restores_it(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={
                "spacing": "4s",
                "adaptive": {"above": "5%", "slow_by": 1.5, "between": "2s..10s"},
            },
            reject_at=[21, 22],
            latency="50ms",
        )
        world.campaign(60)
        await finish(world, every_us=10 * SECOND, within_us=HOUR)

    world.play(script)
    # One of 21 is 4.8 %; two of 22 are above 5 % and stay so until there are 40.
    assert gaps(called(world)) == [4 * SECOND] * 21 + [6 * SECOND] * 18 + [4 * SECOND] * 20


def test_a_campaign_that_is_slowed_has_its_share_beside_one_that_is_not(
    calm: None, world: World
) -> None:
    """Its longer gap begins anew with every message of the other, which must not slip into it."""

    async def script(world: World) -> None:
        world.account(
            policy={"spacing": "4s", "adaptive": {"above": "5%", "slow_by": 2}},
            reject_at=[1],
            latency="50ms",
        )
        world.campaign(10, name="slowed")
        world.campaign(10, name="other")
        await finish(world, "slowed", "other")

    world.play(script)
    whose = [effect.target.split("-")[0] for effect in world.calls()]
    assert whose == ["slowed", "other"] * 10


def test_the_slowed_pace_is_clamped_to_its_bounds(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"spacing": "8s", "adaptive": {"between": "2s..10s"}},
            reject_at=[1],
            latency="50ms",
        )
        world.campaign(4)
        await finish(world)

    world.play(script)
    assert gaps(called(world)) == [10 * SECOND] * 3


def test_a_burst_is_granted_once_and_then_refills_at_its_rate(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "6/min burst 3"}, latency="10ms")
        world.campaign(6)
        await finish(world)

    world.play(script)
    spread = gaps(called(world))
    assert all(gap < SECOND for gap in spread[:2])
    assert called(world)[3] - called(world)[0] == 10 * SECOND
    assert spread[3:] == [10 * SECOND] * 2


def test_two_accounts_go_beside_each_other_at_their_own_pace(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "60/min"}, latency="50ms")
        world.account("bob", policy={"rate": "30/min"}, latency="50ms")
        world.campaign(20, on=("ann", "bob"))
        await finish(world)

    world.play(script)
    assert gaps(called(world, "ann")) == [SECOND] * 9
    assert gaps(called(world, "bob")) == [2 * SECOND] * 9
    assert called(world, "bob")[0] - called(world, "ann")[0] < SECOND


@pytest.mark.parametrize(
    ("before", "after", "old"),
    [
        # The token after the last message was counted when that was sent; a gap is kept as the
        # policy has it now.
        ({"rate": "60/min"}, {"rate": "6/min"}, 4),
        ({"spacing": "1s"}, {"spacing": "10s"}, 3),
    ],
)
def test_a_slower_pace_holds_from_the_next_message(
    world: World, before: dict[str, str], after: dict[str, str], old: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy=before, latency="50ms")
        world.campaign(8)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 4, SECOND // 10)
        change(world, overrides=after)
        await finish(world, process=process)

    world.play(script)
    assert gaps(called(world)) == [SECOND] * old + [10 * SECOND] * (7 - old)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"spacing": "1h"}, {"spacing": "1m"}),
        ({"min_gap": "1h"}, {"min_gap": "1m"}),
        ({"spacing": "1h..2h"}, {"spacing": "30s..1m"}),
    ],
)
@pytest.mark.parametrize("parked", [False, True])
def test_a_quicker_pace_holds_from_the_next_message(
    calm: None, world: World, before: dict[str, str], after: dict[str, str], parked: bool
) -> None:
    """Also where the lane sleeps until the old gap is over, and where it is nobody's by then."""

    async def script(world: World) -> None:
        world.account(policy=before, latency="50ms")
        world.campaign(5)
        process = world.process(park_after_us=MINUTE if parked else 5 * HOUR)
        await until(world, lambda: len(world.sends()) == 2, MINUTE, 3 * HOUR)
        await world.wait(10 * SECOND)
        changed_at = world.clock.now()
        change(world, overrides=after)
        await until(world, lambda: len(world.sends()) == 4, SECOND, 4 * MINUTE)
        assert called(world)[2] <= changed_at + MINUTE + 2 * SECOND
        await process.stop()

    world.play(script)
    assert min(gaps(called(world))[1:]) >= 30 * SECOND


def test_settings_of_the_provider_are_in_force_from_the_next_message(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="50ms")
        world.campaign(8)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 3, SECOND // 10)
        change(world, settings={"reject_rate": 1})
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 3, "failed": 5}
    assert all(gap >= SECOND for gap in gaps(called(world)))


def test_what_one_message_costs_is_told_by_the_ledger(world: World) -> None:
    """A slot and a policy version for every intent; what came back gives it back."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, reject_at=[1])
        world.campaign(2, parts=(Part("text", "hello"),))
        await finish(world)
        assert [row.slots for row in intents(world)] == [1, 1]
        assert [row.slots for row in outcomes(world)] == [-1, 0]
        policy_id = world.account_now().policy_id
        assert {row.policy_id for row in intents(world)} == {policy_id}

    world.play(script)


# ---------------------------------------------------------------------- hours and parking


def test_cold_email_keeps_office_hours_over_a_weekend(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-05T21:00:00Z"))  # Thursday, 16:00 in New York

    async def script(world: World) -> None:
        world.account(preset="cold-email")
        world.campaign(60, action="email")
        await finish(world, every_us=HOUR, within_us=7 * DAY, poll_us=HOUR)

    world.play(script)
    times = [to_datetime(at).astimezone(NEW_YORK) for at in called(world)]
    assert all(time.weekday() < 5 and 9 <= time.hour < 18 for time in times)
    counts = per_day(called(world), "America/New_York")
    assert max(counts.values()) == 20
    # Friday is full, the weekend empty; on Sunday night the clocks went forward.
    assert list(counts)[:3] == ["2026-03-05", "2026-03-06", "2026-03-09"]
    assert counts["2026-03-06"] == 20
    assert all(gap >= 6 * MINUTE for gap in gaps(called(world)))


def test_a_lane_that_waits_long_is_nobodys_and_wakes_on_time(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-02T03:00:00Z"))
    opens_at = parse_instant("2026-03-02T09:00:00Z")

    async def script(world: World) -> None:
        account = world.account(policy={"hours": "Mon-Fri 09:00-18:00 UTC"})
        world.campaign(2)
        process = world.process(poll_us=HOUR)
        await world.wait(MINUTE)
        lane = world.read(lambda tx: tx.lanes.get(account.id))
        assert (lane.owner, lane.wake_at) == (None, opens_at)
        assert world.account_now().state is AccountState.ACTIVE
        await finish(world, process=process, every_us=10 * MINUTE, within_us=DAY)

    world.play(script)
    assert opens_at <= called(world)[0] <= opens_at + SECOND


def test_a_lane_without_work_is_parked_until_somebody_brings_some(world: World) -> None:
    async def script(world: World) -> None:
        account = world.account(policy={"rate": "60/min"})
        world.campaign(1)
        process = world.process()
        await until(world, lambda: world.state() == "finished")
        await world.wait(SECOND)
        lane = world.read(lambda tx: tx.lanes.get(account.id))
        assert (lane.owner, lane.wake_at) == (None, None)
        said_at = world.clock.now()
        send_direct(world, "eve")
        await until(world, lambda: len(world.sends()) == 2, SECOND // 10)
        assert called(world)[1] - said_at <= 2 * SECOND
        await process.stop()

    world.play(script)
