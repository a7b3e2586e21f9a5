"""Planning over a store: drafts, what they share their accounts with, and what is left of a run."""

import time
from collections import Counter

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Content, Part, Step, Target
from paceline.core.states import DeliveryState
from paceline.engine import arrival, planning
from paceline.engine.arrival import Eta
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import accounts, campaigns, control
from paceline.engine.commands.campaigns import find
from paceline.engine.launching import launch
from paceline.engine.plan_view import Plan
from paceline.engine.planning import RunPlan, WhatIf
from tests.engine.scenes import suppress
from tests.engine.world import World

HELLO = Content((Part("text", "hello {{ target }}"),))


def run_of(world: World, name: str) -> int:
    (run,) = world.read(lambda tx: tx.runs.of_campaign(find(tx, name).id))
    return run.id


def plan_run(world: World, name: str) -> RunPlan:
    run_id = run_of(world, name)
    return world.read(lambda tx: planning.plan_run(tx, run_id, world.clock.now()))


def eta(world: World, name: str = "spring") -> Eta | None:
    return world.read(lambda tx: arrival.eta(tx, find(tx, name), world.clock.now()))


def plan(world: World, count: int, *on: str, what_if: WhatIf | None = None, **spec: object) -> Plan:
    wanted = CampaignSpec("wanted", on or ("ann",), HELLO, **spec)  # type: ignore[arg-type]
    targets = [Target(f"person-{number:04}") for number in range(count)]
    return plan_for(world, wanted, targets, what_if)


def plan_for(
    world: World, spec: CampaignSpec, targets: list[Target], what_if: WhatIf | None = None
) -> Plan:
    now = world.clock.now()
    return world.read(
        lambda tx: planning.plan_campaign(tx, spec, targets, world.house, now, what_if)
    )


# ---------------------------------------------------------------------- drafts


