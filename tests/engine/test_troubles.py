"""What an answer does beyond its delivery: to the account, and to the campaign."""

from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Target
from paceline.core.states import AccountState, RunState
from tests.engine.scenes import (
    called,
    change,
    events,
    finish,
    say,
    the_run,
    to,
    until,
)
from tests.engine.world import World

FAST = "10ms"


# ---------------------------------------------------------------------- bounces


def test_many_bounces_pause_the_account_once_there_are_twenty_samples(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min"}, bounce_at=[1, 21])
        world.campaign(40)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.PAUSED)
        # One of the first twenty is not above 5 %; two of twenty-one are.
        assert world.account_now().state_reason == "bounce rate 2/21 today is above 5%"
        (told,) = events(world, "account.paused")
        assert told.text == "ann is paused: bounce rate 2/21 today is above 5%"
        await world.wait(10 * SECOND)
        assert len(world.calls()) == 21
        assert world.state() == "running"
        say(world, "resume account")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 38, "bounced": 2}


def test_bounces_below_the_share_do_not_pause(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min"}, bounce_at=[21])
        world.campaign(30)
        await finish(world)
        assert world.account_now().state is AccountState.ACTIVE

    world.play(script)


@pytest.mark.parametrize("policy", [{}, {"breaker": {"above": "20%", "samples": 5}}])
def test_whoever_trips_a_pause_is_suppressed_for_what_was_said_of_them(
    world: World, policy: dict[str, Any]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min", **policy}, bounce_at=[4, 5, 21, 22])
        world.campaign(40)
        process = world.process()

        def is_over() -> bool:
            return world.state() == "paused" or world.account_now().state == "paused"

        await until(world, is_over)
        said = {entry[1] for entry in world.read(lambda tx: tx.suppressions.list())}
        assert said == {"the address does not exist"}
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- the account


def test_a_ban_with_an_end_cools_the_account_down_and_it_reopens(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        account = world.account(policy={"rate": "60/min"}, ban_after=3, ban_for="1h")
        world.campaign(5)
        process = world.process(poll_us=HOUR)
        await until(world, lambda: len(world.calls()) == 4, SECOND)
        await world.wait(SECOND)
        shown = world.account_now()
        assert shown.state is AccountState.COOLING_DOWN
        assert shown.state_reason == "the account is banned for 1h"
        banned_at = world.calls()[3].at
        assert shown.state_until_at is not None
        assert HOUR <= shown.state_until_at - banned_at <= HOUR + SECOND
        assert world.read(lambda tx: tx.lanes.get(account.id)).owner is None
        assert [event.kind for event in events(world, "account.cooling_down")]
        await finish(world, process=process, every_us=MINUTE, within_us=2 * HOUR)
        assert world.account_now().state is AccountState.ACTIVE

    world.play(script)
    assert world.counts_at_end == {"sent": 5}
    assert called(world)[4] >= called(world)[3] + HOUR


def test_a_ban_without_end_suspends_until_a_person_resumes(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=to("a", "ban", "b"))
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.SUSPENDED)
        assert world.account_now().state_reason == "the account is banned"
        (told,) = events(world, "account.suspended")
        assert told.text == "ann is suspended: the account is banned"
        await world.wait(MINUTE)
        assert len(world.calls()) == 2
        assert world.counts() == {"sent": 1, "ready": 2}
        say(world, "resume account")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_refused_credentials_suspend_with_the_reason(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, unauthorised_after=2)
        world.campaign(4)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.SUSPENDED)
        assert world.account_now().state_reason == "the credentials are refused"
        await world.wait(10 * SECOND)
        assert world.counts() == {"sent": 2, "ready": 2}
        change(world, settings={"unauthorised_after": 100})
        assert world.account_now().state is AccountState.SUSPENDED
        say(world, "resume account")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 4}


def test_credentials_refused_at_the_door_suspend_too(world: World) -> None:
    async def script(world: World) -> None:
        world.account(unauthorised=True)
        world.campaign(2)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.SUSPENDED)
        assert world.account_now().state_reason == ("the sandbox refuses the credentials of ann")
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"ready": 2}


# ---------------------------------------------------------------------- the breaker


def test_the_breaker_pauses_the_campaign_and_a_resume_starts_with_a_clean_sheet(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"rate": "120/min", "breaker": {"above": "20%"}},
            reject_at=[1, 5, 9, 13, 17, 21, 22],
        )
        world.campaign(45)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        await world.wait(5 * SECOND)
        assert len(world.calls()) == 20
        assert the_run(world).state is RunState.PAUSED
        assert the_run(world).reason == "error rate 5/20 is above 20%"
        (told,) = events(world, "campaign.paused")
        assert (told.data["by"], told.data["account"]) == ("breaker", "ann")
        assert told.text == (
            "campaign spring paused by its breaker on ann: error rate 5/20 is above 20%"
        )
        assert world.account_now().state is AccountState.ACTIVE
        say(world, "resume campaign")
        await finish(world, process=process)
        # Two more failures: with the five from before they would be above 20 % again.
        assert len(events(world, "campaign.paused")) == 1

    world.play(script)
    assert world.counts_at_end == {"sent": 38, "failed": 7}


def test_the_breaker_of_one_campaign_does_not_stop_another(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min", "breaker": {"above": "20%"}})
        world.campaign(targets=[Target(f"reject-{n}") for n in range(30)])
        world.campaign(30, name="other")
        await finish(world, "other")
        assert world.state() == "paused"

    world.play(script)
    assert world.counts_at_end == {"failed": 20, "ready": 10}


def test_nineteen_failures_do_not_trip_the_breaker_yet(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min", "breaker": {"above": "20%"}}, reject_rate=1)
        world.campaign(25)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        assert len(world.calls()) == 20
        assert the_run(world).reason == "error rate 20/20 is above 20%"
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"failed": 20, "ready": 5}


def test_messages_under_way_when_the_breaker_trips_still_finish(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"rate": "120/min", "concurrency": 3, "breaker": {"above": "20%"}},
            reject_rate=1,
            latency="1400ms",
        )
        world.campaign(30)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        await world.wait(10 * SECOND)
        counts = world.counts()
        assert counts == {"failed": len(world.calls()), "ready": 30 - len(world.calls())}
        assert 20 <= counts["failed"] <= 22
        await process.stop()

    world.play(script)
