"""Limits checked and plans put right: only what offends moves, with the reason, and only once."""

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.engine import launching, limits
from paceline.engine.commands import campaigns
from paceline.engine.limits import Finding, Repair
from paceline.engine.ports import Delivery
from tests.engine.scenes import (
    change,
    deliveries,
    finish,
    per_day,
    say,
    send_direct,
    sql,
    suppress,
)
from tests.engine.world import MONDAY_NINE, World

COLD = {
    "hours": "Mon-Fri 09:00-18:00 UTC",
    "spacing": "5m..20m",
    "min_gap": "6m",
    "daily": {"message": 20},
}
Script = Callable[[World], None]


def launched(world: World, count: int, name: str = "spring", **spec: Any) -> None:
    world.campaign(count, name=name, launch=False, **spec)
    launching.launch(world.store, name, world.clock.now(), world.providers)


def checked(world: World, days: int = 30) -> list[Finding]:
    return world.read(lambda tx: limits.check(tx, world.clock.now(), days=days))


def fixed(world: World, *, dry_run: bool = False) -> list[Repair]:
    return limits.fix(world.store, world.clock.now(), dry_run=dry_run)


def days_of(rows: list[Delivery]) -> dict[str, int]:
    return per_day([row.due_at for row in rows if row.due_at is not None], "UTC")


def by_id(world: World) -> dict[int, Delivery]:
    return {row.id: row for row in deliveries(world)}


def test_what_was_launched_by_plan_offends_nobody(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 45)
        assert checked(world) == []
        assert fixed(world) == []

    either(script)


def test_only_what_offends_is_moved_with_the_reason_and_only_once(
    either: Callable[[Script], None],
) -> None:
    def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 45)
        before = by_id(world)
        change(world, overrides={"daily": {"message": 10}})
        found = checked(world)
        told = [(one.when, one.day, one.rule, one.count, one.cap, one.offending) for one in found]
        assert told == [
            ("planned", date(2026, 3, 2), "daily", 20, 10, 10),
            ("planned", date(2026, 3, 3), "daily", 20, 10, 10),
        ]
        would = fixed(world, dry_run=True)
        assert by_id(world) == before, "a dry run writes nothing"
        (repair,) = fixed(world)
        assert [repair] == would
        assert (repair.account, repair.nevers, len(repair.moves)) == ("ann", (), 20)
        after = by_id(world)
        offending = {number for one in found for number in one.deliveries}
        assert {number for number in after if after[number] != before[number]} == offending
        assert {after[number].reason for number in offending} == {
            "moved by limits fix: daily cap 10 on 2026-03-02 was planned to 20",
            "moved by limits fix: daily cap 10 on 2026-03-03 was planned to 20",
        }
        assert all(after[n].scheduled_at == before[n].scheduled_at for n in after)
        assert set(days_of(list(after.values())).values()) == {10, 5}
        assert checked(world) == []
        assert fixed(world) == []
        assert by_id(world) == after

    either(script)


def test_what_was_put_right_is_sent_as_it_was_put(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 30)
        change(world, overrides={"daily": {"message": 8}})
        fixed(world)
        await finish(world, every_us=HOUR, within_us=9 * DAY, poll_us=HOUR)

    world.play(script)
    sent = per_day([effect.at for effect in world.sends()], "UTC")
    assert list(sent.values()) == [8, 8, 8, 6]


def test_what_a_lane_has_put_off_has_legal_slots_beside_what_is_planned(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "rate": "60/min"})
        launched(world, 14)
        change(world, overrides={"daily": {"message": 4}})
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.account_now().state == "limit_reached", every_us=MINUTE)
        await process.stop()
        # Four were planned for tomorrow, which is what it allows; so six go on the days after.
        days = {"2026-03-03": 4, "2026-03-04": 4, "2026-03-05": 2}
        assert days_of(deliveries(world)) == days
        assert checked(world) == []
        await finish(world, every_us=HOUR, within_us=5 * DAY, poll_us=HOUR)

    world.play(script)
    sent = per_day([effect.at for effect in world.sends()], "UTC")
    assert list(sent.values()) == [4, 4, 4, 2]


