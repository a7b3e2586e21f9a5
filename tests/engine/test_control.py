"""Commands said by another process: in force before the next message, and nothing is lost."""

import pytest

from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Target
from paceline.core.states import DeliveryState, RunState
from tests.engine.scenes import (
    THREE_PARTS,
    TWO_PARTS,
    called,
    delivery,
    finish,
    intents,
    say,
    send_direct,
    suppress,
    the_run,
    until,
)
from tests.engine.world import World

STOPS = [
    ("pause account", "resume account"),
    ("pause campaign", "resume campaign"),
    ("stop all", "go on"),
]


# ---------------------------------------------------------------------- in force at once


@pytest.mark.parametrize(("halt", "go"), STOPS)
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_halt_is_in_force_before_the_next_message_and_ends_within_two_seconds(
    world: World, halt: str, go: str, concurrency: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": concurrency}, latency="1200ms")
        world.campaign(12)
        process = world.process()
        await world.wait(4 * SECOND + 333_000)
        halted_at = say(world, halt)
        on_their_way = len(intents(world))
        await world.wait(20 * SECOND)
        assert [row.at for row in intents(world) if row.at > halted_at] == []
        assert max(called(world)) <= halted_at
        # What had started has finished and is counted; the rest waits, untouched.
        assert world.counts() == {"sent": on_their_way, "ready": 12 - on_their_way}
        resumed_at = say(world, go)
        await until(world, lambda: len(intents(world)) > on_their_way, SECOND // 10)
        assert intents(world)[on_their_way].at - resumed_at <= 2 * SECOND
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 12}


@pytest.mark.parametrize("halt", ["pause account", "pause campaign"])
def test_a_started_message_of_several_parts_finishes_under_a_pause(world: World, halt: str) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 2, "part_gap": "2s"})
        world.campaign(6, parts=THREE_PARTS)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 4, SECOND // 10)
        halted_at = say(world, halt)
        begun = {row.delivery_id for row in intents(world)}
        await world.wait(30 * SECOND)
        assert {row.delivery_id for row in intents(world)} == begun
        assert all(row.part > 0 for row in intents(world) if row.at > halted_at)
        assert len(world.sends()) == 3 * len(begun)
        assert world.counts() == {"sent": len(begun), "ready": 6 - len(begun)}
        say(world, halt.replace("pause", "resume"))
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 6}


def test_an_emergency_stop_breaks_off_between_parts_and_no_part_is_repeated(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "part_gap": "3s"})
        world.campaign(2, parts=THREE_PARTS)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 2, SECOND // 10)
        stopped_at = say(world, "stop all")
        await world.wait(MINUTE)
        assert max(called(world)) <= stopped_at
        broken = delivery(world, "spring-0000")
        assert (broken.state, broken.parts_done) == (DeliveryState.READY, 2)
        assert broken.reason == "broken off after part 2"
        say(world, "go on")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    keys = [effect.key for effect in world.calls()]
    assert keys == ["test-1-0", "test-1-1", "test-1-2", "test-2-0", "test-2-1", "test-2-2"]
    # The third part of the first message was a second attempt, and everything was sent once.
    assert [effect.attempt for effect in world.calls()] == [1] * 6


def test_a_stop_before_anything_runs_holds_everything_back(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3)
        say(world, "stop all")
        process = world.process()
        await world.wait(MINUTE)
        assert world.calls() == []
        say(world, "go on")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_only_the_paused_campaign_stands_still(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(10)
        world.campaign(10, name="autumn")
        process = world.process()
        await world.wait(4 * SECOND + 500_000)
        paused_at = say(world, "pause campaign")
        await finish(world, "autumn", process=process)
        late = [e.target for e in world.calls() if e.called_at > paused_at]
        assert late and all(target.startswith("autumn") for target in late)
        assert world.state() == "paused"
        assert the_run(world).state is RunState.PAUSED

    world.play(script)
    assert sum(world.counts_at_end.values()) == 10


def test_only_the_paused_account_stands_still(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "60/min"})
        world.account("bob", policy={"rate": "60/min"})
        world.campaign(12, on=("ann", "bob"))
        process = world.process()
        await world.wait(2 * SECOND + 500_000)
        paused_at = say(world, "pause account", "ann")
        await world.wait(20 * SECOND)
        assert len(world.sends("bob")) == 6
        assert max(called(world, "ann")) <= paused_at
        assert world.state() == "running"
        say(world, "resume account", "ann")
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 12}


