"""Launching by plan: every delivery has its minute, what no longer fits moves with the reason."""

from collections.abc import Sequence
from itertools import pairwise
from zoneinfo import ZoneInfo

from paceline.core.instants import DAY, HOUR, MINUTE, parse_instant, to_datetime
from paceline.core.model import Content, Part, Step, Target
from paceline.core.slots import Queue
from paceline.engine import launching, queries
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import AccountChange
from paceline.engine.ground import AsTheyMight, Ground, as_they_stand, gather
from paceline.engine.ports import Delivery
from paceline.engine.unstored import queues_of
from tests.engine.scenes import deliveries, finish, per_day
from tests.engine.world import World

AGAIN = Content((Part("text", "and again"),))
COLD = {
    "hours": "Mon-Fri 09:00-18:00 UTC",
    "spacing": "5m..20m",
    "min_gap": "6m",
    "daily": {"message": 20},
}


def _launched(world: World, count: int, name: str = "spring", **spec: object) -> None:
    world.campaign(count, name=name, launch=False, **spec)  # type: ignore[arg-type]
    launching.launch(world.store, name, world.clock.now(), world.providers)


def _days(rows: list[Delivery]) -> dict[str, int]:
    return per_day([row.due_at for row in rows if row.due_at is not None], "UTC")


def _set(world: World, **limits: object) -> None:
    change = AccountChange(overrides=limits)
    world.write(lambda tx: accounts.change(tx, "ann", change, world.house, world.clock.now()))


def test_a_launch_gives_every_delivery_its_minute_within_the_limits(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD)
        _launched(world, 45)
        rows = deliveries(world)
        assert _days(rows) == {"2026-03-02": 20, "2026-03-03": 20, "2026-03-04": 5}
        assert all(row.scheduled_at == row.due_at for row in rows)
        gaps = [b.scheduled_at - a.scheduled_at for a, b in pairwise(rows)]
        assert min(gaps) >= 6 * MINUTE
        await finish(world, every_us=HOUR, within_us=5 * DAY, poll_us=HOUR)
        late = [row.sent_at - row.scheduled_at for row in deliveries(world) if row.sent_at]
        # Never before its minute; and what the day's own draws add is less than the day has left.
        assert min(late) >= 0
        assert max(late) < 4 * HOUR

    world.play(script)
    assert per_day([effect.at for effect in world.sends()], "UTC") == {
        "2026-03-02": 20,
        "2026-03-03": 20,
        "2026-03-04": 5,
    }


def test_what_no_longer_fits_moves_and_says_why(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 20}, "rate": "60/min"})
        _launched(world, 30)
        _set(world, daily={"message": 8})
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.account_now().state == "limit_reached", every_us=MINUTE)
        rows = deliveries(world)
        tomorrow = parse_instant("2026-03-03T00:00:00Z")
        moved = [row for row in rows if row.reason]
        assert {row.reason for row in moved} == {"Daily cap reached (8/8)"}
        assert len(moved) == 12
        # Ten were planned for tomorrow, which allows eight: there is no room before Wednesday.
        assert _days(moved) == {"2026-03-04": 8, "2026-03-05": 4}
        # The plan stays as it was made; those planned for tomorrow anyway were not touched.
        assert all(row.scheduled_at < tomorrow for row in moved)
        why = world.read(lambda tx: queries.why_delivery(tx, moved[0].id, world.clock.now()))
        assert why.verdict.why == "scheduled for later: Daily cap reached (8/8)"  # type: ignore[union-attr]
        shut = [view.why for view in why.gates if not view.open]
        assert shut == ["daily cap reached (8/8)", "scheduled for later"]
        await process.stop()

    world.play(script)


def test_a_raised_limit_holds_from_the_next_message_on(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 5}, "rate": "60/min"})
        world.campaign(12)
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.account_now().state == "limit_reached", every_us=MINUTE)
        assert world.counts() == {"sent": 5, "ready": 7}
        _set(world, daily={"message": 9})
        await world.wait(10 * MINUTE)
        assert world.counts() == {"sent": 9, "ready": 3}
        await process.stop()

    world.play(script)


def test_two_campaigns_on_one_account_share_its_days(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "rate": "6/min"})
        _launched(world, 30)
        _launched(world, 10, name="summer")
        rows = deliveries(world)
        assert set(_days(rows).values()) == {10}
        spring = [row for row in rows if row.target.startswith("spring")]
        assert {row.reason for row in spring if row.due_at != row.scheduled_at} == {
            "shares its account with summer"
        }
        await finish(world, "spring", "summer", every_us=HOUR, within_us=9 * DAY, poll_us=HOUR)

    world.play(script)
    sent = per_day([effect.at for effect in world.sends()], "UTC")
    assert list(sent.values()) == [10, 10, 10, 10]


