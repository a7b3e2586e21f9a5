"""What no longer fits has slots of its own, legal ones beside what is planned, with the reason.

How slots are found is ``tests/core/test_limits.py``; here it is lanes that look for them.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.engine import launching, limits, putting_off, queries
from paceline.engine.ports import Delivery
from paceline.engine.ports.timetable import Later
from paceline.store import waiting
from paceline.store.timetable import Timetable
from tests.engine.scenes import (
    Begins,
    called,
    change,
    deliveries,
    delivery,
    finish,
    per_day,
    reply,
    send_direct,
    sql,
    until,
)
from tests.engine.world import MONDAY_NINE, World

OFFICE = "Mon-Fri 09:00-18:00 UTC"
COLD = {"hours": OFFICE, "spacing": "5m..20m", "min_gap": "6m", "daily": {"message": 20}}
TUESDAY = parse_instant("2026-03-03T00:00:00Z")


def launched(world: World, count: int, name: str = "spring", **spec: Any) -> None:
    world.campaign(count, name=name, launch=False, **spec)
    launching.launch(world.store, name, world.clock.now(), world.providers)


def ready(world: World) -> list[Delivery]:
    return deliveries(world, lambda row: row.state == "ready")


def put_off(world: World) -> list[Delivery]:
    """Those that have moved, in the order in which they are due."""
    return sorted((row for row in ready(world) if row.reason), key=due)


def due(row: Delivery) -> Instant:
    assert row.due_at is not None
    return row.due_at


def days_of(rows: list[Delivery]) -> dict[str, int]:
    return per_day([due(row) for row in rows], "UTC")


def is_capped(world: World) -> Callable[[], bool]:
    return lambda: world.account_now().state == "limit_reached"


def found_by_check(world: World) -> list[limits.Finding]:
    return world.read(lambda tx: limits.check(tx, world.clock.now()))


def test_each_has_a_legal_slot_of_its_own_and_a_check_counts_it(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD)
        launched(world, 45)
        planned = {row.id: row.scheduled_at for row in deliveries(world)}
        # Somebody writes eight from the same mailbox: that many of today's no longer fit.
        for number in range(8):
            send_direct(world, f"friend-{number}")
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE, within_us=DAY)
        await process.stop()
        moved = put_off(world)
        assert [row.id for row in moved] == list(range(13, 21))
        assert {row.reason for row in moved} == {"Daily cap reached (20/20)"}
        assert all(row.scheduled_at == planned[row.id] for row in moved)
        # Tomorrow is full, and the day after has room for fifteen more.
        assert days_of(moved) == {"2026-03-04": 8}
        assert all(Hours.parse(OFFICE).is_open(due(row)) for row in moved)
        left = sorted(ready(world), key=due)
        assert min(due(later) - due(sooner) for sooner, later in pairwise(left)) >= 6 * MINUTE
        assert days_of(left) == {"2026-03-03": 20, "2026-03-04": 13}
        assert found_by_check(world) == []
        sql(world, f"UPDATE deliveries SET due_at = due_at - {2 * HOUR} WHERE id = {moved[0].id}")
        (found,) = found_by_check(world)
        assert (found.rule, found.deliveries) == ("hours", (moved[0].id,))

    world.play(script)


def test_they_are_sent_at_their_slots_and_the_whole_is_done_in_time(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD, latency="1s")
        launched(world, 45)
        for number in range(8):
            send_direct(world, f"friend-{number}")
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE, within_us=DAY)
        slots = {row.target: due(row) for row in put_off(world)}
        await finish(world, process=process, every_us=HOUR, within_us=5 * DAY)
        late = [delivery(world, target).sent_at or 0 for target in slots]
        late = [at - slots[target] for at, target in zip(late, slots, strict=True)]
        assert min(late) >= 0
        assert max(late) < 2 * HOUR, "only gaps that are drawn again keep them waiting"

    world.play(script)
    sent = per_day([effect.at for effect in world.sends()], "UTC")
    assert sent == {"2026-03-02": 20, "2026-03-03": 20, "2026-03-04": 13}


def test_closing_time_leaves_what_is_late_to_the_next_morning(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-10:00 UTC", "spacing": "10m"})
        world.campaign(9)
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        moved = put_off(world)
        assert {row.reason for row in moved} == {"Outside business hours (Mon-Fri 09:00-10:00 UTC)"}
        assert [due(row) for row in moved] == [
            MONDAY_NINE + DAY + n * 10 * MINUTE for n in range(3)
        ]
        assert found_by_check(world) == []

    world.play(script)
    assert world.counts_at_end == {"sent": 6, "ready": 3}


def test_many_more_than_a_thousand_have_their_slots_at_once(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 500}, "rate": "60/min"})
        world.campaign(3_000)
        process = world.process(poll_us=HOUR)
        await world.until(is_capped(world), every_us=MINUTE, within_us=DAY)
        await process.stop()
        moved = put_off(world)
        assert list(days_of(moved).values()) == [500] * 5
        assert len({due(row) for row in moved}) == 2_500
        # In the order in which they waited, a second after each other from midnight on.
        assert [row.id for row in moved] == list(range(501, 3_001))
        assert due(moved[0]) == TUESDAY and due(moved[499]) == TUESDAY + 499 * SECOND
        assert found_by_check(world) == []

    world.play(script)


def test_beside_too_many_they_stay_as_they_are_and_go_in_their_order(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(putting_off, "MOST_BOOKED", 9)

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "rate": "60/min"})
        world.campaign(25)
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE)
        assert put_off(world) == []
        assert world.account_now().state_reason == "daily cap reached (10/10)"
        await world.wait(DAY)
        # Five are left, and for those there are slots.
        assert [row.id for row in put_off(world)] == [21, 22, 23, 24, 25]
        await finish(world, process=process, every_us=HOUR, within_us=3 * DAY)

    world.play(script)
    assert list(per_day(called(world), "UTC").values()) == [10, 10, 5]
    order = [effect.target for effect in world.sends()]
    assert order == sorted(order)


def test_campaigns_that_wait_for_the_same_gate_take_turns(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "rate": "60/min"})
        for name, priority in (("spring", 0), ("summer", 0), ("autumn", 5)):
            world.campaign(12, name=name, priority=priority)
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE)
        await process.stop()
        # Ten of the urgent one went today. Its other two are first, and then the others share.
        moved = [row.target.split("-")[0] for row in put_off(world)]
        assert moved[:2] == ["autumn"] * 2
        assert moved[2:] == ["spring", "summer"] * 12
        assert list(days_of(put_off(world)).values()) == [10, 10, 6]

    world.play(script)


def test_what_has_no_slot_in_time_stands_in_line_and_is_first(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "rate": "60/min"})
        launched(world, 30)
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE, within_us=DAY)
        # Tomorrow is full, and on the day after it is too late for them.
        world.campaign(2, name="urgent", expire_after_us=20 * HOUR)
        await world.wait(5 * MINUTE)
        in_line = [delivery(world, f"urgent-000{n}") for n in range(2)]
        reason = "Daily cap reached (10/10); no free slot in time"
        assert [(row.due_at, row.reason) for row in in_line] == [(TUESDAY, reason)] * 2
        # They are planned for no minute, and so they are in nobody's way.
        assert found_by_check(world) == []
        why = world.read(lambda tx: queries.why_delivery(tx, in_line[0].id, world.clock.now()))
        assert why.verdict.why == "daily cap reached (10/10)"  # type: ignore[union-attr]
        await world.wait(TUESDAY + HOUR - world.clock.now())
        await process.stop()

    world.play(script)
    assert world.counts_at_end["sent"] == 18, "two of tomorrow's had to give way"
    tuesday = [effect.target for effect in world.sends() if effect.called_at >= TUESDAY]
    assert tuesday[:3] == ["urgent-0000", "spring-0010", "urgent-0001"], "in turns, as always"


def test_nobody_goes_ahead_for_want_of_a_slot_in_a_year(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 1}})
        world.campaign(500)
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE)
        await process.stop()
        rows = sorted(ready(world), key=lambda row: (due(row), row.id))
        assert [row.id for row in rows] == list(range(2, 501))
        in_line = [row for row in rows if row.reason.endswith("; no free slot in time")]
        assert [row.id for row in in_line] == list(range(500 - len(in_line) + 1, 501))
        assert len(in_line) in range(95, 100)

    world.play(script)


def test_a_window_that_ends_before_the_gate_opens_decides(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 3}, "rate": "60/min"})
        world.campaign(5, window=Hours.parse("08:00-20:00 UTC"), at_close="skip")
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE)
        closes_at = parse_instant("2026-03-02T20:00:00Z")
        assert {(row.due_at, row.reason) for row in ready(world)} == {
            (closes_at, "Daily cap reached (3/3); its window ends first; no free slot in time")
        }
        await finish(world, process=process, every_us=HOUR, within_us=DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 3, "skipped": 2}


def test_what_was_tried_keeps_its_instant_and_what_was_sent_by_hand_has_no_slot(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        policy = {"hours": "Mon-Fri 09:00-09:30 UTC", "spacing": "10m", "retry": "25m"}
        world.account(policy=policy, transient_at=[2])
        world.campaign(6)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR)
        send_direct(world, "eve")
        await world.wait(HOUR)
        (retry,) = [row for row in ready(world) if row.attempts]
        assert due(retry) < MONDAY_NINE + 40 * MINUTE
        # What was sent by hand waits where the gate opens, beside what is planned for then.
        why = "Outside business hours (Mon-Fri 09:00-09:30 UTC)"
        opens_at = MONDAY_NINE + DAY
        assert (delivery(world, "eve").due_at, delivery(world, "eve").reason) == (opens_at, why)
        planned = [row for row in put_off(world) if row.reason == why and row.target != "eve"]
        assert [due(row) for row in planned] == [opens_at + n * 10 * MINUTE for n in range(3)]
        assert found_by_check(world) == []
        await finish(world, process=process, every_us=HOUR, within_us=3 * DAY)

    world.play(script)
    tuesday = [effect.target for effect in world.sends() if effect.called_at >= TUESDAY]
    assert tuesday[:2] == ["eve", "spring-0001"], "by hand, then what was tried, then the others"


def test_a_reply_does_not_wait_for_the_gate_of_a_message_before_it(world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-02T20:00:00Z"))

    async def script(world: World) -> None:
        world.account(policy={"hours": OFFICE, "daily": {"reply": 1}})
        send_direct(world, "eve")
        for name in ("adam", "seth"):
            reply(world, name)
        process = world.process()
        await world.wait(10 * SECOND)
        assert [effect.target for effect in world.sends()] == ["adam"]
        assert delivery(world, "seth").reason == "Daily cap reached (1/1)"
        assert delivery(world, "eve").reason == f"Outside business hours ({OFFICE})"
        assert (due(delivery(world, "seth")), due(delivery(world, "eve"))) == (
            TUESDAY,
            TUESDAY + 9 * HOUR,
        )
        await process.stop()

    world.play(script)


def test_a_raised_cap_brings_them_forward(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 10}, "rate": "60/min"})
        world.campaign(40)
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE)
        assert list(days_of(put_off(world)).values()) == [10, 10, 10]
        change(world, overrides={"daily": {"message": 25}})
        await world.wait(5 * MINUTE)
        assert world.counts() == {"sent": 25, "ready": 15}
        assert days_of(put_off(world)) == {"2026-03-03": 15}
        assert {row.reason for row in put_off(world)} == {"Daily cap reached (25/25)"}
        await process.stop()

    world.play(script)


def test_a_slot_that_comes_back_is_used_the_same_day(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        # The second message is lost over and over, until nobody tries any more.
        world.account(policy={"daily": {"message": 3}}, lost_at=[2, 4, 5, 6], timeout_latency="1s")
        world.campaign(5)
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: len(put_off(world)) == 2, SECOND // 10)
        await until(world, lambda: len(world.sends()) == 3, MINUTE, 6 * HOUR)
        assert world.clock.now() < TUESDAY
        assert world.counts() == {"sent": 3, "failed": 1, "ready": 1}
        assert days_of(put_off(world)) == {"2026-03-03": 1}
        await process.stop()

    world.play(script)


def test_slots_are_looked_for_once_for_each_time_that_a_gate_shuts(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    due_on = waiting.Waiting.due
    monkeypatch.setattr(waiting.Waiting, "due", lambda *args: looks.append(args) or due_on(*args))

    async def script(world: World) -> None:
        # A retry waits for the window to open, while another campaign sends on and on.
        world.account(policy={"spacing": "1m", "retry": "3m"}, transient_at=[3])
        world.campaign(3, window=Hours.parse("09:00-09:04 UTC"))
        world.campaign(60, name="summer")
        await finish(world, "summer", every_us=MINUTE, within_us=2 * HOUR)
        (retry,) = [row for row in ready(world) if row.attempts]
        assert due(retry) < world.clock.now() - HOUR // 2

    world.play(script)
    assert len(looks) == 1


def test_what_somebody_has_moved_meanwhile_stays_there(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Timetable.put_off

    def late(self: Timetable, account_id: int, moves: list[Later]) -> int:
        self.lay([(moves[0].key, TUESDAY + HOUR)], "somebody was faster")
        return write(self, account_id, moves)

    monkeypatch.setattr(Timetable, "put_off", late)

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 3}})
        world.campaign(5)
        process = world.process(poll_us=MINUTE)
        await world.until(is_capped(world), every_us=MINUTE)
        assert {(row.due_at, row.reason) for row in ready(world)} == {
            (TUESDAY, "Daily cap reached (3/3)"),
            (TUESDAY + HOUR, "somebody was faster"),
        }
        await process.stop()

    world.play(script)