def test_what_today_has_used_counts(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "30m", "daily": {"message": 12}})
        launched(world, 12)
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: len(world.sends()) == 4, every_us=MINUTE)
        await process.stop()
        change(world, overrides={"daily": {"message": 6}})
        (found,) = checked(world)
        assert (found.count, found.cap, found.offending) == (12, 6, 6)

    world.play(script)


def test_a_lowered_weekly_cap_and_other_hours_are_seen(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 45)
        change(world, overrides={"weekly": {"message": 40}, "hours": "Mon-Fri 09:00-12:00 UTC"})
        found = checked(world)
        assert {one.rule for one in found} == {"hours"}, "what can not go then is told of once"
        fixed(world)
        assert checked(world) == []
        weeks = [row.due_at - MONDAY_NINE for row in deliveries(world) if row.due_at is not None]
        assert sum(since_us < 7 * DAY for since_us in weeks) == 40

    either(script)


def test_retries_and_messages_by_hand_keep_their_instants_and_their_room(
    either: Callable[[Script], None],
) -> None:
    def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-18:00 UTC", "daily": {"message": 3}})
        launched(world, 3)
        by_hand = send_direct(world, "somebody")
        (found,) = checked(world)
        assert (found.rule, found.count, found.cap, found.offending) == ("daily", 4, 3, 1)
        assert by_hand not in found.deliveries
        fixed(world)
        due = {row.id: row.due_at for row in deliveries(world)}
        assert due[by_hand] == MONDAY_NINE
        assert due[found.deliveries[0]] == MONDAY_NINE + DAY
        assert checked(world) == []

    either(script)


def test_the_suppressed_take_nobody_s_place(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        world.account(policy={"daily": {"message": 5}})
        launched(world, 5)
        suppress(world, "spring-0000")
        change(world, overrides={"daily": {"message": 4}})
        assert checked(world) == []

    either(script)


def test_what_a_pool_shares_is_planned_on_nobody(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"daily": {"message": 2}})
        launched(world, 10, on=("ann", "bob"), assignment="pooled")
        assert checked(world) == []
        assert fixed(world) == []

    either(script)


def test_what_has_no_legal_slot_is_told_and_stays(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        world.account(policy={"daily": {"message": 4}})
        launched(world, 4, expire_after_us=6 * HOUR)
        change(world, overrides={"daily": {"message": 3}})
        before = by_id(world)
        (repair,) = fixed(world)
        assert repair.moves == ()
        (never,) = repair.nevers
        assert never.why == "it expires at 2026-03-02 15:00 UTC, before its next legal slot"
        assert by_id(world) == before

    either(script)


def test_what_the_service_slept_through_waits_and_takes_today_s_room(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 40)
        await world.wait(DAY)
        (found,) = checked(world)
        assert (found.day, found.rule) == (date(2026, 3, 3), "daily")
        assert (found.count, found.cap, found.offending) == (40, 20, 20)

    world.play(script)


# ---------------------------------------------------------------------- past


TAMPERED: dict[str, tuple[dict[str, Any], str, tuple[int, int | None, int]]] = {
    "daily": ({"daily": {"message": 4}}, "", (4, 2, 2)),
    "weekly": ({"weekly": {"message": 4}}, "", (4, 2, 2)),
    "hours": ({"hours": "Mon-Fri 09:00-18:00 UTC"}, "started_at - 43200000000", (1, None, 1)),
    "gap": ({"min_gap": "6m"}, "started_at - 300000000", (1, None, 1)),
}


@pytest.mark.parametrize("rule", TAMPERED)
def test_past_violations_are_told_by_day(calm: None, world: World, rule: str) -> None:
    policy, moved_to, counts = TAMPERED[rule]

    async def script(world: World) -> None:
        world.account(policy=policy)
        launched(world, 4)
        await finish(world, every_us=MINUTE, within_us=DAY, poll_us=MINUTE)
        assert checked(world) == []
        if moved_to:
            number = 1 if rule == "hours" else 4
            calls = f"kind = 'outcome' AND delivery_id = {number}"
            sql(world, f"UPDATE ledger SET started_at = {moved_to} WHERE {calls}")
        else:
            # As if it had been sent under another policy: one that allows two.
            sql(world, "UPDATE policies SET body = ?", json.dumps({rule: {"message": 2}}))
        (found,) = checked(world)
        assert (found.when, found.rule, found.account) == ("past", rule, "ann")
        assert (found.count, found.cap, found.offending) == counts
        # Sunday evening is the day before.
        assert found.day == date(2026, 3, 1 if rule == "hours" else 2)
        await world.wait(3 * DAY)
        assert checked(world, days=1) == []
        await world.wait(37 * DAY)
        assert checked(world) == []
        assert [one.rule for one in checked(world, days=60)] == [rule]
        world.check = lambda: None  # type: ignore[method-assign]

    world.play(script)


def test_what_was_sent_well_after_limits_were_lowered_is_no_violation(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 6}})
        launched(world, 6)
        await finish(world, every_us=MINUTE, within_us=DAY, poll_us=MINUTE)
        change(world, overrides={"daily": {"message": 2}, "hours": "Sat-Sun 09:00-18:00 UTC"})
        assert checked(world) == []

    world.play(script)


