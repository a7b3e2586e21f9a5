"""Campaigns with a follow-up as a whole: paused, cancelled, finished, stopped by answers."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.model import FollowUp, Target
from paceline.engine.commands import accounts, campaigns, returns
from paceline.engine.ports import Accepted
from paceline.engine.verify import verify
from tests.engine.following_up import (
    AGAIN,
    ON_REPLY,
    SECOND_MESSAGE,
    first_messages,
    follow_ups,
    outreach,
    second_messages,
)
from tests.engine.scenes import deliveries, until
from tests.engine.talking import BEN, EVA, hear
from tests.engine.world import World

pytestmark = pytest.mark.usefixtures("looked_after")


def test_a_paused_campaign_holds_it_back_and_a_cancelled_one_never_sends_it(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        world.write(lambda tx: campaigns.pause(tx, "spring", world.clock.now()))
        hear(world, "yes")
        await world.wait(HOUR)
        assert second_messages(world) == []
        world.write(lambda tx: campaigns.resume(tx, "spring", world.clock.now()))
        await world.wait(2 * MINUTE)
        assert len(second_messages(world)) == 1
        world.write(lambda tx: campaigns.cancel(tx, "spring", world.clock.now()))
        hear(world, "me too", chat=BEN)
        await world.wait(5 * MINUTE)
        assert len(second_messages(world)) == follow_ups(world).total == 1
        assert world.state() == "cancelled"
        await process.stop()

    world.play(script)


def test_a_campaign_is_finished_when_nobody_can_answer_in_time_any_more(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        await world.wait(24 * HOUR)
        assert (world.state(), follow_ups(world).state) == ("running", "running")
        await world.wait(90 * MINUTE)
        assert (world.state(), follow_ups(world).state) == ("finished", "success")
        told = [one for one in world.read(lambda tx: tx.events.latest()) if "finish" in one.kind]
        assert len(told) == 1, "of a run in which nothing was bidden nobody is told"
        await process.stop()

    world.play(script)


def test_what_was_bidden_goes_with_its_account(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        world.write(lambda tx: campaigns.pause(tx, "spring", world.clock.now()))
        hear(world, "yes")
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now(), cancel=True))
        world.write(lambda tx: campaigns.resume(tx, "spring", world.clock.now()))
        await until(world, lambda: world.state() == "finished", HOUR, 3 * DAY)
        assert second_messages(world) == []
        (row,) = [one for one in deliveries(world) if one.run_id == follow_ups(world).id]
        assert (row.state, row.reason) == ("cancelled", "account ann removed")
        await process.stop()

    world.play(script)


def test_it_goes_before_campaigns_of_whatever_priority(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min"})
        world.campaign(targets=[Target(EVA)], follow_up=ON_REPLY)
        process = world.process()
        await first_messages(world, 1)
        world.campaign(30, name="urgent", priority=100)
        await world.wait(5 * MINUTE)
        hear(world, "yes")
        await world.wait(2 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        assert len(world.sends()) < 12
        await process.stop()

    world.play(script)


def test_in_a_pool_whoever_wrote_first_writes_again(world: World) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"rate": "60/min"})
        names = [f"someone-{number}" for number in range(6)]
        world.campaign(
            targets=[Target(name) for name in names],
            on=("ann", "bob"),
            assignment="pooled",
            follow_up=ON_REPLY,
        )
        process = world.process(poll_us=MINUTE)
        await first_messages(world, 6)
        first = {one.target: one.account for one in world.sends()}
        assert set(first.values()) == {"ann", "bob"}
        for name in names:
            hear(world, "yes", chat=name, account=first[name])
        await until(world, lambda: len(second_messages(world)) == 6, 5 * SECOND)
        assert {one.target: one.account for one in second_messages(world)} == first
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- what answers stop


def test_an_answer_stops_what_would_follow_by_itself_if_the_campaign_says_so(
    world: World,
) -> None:
    async def script(world: World) -> None:
        process = outreach(world, steps=(AGAIN, AGAIN), stop_on_reply=True)
        await first_messages(world)
        await world.wait(HOUR)
        hear(world, "I am thinking about it")
        await until(world, lambda: world.state() == "finished", HOUR, 3 * DAY)
        to_eva = [one.action for one in world.sends() if one.target == EVA]
        assert len(to_eva) == 2, "the first one, and what the answer has bidden"
        assert [one.target for one in world.sends()].count(BEN) == 3
        reasons = [row.reason for row in deliveries(world) if row.state == "skipped"]
        assert reasons == ["they have answered", "step 2 was not delivered: it is skipped"]
        await process.stop()

    world.play(script)


def test_what_an_answer_stops_is_stopped_with_it(on_either: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world, steps=(AGAIN, AGAIN), stop_on_reply=True, follow_up=None)
        await first_messages(world)
        hear(world, "no")
        theirs = {row.step: row for row in deliveries(world) if row.target == EVA}
        assert (theirs[2].state, theirs[2].reason) == ("skipped", "they have answered")
        await process.stop()

    on_either.play(script)


def test_an_answer_while_a_step_is_being_sent_stops_those_after_it(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="20s..20s")
        world.campaign(targets=[Target(EVA)], steps=(AGAIN, AGAIN), stop_on_reply=True)
        process = world.process(poll_us=MINUTE)
        await first_messages(world, 1)
        await until(world, lambda: world.counts().get("sending") == 1, 10 * SECOND, 3 * HOUR)
        hear(world, "please wait")
        await until(world, lambda: world.state() == "finished", HOUR, 3 * DAY)
        assert len(world.sends()) == 2
        await process.stop()

    world.play(script)


def test_without_being_told_so_an_answer_stops_nothing(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world, steps=(AGAIN,), follow_up=None)
        await first_messages(world)
        hear(world, "yes")
        await until(world, lambda: world.state() == "finished", HOUR, 3 * DAY)
        assert len(world.sends()) == 4
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- invitations


def accept(world: World, names: tuple[str, ...], at: Instant = 0) -> None:
    account, now = world.account_now(), world.clock.now()
    world.write(lambda tx: returns.take_in(tx, account, [Accepted(names, at)], now))


def test_whoever_accepts_is_written_to_in_hours_and_within_the_caps(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"hours": "Mon-Fri 09:00-18:00 UTC", "daily": {"message": 1}, "rate": "60/min"}
        )
        bidden = FollowUp(SECOND_MESSAGE, "accepted", 30 * DAY, "message")
        world.campaign(
            targets=[Target("anna-muster"), Target("ben-muster"), Target("eva-muster")],
            action="connection_request",
            follow_up=bidden,
        )
        process = world.process(poll_us=MINUTE)
        await first_messages(world, 3)
        hear(world, "not yet", chat="eva-muster")
        await world.wait(10 * HOUR)
        for _ in range(2):
            accept(world, ("ACoAA1", "anna-muster"))
        accept(world, ("ben-muster",))
        await world.wait(HOUR)
        assert second_messages(world) == [], "at night nobody is written to"
        await world.wait(DAY)
        assert [one.target for one in second_messages(world)] == ["anna-muster"]
        await world.wait(DAY)
        sent = [(one.target, one.action) for one in second_messages(world)]
        assert sent == [("anna-muster", "message"), ("ben-muster", "message")]
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- looked at afterwards


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ("UPDATE deliveries SET after_id = after_id + 1 WHERE bidden", "follows nothing of its"),
        ("UPDATE deliveries SET bidden_by = NULL WHERE bidden", "answers nobody who has written"),
        ("UPDATE inbound SET automatic = true", "answers nobody who has written"),
        (
            "UPDATE inbound SET at = at + 90000000000, received_at = received_at + 90000000000",
            "answers somebody whose time was over",
        ),
        (
            f"UPDATE inbound SET chat = '{BEN}', sender = '{BEN}'",
            "was bidden by somebody else than its recipient",
        ),
        ("DELETE FROM deliveries WHERE bidden", "was answered in time by message 1"),
    ],
)
def test_verify_finds_what_nobody_has_bidden(world: World, broken: str, complaint: str) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        await world.wait(MINUTE)
        hear(world, "yes")
        await world.wait(2 * MINUTE)
        await process.stop()
        assert world.read(lambda tx: verify(tx, world.clock.now())) == []
        with world.store.write() as tx:
            tx._context.connection.execute(text(broken))  # type: ignore[attr-defined]
            found = [one for one in verify(tx, world.clock.now()) if "unbidden" in one.invariant]
            assert [complaint in one.detail for one in found] == [True]
            raise Undone

    with pytest.raises(Undone):
        world.play(script)


class Undone(Exception):
    """What was broken is taken back, so that the world ends as it was."""
