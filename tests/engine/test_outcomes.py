"""What follows from each answer of a provider, from the call to the last retry."""

from itertools import pairwise

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.retry import after_retries
from paceline.core.states import DeliveryState
from tests.engine.doubles import Act, Double
from tests.engine.scenes import (
    TWO_PARTS,
    called,
    deliveries,
    delivery,
    finish,
    gaps,
    intents,
    outcomes,
    send_direct,
    sql,
    to,
    until,
)
from tests.engine.world import World

FAST = "10ms"


# ---------------------------------------------------------------------- transient


@pytest.mark.parametrize(
    ("ladder", "waits"),
    [
        ("1m,5m,15m", [MINUTE, 5 * MINUTE, 15 * MINUTE]),
        ("3s doubling", [3 * SECOND, 6 * SECOND, 12 * SECOND]),
        ("2s,4s", [2 * SECOND, 4 * SECOND]),
        ("none", []),
    ],
)
def test_a_transient_failure_climbs_the_ladder_and_then_fails(
    calm: None, world: World, ladder: str, waits: list[int]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": ladder}, latency=FAST)
        world.campaign(targets=to("transient"))
        process = world.process(poll_us=HOUR)
        await until(world, lambda: bool(world.calls()), SECOND)
        if waits:
            found = delivery(world, "transient")
            assert found.reason.startswith(
                f"it did not work this time; retry 1 of {len(waits)} in "
            )
        await finish(world, process=process, every_us=10 * SECOND, within_us=HOUR)
        found = delivery(world, "transient")
        assert found.state is DeliveryState.FAILED
        assert found.reason == f"it did not work this time ({after_retries(len(waits))})"
        assert found.attempts == len(waits) + 1
        # Each wait is counted from the answer to the attempt before it, to the microsecond.
        answered = [row.at for row in outcomes(world)]
        for answer, wait, intent in zip(answered, waits, intents(world)[1:], strict=False):
            assert 0 <= intent.at - (answer + wait) <= 20_000

    world.play(script)
    assert world.counts_at_end == {"failed": 1}
    assert len(called(world)) == len(waits) + 1


def test_a_retry_that_gets_through_is_sent_and_blocks_nobody_meanwhile(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=to("flaky", "a", "b", "c"))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 4}
    assert [effect.target for effect in world.calls()] == ["flaky", "a", "b", "c", "flaky"]


def test_a_part_that_fails_is_retried_alone(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "5s"}, transient_at=[2])
        world.campaign(1, parts=(*TWO_PARTS, Part("text", "three")))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert [effect.key for effect in world.calls()] == [
        "test-1-0",
        "test-1-1",
        "test-1-1",
        "test-1-2",
    ]


# ---------------------------------------------------------------------- throttled, away, exhausted


def test_a_throttle_waits_as_asked_then_goes_slower_and_climbs_back(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(
            preset="whatsapp-established",
            policy={"concurrency": 1, "throttle": {"to": "20/min", "recover": "6m"}},
            throttle_at=[11],
            retry_after="90s",
            latency=FAST,
        )
        world.campaign(180)
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: len(world.calls()) == 11, SECOND // 2)
        await finish(world, process=process, every_us=MINUTE, within_us=2 * HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 180}
    spread = gaps(called(world))
    assert spread[:10] == [1_500_000] * 10
    answered_at = called(world)[10] + 10_000
    assert called(world)[11] == answered_at + 90 * SECOND
    # 20 a minute at first, for the way back begins when the wait is over; never a step down.
    after = spread[11:]
    assert abs(after[0] - 3_000_000) < 20_000
    assert all(later <= earlier for earlier, later in pairwise(after))
    recovered_at = answered_at + 90 * SECOND + 6 * MINUTE
    late = [gap for at, gap in zip(called(world)[11:], after, strict=False) if at > recovered_at]
    assert late and set(late) == {1_500_000}


def test_the_whole_account_waits_out_a_throttle(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"concurrency": 3, "part_gap": "2s"}, throttle_at=[3], retry_after="30s"
        )
        world.campaign(4, parts=TWO_PARTS)
        process = world.process()
        await until(world, lambda: len(world.calls()) == 3, SECOND // 10)
        await world.wait(SECOND)
        send_direct(world, "eve")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 4}
    throttled = world.calls()[2]
    later = [at for at in called(world) if at > throttled.at]
    assert min(later) >= throttled.at + 30 * SECOND


def test_without_a_time_to_wait_each_throttle_in_a_row_waits_longer(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"spacing": "1s"}, throttle_at=[2, 3, 4], retry_after="none", latency=FAST
        )
        world.campaign(3)
        await finish(world, every_us=10 * SECOND, within_us=HOUR)

    world.play(script)
    waits = gaps(called(world))[1:4]
    assert [round(wait / MINUTE, 2) for wait in waits] == [1.0, 2.0, 4.0]
    assert world.counts_at_end == {"sent": 3}