# ---------------------------------------------------------------------- laying anew


def test_a_parked_lane_wakes_for_what_is_laid_earlier(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        account = world.account(policy={"daily": {"message": 10}})
        launched(world, 20)
        launched(world, 20, name="summer")
        now = world.clock.now()
        world.write(lambda tx: campaigns.cancel(tx, "summer", now))
        sql(world, f"UPDATE lanes SET wake_at = {now + DAY}")
        assert world.read(lambda tx: limits.accounts_of(tx, "summer")) == [account.id]
        laid = limits.lay_anew(world.store, [account.id], now, "summer was cancelled")
        assert laid.waiting == 20
        assert laid.moved
        assert len(days_of([row for row in deliveries(world) if row.state == "ready"])) == 2
        wake_at = world.read(lambda tx: tx.lanes.get(account.id)).wake_at
        assert wake_at is not None
        assert wake_at <= now

    either(script)


def test_too_many_are_not_laid_anew_in_passing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_LAID_ANEW", 9)

    async def script(world: World) -> None:
        account = world.account(policy={"daily": {"message": 5}})
        launched(world, 10)
        before = by_id(world)
        laid = limits.lay_anew(world.store, [account.id], world.clock.now(), "more room")
        assert laid == (10, None)
        assert by_id(world) == before
        other = world.account("bob")
        assert limits.lay_anew(world.store, [other.id], world.clock.now(), "") == (0, 0)

    world.play(script)


def test_a_second_more_or_less_is_no_gap_too_small(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "6m"})
        launched(world, 3)
        sql(world, f"UPDATE deliveries SET due_at = due_at - {SECOND} WHERE id = 3")
        assert checked(world) == []
        sql(world, f"UPDATE deliveries SET due_at = due_at - {MINUTE} WHERE id = 3")
        (found,) = checked(world)
        assert (found.rule, found.count) == ("gap", 1)

    world.play(script)


def test_who_has_left_a_pool_is_not_asked(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"daily": {"message": 5}})
        launched(world, 10, on=("ann", "bob"), assignment="pooled")
        assert checked(world) == []
        say(world, "remove account", "bob")
        (found,) = checked(world)
        assert (found.account, found.count, found.cap, found.offending) == ("ann", 10, 5, 5)
        fixed(world)
        assert checked(world) == []
        assert days_of(deliveries(world)) == {"2026-03-02": 5, "2026-03-03": 5}

    either(script)