# ---------------------------------------------------------------------- suppression


def test_whoever_is_suppressed_mid_run_is_never_written_to_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(8)
        process = world.process()
        await world.wait(2 * SECOND + 500_000)
        suppress(world, "spring-0003")
        suppress(world, "spring-0007")
        await finish(world, process=process)
        for target in ("spring-0003", "spring-0007"):
            found = delivery(world, target)
            assert (found.state, found.reason) == ("skipped", "recipient is suppressed")
            assert found.attempts == 0

    world.play(script)
    assert world.counts_at_end == {"sent": 6, "skipped": 2}
    assert not {"spring-0003", "spring-0007"} & {e.target for e in world.calls()}


@pytest.mark.parametrize("entry", ["{}", "@example.com"])
def test_a_suppression_between_two_parts_stops_the_second(world: World, entry: str) -> None:
    anna, ben = Target("anna@example.com"), Target("ben@example.org")

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "part_gap": "3s"})
        world.campaign(targets=[anna, ben], parts=TWO_PARTS)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 1, SECOND // 10)
        suppress(world, entry.format(anna.address))
        await finish(world, process=process)
        found = delivery(world, anna.address)
        assert found.state is DeliveryState.FAILED
        assert found.reason == "recipient was suppressed after part 1 of the message"

    world.play(script)
    assert world.counts_at_end == {"failed": 1, "sent": 1}
    assert len([e for e in world.calls() if e.target == anna.address]) == 1


# ---------------------------------------------------------------------- what cannot be done


def refusals() -> list[tuple[str, str]]:
    return [
        ("", "resume account"),
        ("pause account", "pause account"),
        ("", "resume campaign"),
        ("pause campaign", "pause campaign"),
        ("cancel campaign", "cancel campaign"),
        ("cancel campaign", "pause campaign"),
        ("cancel campaign", "resume campaign"),
        ("cancel campaign", "launch campaign"),
        ("", "launch campaign"),
        ("", "go on"),
    ]


@pytest.mark.parametrize(("before", "again"), refusals())
def test_what_is_not_possible_is_refused_and_changes_nothing(
    world: World, before: str, again: str
) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(3)
        if before:
            say(world, before)
        lane = world.read(lambda tx: tx.lanes.get(1))
        told = world.read(lambda tx: tx.events.latest())
        seen = (world.account_now(), world.state(), the_run(world), world.counts())
        with pytest.raises(ConflictError):
            say(world, again)
        assert (world.account_now(), world.state(), the_run(world), world.counts()) == seen
        assert world.read(lambda tx: tx.lanes.get(1)) == lane
        assert world.read(lambda tx: tx.events.latest()) == told

    world.play(script)


def test_a_draft_cannot_be_paused_or_resumed(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(3, launch=False)
        for what in ("pause campaign", "resume campaign"):
            with pytest.raises(ConflictError, match=r"is draft: cannot (pause|resume)"):
                say(world, what)
        assert (world.state(), world.counts()) == ("draft", {"planned": 3})

    world.play(script)


def test_stopping_twice_stays_stopped(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        say(world, "stop all")
        say(world, "stop all")
        assert world.read(lambda tx: tx.settings.stopped()) == "fire drill"
        say(world, "go on")
        assert world.read(lambda tx: tx.settings.stopped()) is None

    world.play(script)


@pytest.mark.parametrize(
    "what", ["pause campaign", "cancel campaign", "launch campaign", "pause account"]
)
def test_a_name_nobody_has_is_refused_with_the_nearest(world: World, what: str) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(1)
        name = "sprng" if "campaign" in what else "anna"
        with pytest.raises(NotFoundError, match="did you mean"):
            say(world, what, name)

    world.play(script)


def test_the_standing_campaign_of_direct_messages_cannot_be_steered(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        send_direct(world, "eve")
        standing = [c.name for c in world.read(lambda tx: tx.campaigns.list())]
        for name in standing:
            for what in ("pause campaign", "cancel campaign", "launch campaign"):
                with pytest.raises(NotFoundError):
                    say(world, what, name)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 1)
        await process.stop()

    world.play(script)