def test_a_draft_is_laid_out_by_the_numbers_of_its_deliveries(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        world.campaign(5, launch=False)
        found = plan_run(world, "spring")
        start_at = world.clock.now()
        assert [found.slots[key].at - start_at for key in sorted(found.slots)] == [
            number * MINUTE for number in range(5)
        ]
        assert found.others == {} and found.nevers == ()
        assert found.plan.finish_at == start_at + 4 * MINUTE
        assert world.counts() == {"planned": 5}, "nothing was written"

    world.play(script)


def test_a_launch_shares_the_account_and_lays_the_others_out_anew(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        world.campaign(4, name="autumn", launch=False)
        launch(world.store, "autumn", world.clock.now(), world.providers)
        world.campaign(4, launch=False)
        found = plan_run(world, "spring")
        autumn = found.others[run_of(world, "autumn")]
        start_at = world.clock.now()
        theirs = [(autumn[key].at - start_at) // MINUTE for key in sorted(autumn)]
        ours = [(found.slots[key].at - start_at) // MINUTE for key in sorted(found.slots)]
        assert (theirs, ours) == ([0, 2, 4, 6], [1, 3, 5, 7]), "in turns"

    world.play(script)


def test_slots_that_have_become_free_are_used_by_the_next_plan(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        now = world.clock.now()
        for name, count in (("large", 9), ("autumn", 3)):
            world.campaign(count, name=name, launch=False)
            launch(world.store, name, now, world.providers)
        world.write(lambda tx: campaigns.cancel(tx, "large", now))
        world.campaign(3, launch=False)
        autumn = plan_run(world, "spring").others[run_of(world, "autumn")]
        assert [(autumn[key].at - now) // MINUTE for key in sorted(autumn)] == [0, 2, 4]

    world.play(script)


def test_the_suppressed_of_a_draft_are_left_out(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(3, launch=False)
        suppress(world, "spring-0001")
        found = plan_run(world, "spring")
        assert len(found.slots) == 2
        assert [one.target for one in found.plan.unreachable] == ["spring-0001"]

    world.play(script)


def test_what_was_tried_before_or_sent_by_hand_keeps_its_own_time(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m", "retry": "2h"}, transient_at=[1])
        world.campaign(1, name="autumn")
        process = world.process()
        await world.wait(SECOND)
        await process.stop()
        world.write(
            lambda tx: campaigns.send_direct(
                tx, "ann", "x", HELLO, "message", world.clock.now(), providers=world.providers
            )
        )
        world.campaign(3, launch=False)
        found = plan_run(world, "spring")
        assert found.others == {}
        assert len(found.slots) == 3 and max(s.at for s in found.slots.values()) < (
            world.clock.now() + HOUR
        ), "a retry in two hours holds up nobody"

    world.play(script)


def test_a_window_and_an_expiry_count_from_the_launch_and_not_from_the_draft(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "30m"})
        world.campaign(9, launch=False, expire_after_us=2 * HOUR)
        await world.wait(3 * DAY)
        found = plan_run(world, "spring")
        assert len(found.slots) == 4
        assert {never.gate for never in found.nevers} == {"expiry"}
        assert len(found.plan.unreachable) == 5

    world.play(script)


def test_whoever_shares_a_pool_is_planned_together(world: World) -> None:
    """What bob has to do besides makes ann do more of what they share."""

    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"spacing": "1m"})
        world.campaign(20, name="shared", on=("ann", "bob"), assignment="pooled", launch=False)
        alone = Counter(slot.account_id for slot in plan_run(world, "shared").slots.values())
        assert set(alone.values()) == {10}
        world.campaign(8, name="bobs", on=("bob",), priority=9)
        world.campaign(1, name="anns", on=("ann",))
        both = Counter(slot.account_id for slot in plan_run(world, "shared").slots.values())
        assert sorted(both.values()) == [6, 14]
        world.write(lambda tx: campaigns.launch(tx, "shared", world.clock.now()))
        moved = {one.campaign: one for one in plan(world, 30, "ann", priority=50).others}
        assert set(moved) == {"shared", "anns"}
        assert all(one.to_at > one.from_at for one in moved.values())
        soon_at = world.clock.now() + 30 * MINUTE
        assert moved["shared"].to_at < soon_at <= moved["anns"].to_at, "bob does what ann leaves"

    world.play(script)


def test_steps_and_days_are_planned(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        follow_up = Step(2 * DAY, HELLO)
        world.campaign(6, launch=False, steps=(follow_up,), spread_days=3)
        found = plan_run(world, "spring").plan
        assert found.messages == 12
        assert list(found.accounts[0].per_day.values()) == [2, 2, 4, 2, 2]
        same = plan(world, 6, steps=(follow_up,), spread_days=3)
        assert same.messages == 12 and same.accounts[0].per_day == found.accounts[0].per_day

    world.play(script)


# ---------------------------------------------------------------------- not stored yet


def test_who_is_suppressed_or_was_written_to_lately(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"per_recipient": "1/day"})
        suppress(world, "person-0001")
        world.campaign(name="before", targets=[Target("person-0002")])
        process = world.process()
        await world.until_finished("before")
        await process.stop()
        found = plan(world, 4)
        assert [(one.target, one.why) for one in found.unreachable] == [
            ("person-0001", "recipient is suppressed")
        ]
        assert found.messages == 3
        assert found.finish_at is not None and found.finish_at > world.clock.now() + 23 * HOUR
        short = plan(world, 4, expire_after_us=HOUR)
        assert {one.target for one in short.unreachable} == {"person-0001", "person-0002"}

    world.play(script)


def test_what_today_has_used_up_already_is_not_planned_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "zone": "UTC"})
        world.campaign(7, name="before")
        process = world.process()
        await world.until_finished("before")
        await process.stop()
        found = plan(world, 15)
        assert list(found.accounts[0].per_day.values()) == [3, 10, 2]
        assert found.binding is not None and found.binding.gate == "daily"

    world.play(script)


def test_a_plan_says_which_limits_bind_where_accounts_differ(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"daily": {"message": 2}, "zone": "UTC"})
        world.account("bob", policy={"daily": {"message": 3}, "zone": "UTC"})
        binding = plan(world, 30, "ann", "bob").binding
        assert binding is not None
        assert binding.words == "daily cap binds 83 % of messages: 2 a day; 3 a day"
        world.account("cleo", policy={"daily": {"message": 2}, "zone": "UTC"})
        world.account("dan")
        binding = plan(world, 40, "ann", "cleo", "dan").binding
        assert binding is not None
        assert binding.words.endswith(": 2 a day on 2 of 3 accounts")

    world.play(script)


def test_what_if_is_tried_on_the_accounts_of_the_plan_only(world: World) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"rate": "1/min"})
        world.campaign(10, name="bobs", on=("bob",))
        faster = WhatIf(limits={"rate": "1/s"})
        plain, tried = plan(world, 10), plan(world, 10, what_if=faster)
        assert plain.finish_at == world.clock.now() + 9 * MINUTE
        assert tried.finish_at == world.clock.now() + 9 * SECOND
        with pytest.raises(InputError, match="unknown policy"):
            plan(world, 10, what_if=WhatIf(add={"new": "nothing"}))

    world.play(script)


