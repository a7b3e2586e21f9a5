"""``verify`` keeps quiet: whatever operators change and providers answer, what is sent is allowed.

Each story ends with every invariant checked, as all stories do; these are the ones in which a
naive reading of the ledger would raise an alarm.
"""

from typing import Any, Literal

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Part
from paceline.engine.ports import LedgerRow
from paceline.engine.verify import attempts_of
from tests.engine.scenes import (
    THREE_PARTS,
    TWO_PARTS,
    Begins,
    called,
    change,
    delivery,
    finish,
    gaps,
    intents,
    reply,
    say,
    send_direct,
    until,
    violations,
)
from tests.engine.test_lookahead import QUICKLY, Server, answering
from tests.engine.world import World
from tests.engine.worlds import Worlds


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"rate": "60/min"}, {"rate": "6/min"}),
        ({"rate": "6/min"}, {"rate": "60/min"}),
        ({"rate": "60/min burst 5"}, {"rate": "60/min"}),
        ({"rate": "60/min"}, {"rate": "60/min burst 5"}),
        ({"rate": "60/min"}, {"rate": "off"}),
        ({}, {"rate": "30/min"}),
        ({"spacing": "2s"}, {"spacing": "8s"}),
        ({"spacing": "8s"}, {"spacing": "2s"}),
        ({}, {"min_gap": "5s"}),
        ({"rate": "60/min", "daily": {"message": 20}}, {"daily": {"message": 3}}),
        ({"rate": "60/min"}, {"daily": {"message": 6}}),
        ({"rate": "60/min", "zone": "UTC"}, {"zone": "Asia/Tokyo"}),
        ({"rate": "60/min", "daily": {"message": 9}}, {"zone": "Pacific/Auckland"}),
        ({"rate": "60/min"}, {"hours": "Mon-Fri 10:00-18:00 UTC"}),
        ({"rate": "60/min"}, {"warmup": "2 +10%/day to 9"}),
    ],
)
@pytest.mark.parametrize("parts", [THREE_PARTS[:1], TWO_PARTS], ids=["one part", "two parts"])
def test_a_policy_may_change_in_the_middle_of_a_day(
    world: World, before: dict[str, Any], after: dict[str, Any], parts: tuple[Part, ...]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"concurrency": 2, **before}, latency="200ms..900ms")
        world.campaign(12, parts=parts)
        process = world.process()
        await world.wait(4 * SECOND + 700_000)
        change(world, overrides=after)
        await world.wait(20 * SECOND)
        change(world, unset=tuple(after), overrides={"rate": "60/min"})
        await world.wait(15 * SECOND)
        await process.stop()
        assert len(intents(world)) > 3

    world.play(script)


def test_slots_given_back_may_be_used_again_the_same_day(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"daily": {"message": 5}, "retry": "2s", "concurrency": 3},
            reject_at=[1, 4, 6],
            transient_at=[2, 3],
            lost_at=[5],
            timeout_latency="2s",
        )
        world.campaign(8)
        process = world.process()
        await world.wait(3 * MINUTE)
        assert world.counts()["sent"] == 5
        await process.stop()

    world.play(script)