def test_laying_anew_uses_what_a_cancelled_campaign_held(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        account = world.account(policy={"daily": {"message": 10}})
        _launched(world, 20)
        _launched(world, 20, name="summer")
        assert len(_days(deliveries(world))) == 4
        world.write(lambda tx: campaigns.cancel(tx, "summer", world.clock.now()))
        moved = launching.lay_anew(
            world.store, [account.id], world.clock.now(), "summer was cancelled"
        )
        assert moved > 0
        assert len(_days(deliveries(world))) == 2

    world.play(script)


def test_a_draft_that_lay_about_is_spread_from_its_launch_on(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(50, launch=False, spread_days=5)
        await world.wait(4 * DAY)
        launching.launch(world.store, "spring", world.clock.now(), world.providers)
        days = _days(deliveries(world))
        assert list(days.values()) == [10] * 5
        assert min(days) == "2026-03-06"

    world.play(script)


def test_a_gap_that_leads_past_closing_time_is_the_nights(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-09:01 UTC", "spacing": "20s"})
        world.campaign(5)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR)
        left = [row for row in deliveries(world) if row.state == "ready"]
        assert {row.reason for row in left} == {"Outside business hours (Mon-Fri 09:00-09:01 UTC)"}
        await process.stop()

    world.play(script)


def test_a_plan_keeps_to_local_days_when_the_clocks_change(calm: None, world: World) -> None:
    # In New York the clocks go forward on the 8th: office hours begin an hour earlier in UTC.
    async def script(world: World) -> None:
        world.account(preset="cold-email")
        _launched(world, 160, action="email")
        zone = ZoneInfo("America/New_York")
        local = [to_datetime(row.scheduled_at).astimezone(zone) for row in deliveries(world)]
        assert {at.hour for at in local} <= set(range(9, 18))
        assert {at.weekday() for at in local} <= set(range(5))
        assert set(per_day([row.scheduled_at for row in deliveries(world)], zone.key).values()) == {
            20
        }

    world.play(script)


def test_what_follows_has_its_minute_too_and_keeps_to_it(calm: None, world: World) -> None:
    """Thirty people, ten a day: on the third day first messages and second ones want to go."""

    async def script(world: World) -> None:
        world.account(policy=COLD | {"daily": {"message": 10}})
        _launched(world, 30, steps=(Step(DAY, AGAIN),))
        planned = {row.id: row.scheduled_at for row in deliveries(world)}
        assert set(per_day(list(planned.values()), "UTC").values()) == {10}
        assert all(row.due_at is None for row in deliveries(world) if row.step == 2)
        await finish(world, every_us=HOUR, within_us=14 * DAY, poll_us=MINUTE)
        late = [row.sent_at - planned[row.id] for row in deliveries(world) if row.sent_at]
        assert len(late) == 60 and min(late) >= 0

    world.play(script)
    sent = per_day([effect.at for effect in world.sends()], "UTC")
    assert list(sent.values()) == [10] * 6


def test_what_follows_is_laid_out_anew_with_the_rest(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD | {"daily": {"message": 5}})
        _launched(world, 30, steps=(Step(HOUR, AGAIN),))
        slow = max(row.scheduled_at for row in deliveries(world) if row.step == 2)
        assert slow > world.clock.now() + 14 * DAY
        _set(world, daily={"message": 100}, spacing="6m")
        account = world.account_now("ann")
        launching.lay_anew(world.store, [account.id], world.clock.now(), "limits changed")
        quick = max(row.scheduled_at for row in deliveries(world) if row.step == 2)
        assert quick < world.clock.now() + DAY

    world.play(script)


def test_steps_take_their_turns_before_a_campaign_is_stored_as_afterwards(world: World) -> None:
    async def script(world: World) -> None:
        account = world.account()
        steps = (Step(DAY, AGAIN), Step(HOUR, AGAIN))
        spec = CampaignSpec("spring", ("ann",), AGAIN, steps=steps)
        targets, now = [Target(f"person-{number}") for number in range(3)], world.clock.now()
        nothing = Ground(now)
        before = world.read(lambda tx: queues_of(tx, nothing, spec, targets, [account.id]))
        campaign = world.campaign(targets=targets, steps=steps)
        (run,) = world.read(lambda tx: tx.runs.of_campaign(campaign.id))
        free = world.read(lambda tx: gather(tx, [account.id], now, not_before=AsTheyMight(tx, now)))
        kept = world.read(lambda tx: gather(tx, [account.id], now, not_before=as_they_stand))

        def turns(queues: Sequence[Queue]) -> list[tuple[int, int]]:
            return [(want.turn, want.after_us) for queue in queues for want in queue.wants]

        assert turns(before) == turns(free.queues) == [(0, 0), (1, DAY), (2, HOUR)] * 3
        assert turns(kept.queues) == [(0, 0), (0, DAY), (0, HOUR)] * 3, "each by its own minute"
        assert kept.runs.keys() == {run.id}

    world.play(script)