def test_a_campaign_to_nobody_cannot_be_planned(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        with pytest.raises(InputError, match="audience is empty"):
            plan(world, 0)

    world.play(script)


# ---------------------------------------------------------------------- what is left


def test_the_time_of_arrival_stays_put_while_the_campaign_goes_on(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "10s"})
        world.campaign(60)
        start_at = world.clock.now()
        process = world.process()
        for minutes in (0, 3, 6):
            await world.wait(start_at + minutes * MINUTE + SECOND - world.clock.now())
            ahead = eta(world)
            assert ahead is not None and ahead.finish_at is not None
            assert abs(ahead.finish_at - (start_at + 590 * SECOND)) < 2 * SECOND
            assert ahead.left == 60 - world.counts()["sent"]
            assert ahead.waits_for == "spacing 10s since the last message"
        await world.until_finished()
        assert eta(world) is None
        await process.stop()

    world.play(script)


def test_nothing_is_foretold_while_nothing_moves(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1h"})
        world.campaign(3, launch=False)
        assert eta(world) is None
        now = world.clock.now()
        world.write(lambda tx: campaigns.launch(tx, "spring", now))
        assert eta(world) is not None
        world.write(lambda tx: campaigns.pause(tx, "spring", now))
        assert eta(world) is None
        world.write(lambda tx: campaigns.resume(tx, "spring", now))
        world.write(lambda tx: control.stop_all(tx, "enough", now))
        assert eta(world) is None

    world.play(script)


def test_what_cannot_go_is_told_with_the_reason(world: World) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name)
        world.campaign(10, on=("ann", "bob"))
        world.write(lambda tx: accounts.pause(tx, "bob", world.clock.now(), "on holiday"))
        ahead = eta(world)
        assert ahead is not None
        assert (ahead.left, ahead.stuck, ahead.account) == (10, 5, "ann")
        assert ahead.stuck_why == "account is paused: on holiday"
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now(), "as well"))
        ahead = eta(world)
        assert ahead is not None and ahead.finish_at is None and ahead.stuck == 10

    world.play(script)


def test_another_campaign_on_the_account_is_reckoned_with(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        world.campaign(10)
        world.campaign(10, name="other", priority=5)
        ahead = eta(world)
        assert ahead is not None
        assert ahead.finish_at == world.clock.now() + 19 * MINUTE
        assert ahead.waits_for == "its turn among others on the account"

    world.play(script)


# ---------------------------------------------------------------------- how long it takes


@pytest.mark.parametrize(("count", "seconds"), [(1_000, 0.3), (100_000, 15)])
def test_planning_is_quick(count: int, seconds: float, world: World) -> None:
    """By processor time, which does not depend on who else is busy; about a third of it is used."""

    async def script(world: World) -> None:
        names = tuple(f"mail-{number}" for number in range(5))
        for name in names:
            world.account(name, preset="cold-email")
        spec = CampaignSpec("wanted", names, HELLO, action="email")
        targets = [Target(f"person-{number}@example.com") for number in range(count)]
        plan_for(world, spec, targets[:10])
        began = time.process_time()
        found = plan_for(world, spec, targets)
        took = time.process_time() - began
        assert found.messages == count
        assert took < seconds

    world.play(script)


def test_the_states_still_add_up_after_a_plan(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "1m"})
        world.campaign(3)
        before = world.read(lambda tx: tx.deliveries.page())
        plan(world, 5)
        plan_run(world, "spring")
        assert world.read(lambda tx: tx.deliveries.page()) == before
        assert {delivery.state for delivery in before} == {DeliveryState.READY}
        assert parse_instant("2026-03-02T09:00:00Z") == world.start_at

    world.play(script)
