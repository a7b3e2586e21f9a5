"""Follow-ups: sent at once to whoever answers in time, once, and to nobody else."""

from __future__ import annotations

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import FollowUp, Target
from paceline.core.states import DeliveryState
from tests.engine.following_up import (
    AGAIN,
    ON_REPLY,
    SECOND_MESSAGE,
    first_messages,
    first_to,
    follow_ups,
    outreach,
    second_messages,
)
from tests.engine.scenes import deliveries, until
from tests.engine.talking import BEN, EVA, hear
from tests.engine.world import World


@pytest.mark.usefixtures("looked_after")
def test_whoever_answers_is_sent_the_second_message_at_once_and_nobody_else(
    on_either: World,
) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        await world.wait(3 * HOUR)
        hear(world, "yes please")
        answered_at = world.clock.now()
        await world.wait(90 * SECOND)
        (sent,) = second_messages(world)
        assert (sent.target, sent.action) == (EVA, "message")
        assert sent.called_at - answered_at <= 61 * SECOND
        await until(world, lambda: world.state() == "finished", HOUR, 2 * DAY)
        await process.stop()
        assert len(world.sends()) == 3
        (row,) = [one for one in deliveries(world) if one.run_id == follow_ups(world).id]
        assert (row.state, row.reply, row.step) == (DeliveryState.SENT, True, 2)
        assert row.account_id == first_to(world, EVA).account_id

    on_either.play(script)


@pytest.mark.usefixtures("looked_after")
def test_an_answer_goes_out_in_the_night_and_ahead_of_what_waits_for_the_morning(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"hours": "Mon-Fri 09:00-10:00 UTC", "spacing": "10m"})
        names = [EVA, *(f"someone-{number}" for number in range(20))]
        world.campaign(targets=[Target(name) for name in names], follow_up=ON_REPLY)
        process = world.process(poll_us=MINUTE)
        await world.wait(12 * HOUR)
        before = len(world.sends())
        assert 0 < before < 20
        hear(world, "I am up late")
        await world.wait(2 * MINUTE)
        assert len(world.sends()) == before + 1
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    world.play(script)


@pytest.mark.parametrize(("late_us", "sent"), [(-MINUTE, 1), (2 * MINUTE, 0)])
def test_the_answer_has_to_come_in_its_time(world: World, late_us: int, sent: int) -> None:
    async def script(world: World) -> None:
        process = outreach(world, follow_up=FollowUp(SECOND_MESSAGE, within_us=5 * HOUR))
        await first_messages(world)
        await world.wait(5 * HOUR + late_us)
        hear(world, "well")
        await world.wait(5 * MINUTE)
        assert len(second_messages(world)) == sent
        await process.stop()

    world.play(script)


@pytest.mark.usefixtures("looked_after")
def test_an_answer_that_is_reported_late_counts_from_when_it_was_written(on_either: World) -> None:
    """Also after the campaign was told as finished: it goes on for that one."""

    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        await world.wait(HOUR)
        written_at = world.clock.now()
        await world.wait(3 * DAY)
        assert world.state() == "finished"
        hear(world, "yes", at=written_at)
        hear(world, "yes?", chat=BEN)
        await world.wait(2 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await until(world, lambda: world.state() == "finished", MINUTE, HOUR)
        await process.stop()

    on_either.play(script)


def test_what_was_written_before_the_first_message_answers_nothing(world: World) -> None:
    async def script(world: World) -> None:
        written_at = world.clock.now()
        await world.wait(MINUTE)
        process = outreach(world)
        await first_messages(world)
        hear(world, "are you open?", at=written_at)
        await world.wait(5 * MINUTE)
        assert second_messages(world) == []
        await process.stop()

    world.play(script)


def test_however_often_and_by_whomever_it_is_told_there_is_one(on_either: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        for _ in range(3):
            hear(world, "yes", provider_id="one and the same")
        hear(world, "yes", provider_id="the same by another way")
        hear(world, "hello?")
        await world.wait(2 * MINUTE)
        hear(world, "thanks")
        await world.wait(2 * MINUTE)
        assert len(second_messages(world)) == 1
        await process.stop()

    on_either.play(script)


@pytest.mark.parametrize(
    "unlike",
    [{"automatic": True}, {"from_us": True}, {"group": True}],
    ids=["automatic", "ours", "in a group"],
)
def test_what_nobody_wrote_to_us_answers_nothing(world: World, unlike: dict[str, bool]) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        hear(world, "I am away", **unlike)
        await world.wait(2 * MINUTE)
        assert second_messages(world) == []
        await process.stop()

    world.play(script)


@pytest.mark.usefixtures("looked_after")
def test_whoever_opts_out_is_sent_nothing_more(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world, steps=(AGAIN,))
        await first_messages(world)
        hear(world, "STOP")
        await world.wait(DAY)
        assert [one.target for one in world.sends()].count(EVA) == 1
        assert follow_ups(world).total == 0, "STOP bids nothing, not even what is then called off"
        await process.stop()

    world.play(script)


def test_an_answer_to_another_account_is_none(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        world.account("bob")
        await first_messages(world)
        hear(world, "who is this?", account="bob")
        await world.wait(2 * MINUTE)
        assert second_messages(world) == []
        await process.stop()

    world.play(script)


def test_an_answer_to_another_message_of_ours_is_none(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        world.campaign(name="other", targets=[Target(EVA)])
        await first_messages(world)
        await world.until(lambda: len(world.sends()) == 3)
        other = max(deliveries(world), key=lambda row: row.id)
        hear(world, "about that other thing", answers=f"test-{other.id}-0")
        await world.wait(2 * MINUTE)
        assert second_messages(world) == []
        hear(world, "and about this one", answers=f"test-{first_to(world, EVA).id}-0")
        await world.wait(2 * MINUTE)
        assert len(second_messages(world)) == 1
        await process.stop()

    world.play(script)


def test_an_answer_in_the_middle_of_sending_waits_for_how_that_ends(on_either: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 3}, latency="20s..20s")
        world.campaign(targets=[Target(EVA), Target("reject-2")], follow_up=ON_REPLY)
        process = world.process()  # it looks around every second
        await world.until(lambda: world.counts().get("sending") == 2)
        hear(world, "I see that you are writing")
        hear(world, "me too", chat="reject-2")
        await world.wait(4 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        rows = [row for row in deliveries(world) if row.run_id == follow_ups(world).id]
        assert {row.target: (row.state, row.reason) for row in rows} == {
            EVA: ("sent", ""),
            "reject-2": ("skipped", "step 1 was not delivered: it is failed"),
        }
        await process.stop()

    on_either.play(script)


def test_one_that_bounced_since_is_not_followed(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        now = world.clock.now()
        number = first_to(world, EVA).id
        world.write(lambda tx: tx.deliveries.move(number, "bounce", at=now))
        hear(world, "yes")
        await world.wait(2 * MINUTE)
        assert follow_ups(world).total == 0
        await process.stop()

    world.play(script)


def test_killed_between_the_answer_and_the_second_message(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        await process.kill()
        hear(world, "yes")
        hear(world, "yes", chat=BEN)
        await world.wait(MINUTE)
        again = [world.process(f"again {number}", poll_us=MINUTE) for number in range(3)]
        await until(world, lambda: len(second_messages(world)) == 2, SECOND, 5 * MINUTE)
        await again[0].kill()
        await world.wait(5 * MINUTE)
        assert sorted(one.target for one in second_messages(world)) == [EVA, BEN]
        for one in again[1:]:
            await one.stop()

    world.play(script)
