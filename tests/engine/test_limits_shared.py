"""Limits held against what waits in pools and against what is to follow: checked, and put right."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, Instant
from paceline.core.model import Content, Part, Step
from paceline.engine import launching, limits
from paceline.engine.catalogue import Catalogue, apply_catalogue
from paceline.engine.limits import Finding, Repair
from paceline.engine.ports import Delivery
from paceline.store.timetable import Timetable
from tests.engine.scenes import change, deliveries, finish, per_day, say, sql, suppress
from tests.engine.world import MONDAY_NINE, World

POOL = ("ann", "bob")
COLD = {
    "hours": "Mon-Fri 09:00-18:00 UTC",
    "spacing": "5m..20m",
    "min_gap": "6m",
    "daily": {"message": 20},
}
AGAIN = Content((Part("text", "and again"),))
FOLLOWS = (Step(DAY, AGAIN),)
TWICE = (Step(DAY, AGAIN), Step(2 * DAY, AGAIN))
Script = Callable[[World], None]


def launched(world: World, count: int, name: str = "spring", **spec: Any) -> None:
    world.campaign(count, name=name, launch=False, **spec)
    launching.launch(world.store, name, world.clock.now(), world.providers)


def pooled(world: World, count: int, policy: dict[str, Any] | None = None, **spec: Any) -> None:
    for name in POOL:
        world.account(name, policy=policy or COLD)
    launched(world, count, on=POOL, assignment="pooled", **spec)


def checked(world: World, *names: str) -> list[Finding]:
    chosen = [world.account_now(name) for name in names] or None
    return world.read(lambda tx: limits.check(tx, world.clock.now(), chosen))


def fixed(world: World, *names: str, dry_run: bool = False) -> list[Repair]:
    chosen = [world.account_now(name) for name in names] or None
    return limits.fix(world.store, world.clock.now(), chosen, dry_run=dry_run)


def tightened(world: World, *names: str, **overrides: Any) -> None:
    for name in names or POOL:
        change(world, name, overrides=overrides)


def by_id(world: World) -> dict[int, Delivery]:
    return {row.id: row for row in deliveries(world)}


def minute(row: Delivery) -> Instant:
    return row.scheduled_at if row.due_at is None else row.due_at


def days(world: World) -> dict[str, int]:
    return per_day([minute(row) for row in deliveries(world)], "UTC")


def lags(world: World) -> list[int]:
    """How long after the first message of each the second one goes."""
    firsts = {row.position: minute(row) for row in deliveries(world) if row.step == 1}
    return [minute(row) - firsts[row.position] for row in deliveries(world) if row.step == 2]


# ---------------------------------------------------------------------- pools


def test_what_waits_in_a_pool_is_checked_against_what_its_accounts_can_take(
    either: Callable[[Script], None],
) -> None:
    """As an operator does it: another cap in the file, and another look."""

    def script(world: World) -> None:
        ours = {"sales": COLD}
        world.house = type(world.house)(world.providers, Catalogue(ours))
        for name in POOL:
            world.account(name, preset="sales")
        launched(world, 200, on=POOL, assignment="pooled", steps=FOLLOWS)
        assert checked(world) == []
        lower = Catalogue({"sales": {**COLD, "daily": {"message": 5}}})
        world.write(lambda tx: apply_catalogue(tx, lower, world.clock.now()))
        found = checked(world)
        first = found[0]
        assert (first.account, first.pool, first.accounts) == ("", "spring", POOL)
        assert (first.day, first.rule) == (date(2026, 3, 2), "daily")
        assert (first.count, first.cap, first.offending) == (40, 10, 30)
        assert first.text == "daily cap 10 on 2026-03-02 was planned to 40"
        beyond = sum(max(0, count - 10) for count in days(world).values())
        assert sum(one.offending for one in found) == beyond > 250
        would = fixed(world, dry_run=True)
        (repair,) = fixed(world)
        assert [repair] == would
        assert (repair.account, repair.pool, repair.nevers) == ("", "spring", ())
        assert checked(world) == []
        assert fixed(world) == []
        assert max(days(world).values()) == 10

    either(script)


def test_a_pool_s_deliveries_stay_nobody_s_and_say_why_they_moved(
    either: Callable[[Script], None],
) -> None:
    def script(world: World) -> None:
        pooled(world, 60)
        before = by_id(world)
        tightened(world, daily={"message": 10})
        found = checked(world)
        fixed(world)
        after = by_id(world)
        offending = {number for one in found for number in one.deliveries}
        assert {number for number in after if after[number] != before[number]} == offending
        assert {after[number].reason for number in offending} == {
            "moved by limits fix: daily cap 20 on 2026-03-02 was planned to 40"
        }
        for number, row in after.items():
            assert row.account_id is None
            assert row.scheduled_at == before[number].scheduled_at
            assert minute(row) >= minute(before[number])
        assert days(world) == {"2026-03-02": 20, "2026-03-03": 20, "2026-03-04": 20}

    either(script)


def test_the_pools_of_a_named_account_are_looked_at(world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 60)
        world.account("eve", policy=COLD)
        tightened(world, daily={"message": 10})
        assert checked(world, "eve") == []
        assert fixed(world, "eve") == []
        assert [one.pool for one in checked(world, "bob")] == ["spring"]
        assert [one.pool for one in fixed(world, "bob")] == ["spring"]
        assert checked(world) == []

    world.play(script)


def test_one_that_is_open_when_the_others_are_not_is_enough(world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 30, {"spacing": "10m"})
        tightened(world, "ann", hours="Mon-Fri 09:00-10:00 UTC")
        found = checked(world)
        # Two every ten minutes were planned, and from ten on one of them sends alone.
        assert Counter(one.rule for one in found) == {"gap": 1}
        tightened(world, "bob", hours="Mon-Fri 09:00-10:00 UTC")
        (found,) = checked(world)
        assert (found.rule, found.count) == ("hours", 18)
        assert found.text == "outside the business hours of all accounts of its pool"
        fixed(world)
        assert checked(world) == []

    world.play(script)


def test_who_is_paused_takes_nothing_while_others_do(world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 8, {"daily": {"message": 4}})
        say(world, "pause account", "bob")
        (found,) = checked(world)
        assert (found.count, found.cap, found.offending) == (8, 4, 4)
        say(world, "pause account", "ann")
        assert checked(world) == [], "that somebody has to help is no limit"

    world.play(script)


def test_what_an_account_has_to_itself_comes_first_and_both_take_turns(world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 40)
        launched(world, 20, name="own", on=("ann",))
        tightened(world, daily={"message": 5})
        fixed(world)
        assert checked(world) == []
        assert max(days(world).values()) == 10
        ends = {
            name: max(minute(row) for row in deliveries(world) if row.target.startswith(name))
            for name in ("spring", "own")
        }
        assert abs(ends["spring"] - ends["own"]) < 4 * DAY

    world.play(script)


def test_what_a_pool_has_overdue_takes_today_s_room(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 80)
        await world.wait(DAY)
        (found,) = checked(world)
        assert (found.day, found.rule) == (date(2026, 3, 3), "daily")
        assert (found.count, found.cap, found.offending) == (80, 40, 40)
        fixed(world)
        assert checked(world) == []
        tightened(world, daily={"message": 10})
        assert checked(world)[0].offending == 20, "of what is overdue as well"
        fixed(world)
        assert checked(world) == []

    world.play(script)


def test_what_somebody_has_moved_or_taken_since_is_left_alone(
    either: Callable[[Script], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(world: World) -> None:
        pooled(world, 8, {"daily": {"message": 4}})
        tightened(world, daily={"message": 2})
        late = sorted(number for one in checked(world) for number in one.deliveries)
        write = Timetable.put_off_pooled

        def meanwhile(timetable: Timetable, moves: Any) -> int:
            account = world.account_now("ann").id
            timetable._connection.exec_driver_sql(
                f"UPDATE deliveries SET due_at = due_at + 1 WHERE id = {late[0]}"
            )
            timetable._connection.exec_driver_sql(
                f"UPDATE deliveries SET account_id = {account} WHERE id = {late[1]}"
            )
            return write(timetable, moves)

        monkeypatch.setattr(Timetable, "put_off_pooled", meanwhile)
        fixed(world)
        moved = {number for number, row in by_id(world).items() if row.reason}
        assert moved == set(late[2:])
        undone = f"UPDATE deliveries SET account_id = NULL WHERE id = {late[1]}"
        sql(world, undone)

    either(script)


def test_what_was_put_right_in_a_pool_is_sent_as_it_was_put(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 10, steps=FOLLOWS)
        tightened(world, daily={"message": 4})
        fixed(world)
        planned = max(minute(row) for row in deliveries(world))
        await finish(world, every_us=HOUR, within_us=9 * DAY, poll_us=HOUR)
        assert world.clock.now() - planned < DAY

    world.play(script)
    assert max(per_day([effect.at for effect in world.sends()], "UTC").values()) == 8


# ---------------------------------------------------------------------- what follows


def test_what_is_to_follow_counts_in_its_day(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 15, steps=FOLLOWS)
        assert days(world) == {"2026-03-02": 15, "2026-03-03": 15}
        tightened(world, "ann", daily={"message": 10})
        told = [(one.day, one.count, one.cap, one.offending) for one in checked(world)]
        assert told == [(date(2026, 3, 2), 15, 10, 5), (date(2026, 3, 3), 15, 10, 5)]
        fixed(world)
        assert checked(world) == []
        assert fixed(world) == []
        # Tuesday is full of those that follow the ten that stay.
        assert list(days(world).values()) == [10, 10, 5, 5]
        assert min(lags(world)) >= DAY
        followers = [row for row in deliveries(world) if row.step == 2]
        assert all(row.due_at is None and row.reason == "" for row in followers)

    either(script)


@pytest.mark.parametrize("assignment", ["round_robin", "pooled"])
def test_first_messages_and_what_follows_take_turns_for_the_room_there_is(
    world: World, assignment: str
) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={**COLD, "daily": {"message": 200}, "spacing": "1s..2s"})
        tightened(world, min_gap="1s")
        launched(world, 100, on=POOL, assignment=assignment, steps=TWICE)
        assert len(days(world)) == 3
        tightened(world, daily={"message": 10}, min_gap="6m", spacing="5m..20m")
        repairs = fixed(world)
        assert all(one.nevers == () for one in repairs)
        assert checked(world) == []
        # Three hundred at twenty a day; and after two more days the last one follows.
        assert 15 <= len(days(world)) <= 15 + 2
        assert max(days(world).values()) == 20
        assert min(lags(world)) >= DAY
        # By the day that was planned for it, all would have waited for everybody's first message.
        assert sorted(lags(world))[50] < 5 * DAY
        fresh = launching.lay_anew(
            world.store,
            [world.account_now(name).id for name in POOL],
            world.clock.now(),
            "as a plan would have it",
        )
        assert fresh
        assert len(days(world)) >= 15

    world.play(script)


def test_what_follows_one_that_moves_stays_if_it_can(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"min_gap": "6m", "hours": "Mon-Fri 10:00-18:00 UTC"})
        launched(world, 2, steps=(Step(3 * DAY, AGAIN),))
        sql(world, f"UPDATE deliveries SET scheduled_at = scheduled_at + {DAY} WHERE step = 2")
        second = next(row.id for row in deliveries(world) if (row.position, row.step) == (1, 1))
        sql(world, f"UPDATE deliveries SET due_at = due_at - {3 * MINUTE} WHERE id = {second}")
        before = by_id(world)
        (repair,) = fixed(world)
        assert [move.delivery_id for move in repair.moves] == [second]
        after = by_id(world)
        assert {number for number in after if after[number] != before[number]} == {second}

    world.play(script)


def test_what_follows_somebody_who_is_put_off_has_no_minute_but_takes_its_place(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={**COLD, "daily": {"message": 3}})
        launched(world, 3, steps=(Step(DAY, AGAIN),))
        # It is put off to Friday, and what is to follow it a day later would be out of hours.
        friday = MONDAY_NINE + 4 * DAY
        sql(world, f"UPDATE deliveries SET due_at = {friday} WHERE position = 0 AND step = 1")
        assert checked(world) == []
        sql(world, f"UPDATE deliveries SET scheduled_at = {MONDAY_NINE + 7 * DAY} WHERE step = 2")
        change(world, "ann", overrides={"daily": {"message": 2}})
        monday = [one for one in checked(world) if one.day == date(2026, 3, 9)]
        assert [(one.count, one.cap) for one in monday if one.rule == "daily"] == [(3, 2)]

    world.play(script)


def test_what_follows_nobody_takes_nobody_s_place(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 5}})
        launched(world, 5, steps=FOLLOWS)
        suppress(world, "spring-0000")
        over = f"UPDATE deliveries SET expires_at = {MONDAY_NINE - 1} WHERE position = 1"
        sql(world, f"{over} AND step = 1")
        tightened(world, "ann", daily={"message": 3})
        assert checked(world) == []

    world.play(script)


# ---------------------------------------------------------------------- rate


def test_minutes_closer_than_the_rate_are_told_and_moved(either: Callable[[Script], None]) -> None:
    def script(world: World) -> None:
        world.account(policy={"rate": "1/min", "hours": "Mon-Fri 10:00-18:00 UTC"})
        launched(world, 61)
        assert checked(world) == []
        tightened(world, "ann", rate="1/h")
        (found,) = checked(world)
        assert (found.rule, found.day, found.count) == ("rate", date(2026, 3, 2), 60)
        assert found.offending == 59
        assert found.text == "rate 1/h: 60 planned between 10:00 and 10:59"
        fixed(world)
        assert checked(world) == []
        assert fixed(world) == []
        assert set(days(world).values()) == {8, 61 % 8}

    either(script)


def test_a_pool_s_minutes_are_held_against_the_rates_of_its_accounts(world: World) -> None:
    async def script(world: World) -> None:
        pooled(world, 20, {"rate": "1/min", "hours": "Mon-Fri 10:00-18:00 UTC"})
        assert checked(world) == []
        tightened(world, "ann", rate="30/h")
        (found,) = checked(world)
        assert (found.pool, found.rule, found.offending) == ("spring", "rate", 5)
        assert found.text == "faster than the accounts of its pool may send"
        fixed(world)
        assert checked(world) == []

    world.play(script)