def test_replies_go_at_night_and_close_to_the_last_message(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-02T17:58:00Z"))

    async def script(world: World) -> None:
        world.account(
            policy={
                "hours": "Mon-Fri 09:00-18:00 UTC",
                "spacing": "10m",
                "rate": "60/min",
                "batch": "1 then 1h",
                "daily": {"message": 1, "reply": 3},
            }
        )
        world.campaign(2)
        process = world.process(poll_us=SECOND)
        await world.wait(10 * SECOND)
        assert len(world.sends()) == 1
        answered_at = world.clock.now()
        for name in ("eve", "adam", "seth", "noah"):
            reply(world, name)
        await until(world, lambda: len(world.sends()) == 4)
        assert world.clock.now() - answered_at <= 6 * SECOND
        assert min(gaps(called(world))[1:]) >= SECOND
        # The fourth has no slot left today, and a reply does not use up the messages' cap.
        assert delivery(world, "noah").state == "ready"
        assert [row.action for row in intents(world)] == ["message", "reply", "reply", "reply"]
        await process.stop()

    world.play(script)


def test_a_reply_goes_ahead_of_a_campaign_and_not_from_a_paused_account(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "30/min"})
        world.campaign(4)
        process = world.process()
        await world.wait(3 * SECOND)
        say(world, "pause account")
        reply(world, "eve")
        await world.wait(10 * SECOND)
        assert [e.target for e in world.sends()] == ["spring-0000", "spring-0001"]
        say(world, "resume account")
        await finish(world, process=process)

    world.play(script)
    order = [effect.target for effect in world.sends()]
    assert order == ["spring-0000", "spring-0001", "eve", "spring-0002", "spring-0003"]


def test_a_takeover_leaves_the_pace_as_it_was(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "30/min", "concurrency": 3, "part_gap": "1s"}, latency="1s")
        world.campaign(12, parts=TWO_PARTS)
        first = world.process()
        await world.wait(7 * SECOND)
        await first.kill()
        second = world.process("two")
        await world.wait(30 * SECOND)
        await second.kill()
        await finish(world, process=world.process("three"))

    world.play(script)
    assert world.counts_at_end == {"sent": 12}
    assert min(gaps(called(world))) >= 2 * SECOND


def test_a_removed_account_keeps_its_history_and_its_name_may_be_used_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "daily": {"message": 3}})
        world.campaign(5)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 3)
        await world.wait(SECOND)
        say(world, "remove account")
        world.account(policy={"rate": "60/min", "daily": {"message": 3}})
        world.campaign(3, name="again")
        await finish(world, "spring", "again", process=process)

    world.play(script)
    assert len(world.sends()) == 6


def test_days_weeks_and_zones_add_up_over_a_long_story(calm: None, world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-27T20:00:00Z"))  # the clocks change on Sunday

    async def script(world: World) -> None:
        world.account(
            policy={
                "zone": "Europe/Paris",
                "daily": {"message": 6},
                "weekly": {"message": 15},
                "spacing": "20m..40m",
            },
            reject_rate=0.2,
            transient_rate=0.2,
        )
        world.campaign(40)
        process = world.process(poll_us=HOUR)
        await world.wait(2 * DAY)
        change(world, overrides={"zone": "America/Los_Angeles"})
        send_direct(world, "eve")
        await world.wait(2 * DAY)
        change(world, overrides={"daily": {"message": 9}, "zone": "UTC"})
        await finish(world, process=process, every_us=HOUR, within_us=20 * DAY)

    world.play(script)


def test_intents_of_one_instant_need_no_gap_where_none_is_wanted(worlds: Worlds) -> None:
    """That of the next message may be written in the very instant in which one is called for, and
    rows of one instant come in the order of their deliveries."""

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        world.campaign(6, name="autumn")
        process = world.process(providers=Server(world, answering(then=QUICKLY)).registry())
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        instants = [row.at for row in intents(world)]
        assert len(set(instants)) < len(instants)
        assert violations(world) == []

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)


@pytest.mark.parametrize("calls", [(5, 3, 4), (3, None, 5)], ids=str)
def test_attempts_of_one_instant_are_judged_in_the_order_of_their_calls(
    calls: tuple[int | None, ...],
) -> None:
    at = parse_instant("2026-03-02T09:00:00Z")

    def row(kind: Literal["intent", "outcome"], number: int, call: int | None) -> LedgerRow:
        started_at = None if call is None else at + call
        return LedgerRow(number, 0, 1, kind, 1, 1, "message", at, at, started_at, 1, 1, 1)

    rows = []
    for number, call in enumerate(calls):
        rows += [row("intent", number, None), row("outcome", number, call)]
    called_at = [one.happened_at or at for one in attempts_of(rows)]
    assert called_at == sorted(called_at) and len(called_at) == 3