def test_an_outage_is_waited_out_with_growing_pauses_and_nobody_fails(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(unavailable_at=[1, 2, 3, 4, 5, 6, 7], latency=FAST)
        world.campaign(2)
        await finish(world, every_us=MINUTE, within_us=3 * HOUR, poll_us=HOUR)

    world.play(script)
    waits = [round(wait / SECOND) for wait in gaps(called(world))[:7]]
    assert waits == [20, 40, 80, 160, 320, 640, 900]
    assert world.counts_at_end == {"sent": 2}


def test_an_account_that_cannot_be_opened_is_tried_again_until_it_can(world: World) -> None:
    async def script(world: World) -> None:
        world.account(unavailable=["2026-03-02T09:00Z..2026-03-02T09:01Z"])
        world.campaign(2)
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert called(world)[0] >= parse_instant("2026-03-02T09:01:00Z")


def test_an_exhausted_quota_waits_for_tomorrow(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"zone": "Europe/Paris"}, quota_per_day=3)
        world.campaign(4)
        await finish(world, every_us=10 * MINUTE, within_us=2 * DAY, poll_us=HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 4}
    # Tomorrow by the account's own zone first; the provider's day is still the old one then, so
    # the next try is a day later.
    assert called(world)[4] >= parse_instant("2026-03-02T23:00:00Z")


def test_a_message_between_two_parts_does_not_wait_for_tomorrow_on_the_line(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        account = world.account(
            policy={"concurrency": 2, "part_gap": "3s", "zone": "UTC"}, latency="500ms"
        )
        world.campaign(targets=to("eve", "exhausted"), parts=TWO_PARTS)
        process = world.process()
        await world.wait(10 * SECOND)
        half = delivery(world, "eve")
        assert (half.state, half.parts_done) == (DeliveryState.READY, 1)
        lane = world.read(lambda tx: tx.lanes.get(account.id))
        assert (lane.owner, lane.wake_at) == (None, parse_instant("2026-03-03T00:00:00Z"))
        asked_at = world.clock.now()
        await process.stop()
        assert world.clock.now() == asked_at
        await finish(
            world,
            process=world.process("two", poll_us=HOUR),
            every_us=10 * MINUTE,
            within_us=2 * DAY,
        )

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert [effect.key for effect in world.sends() if effect.target == "eve"] == [
        "test-1-0",
        "test-1-1",
    ]


# ---------------------------------------------------------------------- permanent


def test_a_rejected_message_fails_at_once(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=to("reject", "a"))
        await finish(world)
        found = delivery(world, "reject")
        assert (found.state, found.reason) == ("failed", "the message is refused")
        assert world.read(lambda tx: tx.suppressions.list()) == []

    world.play(script)
    assert len(world.calls()) == 2


def test_a_bounced_address_is_never_written_to_again_by_anybody(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "60/min"})
        world.account("bob", policy={"rate": "6/min"})
        world.campaign(targets=to("bounce", "a"))
        world.campaign(name="other", on=("bob",), targets=to("b", "bounce"))
        await finish(world, "spring", "other")
        assert delivery(world, "a").state is DeliveryState.SENT
        found = deliveries(world, lambda row: row.target == "bounce")
        assert sorted((row.state, row.reason) for row in found) == [
            ("bounced", "the address does not exist"),
            ("skipped", "recipient is suppressed"),
        ]
        ((address, reason, source, _),) = world.read(lambda tx: tx.suppressions.list())
        assert (address, reason, source) == ("bounce", "the address does not exist", "bounce")

    world.play(script)
    assert len([effect for effect in world.calls() if effect.target == "bounce"]) == 1


# ---------------------------------------------------------------------- what fails before a call


def test_a_template_that_fails_at_send_fails_its_delivery_alone(world: World) -> None:
    """Campaigns are checked at creation; content may still change under us."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "daily": {"message": 2}})
        world.campaign(3, parts=(Part("text", "hello {{ target }}"),))
        content = '[{"kind": "text", "text": "hello {{ nobody }}"}]'
        sql(world, "UPDATE deliveries SET content = ? WHERE target = 'spring-0001'", content)
        process = world.process()
        await until(world, lambda: world.state() == "finished")
        found = delivery(world, "spring-0001")
        assert (found.state, found.attempts) == (DeliveryState.FAILED, 0)
        assert "nobody" in found.reason
        await process.stop()

    world.play(script)
    # It had no intent: it took neither a token nor a slot.
    assert world.counts_at_end == {"sent": 2, "failed": 1}
    assert gaps(called(world)) == [SECOND]


# ---------------------------------------------------------------------- a yes with words


def test_what_is_said_along_with_a_yes_names_nobody(world: World) -> None:
    async def script(world: World) -> None:
        anna = "anna@example.com"
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=to(anna))
        provider = Double(world.providers.get("sandbox"), send=saying(f"queued for {anna}"))
        process = world.process(providers=provider.registry())
        await until(world, lambda: world.state() == "finished")
        await process.stop()
        (row,) = outcomes(world)
        assert (row.outcome, row.reason) == ("accepted", "queued for (recipient)")

    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen nothing
    world.play(script)


def saying(reason: str) -> Act:
    async def act(real: Act, *arguments: object) -> Outcome:
        return Outcome(OutcomeKind.ACCEPTED, reason)

    return act
