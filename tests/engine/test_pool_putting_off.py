"""What a pool can not send moves when no account of it can take it, to the first slot of any.

How slots are found among several accounts is ``tests/core/test_rehousing.py``.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.engine import launching, limits
from paceline.engine.commands import accounts, history
from paceline.engine.commands.history import Past, PastRow
from paceline.engine.ports import Delivery
from paceline.engine.ports.timetable import Later
from paceline.store.timetable import Timetable
from tests.engine.scenes import change, deliveries, finish, per_day, send_direct
from tests.engine.world import MONDAY_NINE, World

POOL = ("ann", "bob")
TUESDAY = parse_instant("2026-03-03T00:00:00Z")
FOUR = {"daily": {"message": 4}, "spacing": "10m"}


def pooled(world: World, count: int, on: tuple[str, ...] = POOL, **spec: Any) -> None:
    world.campaign(count, on=on, assignment="pooled", launch=False, **spec)
    launching.launch(world.store, spec.get("name", "spring"), world.clock.now(), world.providers)


def told(world: World, account: str, number: int) -> None:
    """Somebody has sent these from the same account today."""
    now = world.clock.now()
    rows = [PastRow(n + 1, now - HOUR + n, account, "message", f"told-{n}") for n in range(number)]
    with world.store.write() as tx:
        new, rejects = history.take_in(tx, rows, Past(), world.providers, now)
    assert (new, rejects) == (number, [])


def ready(world: World) -> list[Delivery]:
    return deliveries(world, lambda row: row.state == "ready")


def put_off(world: World) -> list[Delivery]:
    return sorted((row for row in ready(world) if row.reason), key=due)


def due(row: Delivery) -> Instant:
    assert row.due_at is not None
    return row.due_at


def are_capped(world: World, names: tuple[str, ...] = POOL) -> Callable[[], bool]:
    return lambda: all(world.account_now(name).state == "limit_reached" for name in names)


def test_what_no_account_can_take_is_moved_with_the_reason(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy=FOUR)
        pooled(world, 12)
        planned = {row.id: row.scheduled_at for row in deliveries(world)}
        told(world, "ann", 3)
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE, within_us=DAY)
        await world.wait(HOUR)
        await process.stop()
        assert world.counts() == {"sent": 5, "ready": 7}
        moved = put_off(world)
        assert len(moved) == 3
        assert {row.reason for row in moved} == {"Daily cap reached (4/4)"}
        assert all(row.scheduled_at == planned[row.id] < TUESDAY for row in moved)
        assert all(row.account_id is None for row in moved), "still nobody's"
        # Tomorrow two accounts have room for eight: the four that were planned, and these.
        assert per_day([due(row) for row in ready(world)], "UTC") == {"2026-03-03": 7}
        # No account can send two of them closer than it may, so no instant has three.
        starts = Counter(due(row) // (10 * MINUTE) for row in ready(world))
        assert max(starts.values()) <= 2
        assert world.read(lambda tx: limits.check(tx, world.clock.now())) == []

    world.play(script)


def test_they_are_sent_at_their_slots_from_whoever_can(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy=FOUR)
        pooled(world, 12)
        told(world, "ann", 3)
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE, within_us=DAY)
        slots = {row.id: due(row) for row in put_off(world)}
        assert len(slots) == 3
        await finish(world, process=process, every_us=HOUR, within_us=3 * DAY)
        late = [row.sent_at - slots[row.id] for row in deliveries(world) if row.id in slots]
        assert min(late) >= 0 and max(late) < 30 * MINUTE

    world.play(script)
    assert per_day([effect.at for effect in world.sends()], "UTC") == {
        "2026-03-02": 5,
        "2026-03-03": 7,
    }


def test_nothing_moves_while_one_of_them_can_go_on(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"daily": {"message": 2}})
        world.account("bob", policy={"spacing": "10m"})
        world.campaign(10, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world, ("ann",)), every_us=SECOND)
        await world.wait(15 * MINUTE)
        assert put_off(world) == []
        await finish(world, process=process, every_us=MINUTE, within_us=DAY)

    world.play(script)
    assert Counter(effect.account for effect in world.sends()) == {"ann": 2, "bob": 8}
    assert max(effect.at for effect in world.sends()) < TUESDAY


def test_the_evening_of_one_comes_before_the_morning_of_the_other(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"daily": {"message": 3}, "spacing": "1m"})
        world.account("eve", policy={"hours": "Mon-Fri 20:00-20:25 UTC", "spacing": "10m"})
        world.campaign(10, on=("ann", "eve"), assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world, ("ann",)), every_us=MINUTE)
        await world.wait(5 * MINUTE)
        evening = MONDAY_NINE + 11 * HOUR
        moved = put_off(world)
        assert [due(row) for row in moved[:3]] == [evening + n * 10 * MINUTE for n in range(3)]
        # The rest is first come, first served: three tomorrow from one, and one from the other.
        assert [due(row) for row in moved[3:6]] == [TUESDAY + n * MINUTE for n in range(3)]
        assert due(moved[6]) == evening + DAY
        assert {row.reason for row in moved} == {"Outside business hours (Mon-Fri 20:00-20:25 UTC)"}
        await finish(world, process=process, every_us=HOUR, within_us=3 * DAY)

    world.play(script)
    assert Counter(effect.account for effect in world.sends()) == {"ann": 6, "eve": 4}


def test_a_raised_cap_of_one_brings_them_forward(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={"daily": {"message": 4}, "rate": "60/min"})
        world.campaign(20, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE)
        assert len(put_off(world)) == 12
        change(world, "bob", overrides={"daily": {"message": 9}})
        await world.wait(5 * MINUTE)
        assert world.counts() == {"sent": 13, "ready": 7}
        # Bob has room for nine tomorrow, ann for four.
        assert per_day([due(row) for row in put_off(world)], "UTC") == {"2026-03-03": 7}
        await process.stop()

    world.play(script)


def test_an_account_that_goes_on_again_brings_them_forward(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={"daily": {"message": 4}, "rate": "60/min"})
        world.campaign(10, on=POOL, assignment="pooled")
        world.write(lambda tx: accounts.pause(tx, "bob", world.clock.now()))
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world, ("ann",)), every_us=MINUTE)
        # Nobody knows when the other will go on, so it has no part in it.
        assert per_day([due(row) for row in put_off(world)], "UTC") == {
            "2026-03-03": 4,
            "2026-03-04": 2,
        }
        world.write(lambda tx: accounts.resume(tx, "bob", world.clock.now()))
        await world.wait(MINUTE)
        assert world.counts() == {"sent": 8, "ready": 2}
        assert per_day([due(row) for row in put_off(world)], "UTC") == {"2026-03-03": 2}
        await process.stop()

    world.play(script)


def test_pausing_the_last_that_could_go_on_moves_them(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"daily": {"message": 2}})
        world.account("bob", policy={"spacing": "10m"})
        world.campaign(10, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world, ("ann",)), every_us=SECOND)
        world.write(lambda tx: accounts.pause(tx, "bob", world.clock.now()))
        await world.wait(5 * MINUTE)
        assert {row.reason for row in ready(world)} == {"Daily cap reached (2/2)"}
        await process.stop()

    world.play(script)


def test_a_slot_that_another_may_yet_get_back_is_waited_for(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"daily": {"message": 4}, "spacing": "30s"})
        # He takes a minute to begin. His only one of the day is refused, after another minute, in
        # which his day looks full.
        slow = {"daily": {"message": 1}, "timeout": "2m"}
        world.account("bob", policy=slow, latency="1m", reject_at=[1])
        world.campaign(12, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.wait(110 * SECOND)
        assert world.counts() == {"sent": 4, "sending": 1, "ready": 7}
        assert put_off(world) == []
        await world.wait(5 * MINUTE)
        assert world.counts() == {"sent": 5, "failed": 1, "ready": 6}
        assert {row.reason for row in ready(world)} == {"Daily cap reached (4/4)"}
        await process.stop()

    world.play(script)


def test_a_slot_of_its_own_that_may_come_back_is_waited_for(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        policy = {"daily": {"message": 3}, "rate": "60/min", "concurrency": 3}
        world.account("ann", policy=policy, latency="5s", reject_at=[3])
        world.account("bob")
        world.campaign(8, on=POOL, assignment="pooled")
        world.write(lambda tx: accounts.pause(tx, "bob", world.clock.now()))
        process = world.process(poll_us=MINUTE)
        await world.wait(5 * MINUTE)
        assert world.counts() == {"sent": 3, "failed": 1, "ready": 4}
        assert {row.reason for row in ready(world)} == {"Daily cap reached (3/3)"}
        await process.stop()

    world.play(script)


def test_campaigns_of_one_pool_take_turns(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={"daily": {"message": 4}, "rate": "60/min"})
        for name in ("spring", "summer"):
            world.campaign(10, name=name, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE)
        await world.wait(MINUTE)
        moved = [row.target.split("-")[0] for row in put_off(world)]
        assert moved == ["spring", "summer"] * 6
        assert per_day([due(row) for row in put_off(world)], "UTC") == {
            "2026-03-03": 8,
            "2026-03-04": 4,
        }
        await process.stop()

    world.play(script)


def test_what_is_planned_on_one_account_alone_keeps_its_room(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy=FOUR)
        world.campaign(3, name="alone", launch=False, start_at=TUESDAY + 9 * HOUR)
        launching.launch(world.store, "alone", world.clock.now(), world.providers)
        world.campaign(14, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE, within_us=DAY)
        await world.wait(MINUTE)
        assert per_day([due(row) for row in put_off(world)], "UTC") == {
            "2026-03-03": 5,
            "2026-03-04": 1,
        }
        await process.stop()

    world.play(script)


def test_what_somebody_has_moved_or_taken_meanwhile_stays(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Timetable.put_off_pooled

    def late(self: Timetable, moves: list[Later]) -> int:
        self.lay([(moves[0].key, TUESDAY + HOUR)], "somebody was faster")
        assert write(self, [moves[1]._replace(was_at=0)]) == 0
        return write(self, moves)

    monkeypatch.setattr(Timetable, "put_off_pooled", late)

    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={"daily": {"message": 3}})
        world.campaign(9, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE)
        assert Counter(row.reason for row in ready(world)) == {
            "Daily cap reached (3/3)": 2,
            "somebody was faster": 1,
        }
        await process.stop()

    world.play(script)


def test_a_window_that_ends_before_any_gate_opens_decides(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={"daily": {"message": 3}, "rate": "60/min"})
        window = Hours.parse("08:00-20:00 UTC")
        world.campaign(8, on=POOL, assignment="pooled", window=window, at_close="skip")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE)
        await world.wait(MINUTE)
        closes_at = parse_instant("2026-03-02T20:00:00Z")
        assert {(row.due_at, row.reason) for row in ready(world)} == {
            (closes_at, "Daily cap reached (3/3); its window ends first; no free slot in time")
        }
        await finish(world, process=process, every_us=HOUR, within_us=DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 6, "skipped": 2}


def test_a_message_by_hand_on_a_full_day_waits_beside_them(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy={"daily": {"message": 3}, "rate": "60/min"})
        world.campaign(8, on=POOL, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE)
        send_direct(world, "friend")
        await finish(world, process=process, every_us=HOUR, within_us=2 * DAY)

    world.play(script)
    tuesday = [effect.target for effect in world.sends() if effect.called_at >= TUESDAY]
    assert tuesday[0] == "friend" and len(tuesday) == 3
