"""How runs end: told as they went, cancelled, resolved by hand, or left by their account."""

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.model import Target
from paceline.core.states import AccountState, DeliveryState, RunState
from paceline.engine import lane_writes
from paceline.engine.commands import accounts, control
from paceline.engine.ports import Tx
from tests.engine.scenes import (
    events,
    finish,
    in_state,
    intents,
    say,
    the_run,
    until,
)
from tests.engine.world import World

# ---------------------------------------------------------------------- how runs end


@pytest.mark.parametrize(
    ("targets", "state", "summary"),
    [
        (["a", "b"], "success", "2 of 2 delivered"),
        (["a", "reject"], "partial", "1 of 2 delivered (1 failed)"),
        (["reject-1", "bounce"], "failed", "0 of 2 delivered (1 failed, 1 bounced)"),
        (["bounce"], "failed", "0 of 1 delivered (1 bounced)"),
    ],
)
def test_a_run_is_told_as_it_went(
    world: World, targets: list[str], state: str, summary: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=[Target(name) for name in targets])
        await finish(world, within_us=10 * SECOND)
        run = the_run(world)
        assert (run.state, run.summary) == (state, summary)
        assert run.finished_at is not None
        (told,) = events(world, "run.finished")
        assert told.text == f"spring: {summary}"
        assert (told.data["status"], told.data["summary"]) == (state, summary)
        assert told.data["total"] == len(targets) == sum(told.data["counts"].values())

    world.play(script)


def test_lanes_that_come_to_the_end_of_a_run_together_look_at_it_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a thousand lanes it would be counted a thousand times, all in one transaction."""
    end_run, looked_at = lane_writes.end_run, list[int]()

    def looked(tx: Tx, run_id: int, now: Instant) -> lane_writes.Ended | None:
        looked_at.append(run_id)
        return end_run(tx, run_id, now)

    monkeypatch.setattr(lane_writes, "end_run", looked)

    async def script(world: World) -> None:
        world.account()
        world.campaign(3, name="summer")
        world.campaign(3)
        summer, spring = (the_run(world, name).id for name in ("summer", "spring"))
        world.write(lambda tx: tx.deliveries.move_all(spring, "cancel", at=0, reason=""))
        asked = [(run_id, world.clock.now()) for run_id in (spring, summer, spring, summer)]
        ended = world.write(lambda tx: lane_writes.end_runs(tx, asked))
        assert looked_at == [spring, summer]
        first, *others = ended
        assert first is not None and first.counts == {"cancelled": 3}
        assert others == [None] * 3, "one of them is told, and the other run is not over"

    world.play(script)


def test_a_run_ends_however_it_is_disturbed_at_its_last_message(world: World) -> None:
    """Whoever reads the store anew after the last outcome must still see that a run is over."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="500ms")
        world.campaign(3)
        process = world.process()
        await until(world, lambda: len(intents(world)) == 3, SECOND // 10)
        say(world, "pause account")
        await world.wait(5 * SECOND)
        say(world, "resume account")
        await finish(world, process=process, within_us=5 * SECOND)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_campaign_whose_last_message_landed_under_its_pause_is_over(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="500ms")
        world.campaign(2)
        process = world.process()
        await until(world, lambda: len(intents(world)) == 2, SECOND // 10)
        say(world, "pause campaign")
        await world.wait(5 * SECOND)
        assert (world.counts(), world.state()) == ({"sent": 2}, "finished")
        assert the_run(world).state is RunState.SUCCESS
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- cancelling


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_cancelled_campaign_finishes_what_is_on_its_way_and_adds_up(
    world: World, concurrency: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": concurrency}, latency="1500ms")
        world.campaign(10)
        process = world.process()
        await world.wait(4 * SECOND + 600_000)
        said_at = say(world, "cancel campaign")
        begun = len(intents(world))
        await world.wait(10 * SECOND)
        assert max(row.at for row in intents(world)) <= said_at
        assert world.counts() == {"sent": begun, "cancelled": 10 - begun}
        assert (world.state(), the_run(world).state) == ("cancelled", "cancelled")
        await process.stop()

    world.play(script)


def test_what_comes_back_unsent_to_a_cancelled_campaign_is_cancelled_too(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="1s", transient_at=[1])
        world.campaign(4)
        process = world.process()
        await world.wait(SECOND + 800_000)
        say(world, "cancel campaign")
        await world.wait(5 * MINUTE)
        assert world.counts() == {"cancelled": 4}
        assert len(world.calls()) == 1
        assert world.account_now().state is AccountState.ACTIVE
        await process.stop()

    world.play(script)


def test_a_doubt_of_a_cancelled_campaign_is_still_cleared(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_at=[1], timeout_latency="5s")
        world.campaign(3)
        process = world.process()
        await world.wait(2 * SECOND)
        say(world, "cancel campaign")
        await world.wait(3 * MINUTE)
        assert world.counts() == {"sent": 1, "cancelled": 2}
        await process.stop()

    world.play(script)


def test_a_paused_campaign_can_be_cancelled_and_a_draft_too(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(3)
        world.campaign(3, name="draft", launch=False)
        say(world, "pause campaign")
        say(world, "cancel campaign")
        say(world, "cancel campaign", "draft")
        assert world.counts() == world.counts("draft") == {"cancelled": 3}
        assert the_run(world).state is the_run(world, "draft").state is RunState.CANCELLED

    world.play(script)


# ---------------------------------------------------------------------- doubts by hand


@pytest.mark.parametrize(
    ("verdict", "counts", "run"),
    [
        ("sent", {"sent": 2}, "success"),
        ("failed", {"sent": 1, "failed": 1}, "partial"),
        ("resend", {"sent": 2}, "success"),
    ],
)
def test_a_person_settles_a_doubt_and_the_run_follows(
    world: World, verdict: control.Resolved, counts: dict[str, int], run: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, lost_at=[1], timeout_latency="1s", find_lag="10d")
        world.campaign(2)
        process = world.process()
        await until(world, lambda: world.counts() == {"unknown": 1, "sent": 1})
        assert world.state() == "running"
        (lost,) = in_state(world, DeliveryState.UNKNOWN)
        now = world.clock.now()
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, verdict, now))
        assert world.state() == ("running" if verdict == "resend" else "finished")
        await finish(world, process=process, within_us=MINUTE)
        assert the_run(world).state == run

    world.play(script)
    assert world.counts_at_end == counts


def test_a_doubt_settled_after_its_run_ended_reopens_it_only_to_send_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, lost_at=[1], timeout_latency="1s", finds=False)
        world.campaign(2)
        process = world.process()
        await until(world, lambda: world.state() == "finished")
        assert the_run(world).state is RunState.PARTIAL
        (lost,) = in_state(world, DeliveryState.UNKNOWN)
        now = world.clock.now()
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, "resend", now))
        assert (world.state(), the_run(world).state) == ("running", "running")
        await finish(world, process=process, within_us=MINUTE)
        assert the_run(world).state is RunState.SUCCESS
        with pytest.raises(ConflictError):
            world.write(lambda tx: control.resolve_unknown(tx, lost.id, "sent", now))

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


# ---------------------------------------------------------------------- removing an account


def test_an_account_that_is_sending_cannot_be_removed(world: World) -> None:
    async def script(world: World) -> None:
        world.account(latency="2s")
        world.campaign(2)
        process = world.process()
        await world.wait(3 * SECOND)
        with pytest.raises(ConflictError, match="is sending right now"):
            say(world, "remove account")
        assert world.account_now().removed_at is None
        await finish(world, process=process)

    world.play(script)


def test_waiting_deliveries_are_only_cancelled_with_the_account_on_request(world: World) -> None:
    async def script(world: World) -> None:
        account = world.account()
        world.campaign(2)
        now = world.clock.now()
        with pytest.raises(ConflictError, match="has 2 deliveries waiting"):
            world.write(lambda tx: accounts.remove(tx, "ann", now))
        assert world.counts() == {"ready": 2}
        say(world, "remove account")
        assert world.counts() == {"cancelled": 2}
        assert world.state() == "finished"
        # The name is free again, and its history stays with the old one.
        assert world.account().id != account.id

    world.play(script)


def test_removing_the_account_that_still_had_work_ends_the_run(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "1/min"})
        world.account("bob", policy={"rate": "60/min"})
        world.campaign(8, on=("ann", "bob"))
        process = world.process()
        await until(world, lambda: len(world.sends("bob")) == 4)
        say(world, "remove account", "ann")
        await world.wait(5 * SECOND)
        assert world.counts() == {"sent": 5, "cancelled": 3}
        assert (world.state(), the_run(world).state) == ("finished", "partial")
        await process.stop()

    world.play(script)


def test_removing_an_account_in_doubt_leaves_the_doubt_to_a_person(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_at=[1], timeout_latency="1s")
        world.campaign(1)
        process = world.process()
        await until(world, lambda: world.counts() == {"unknown": 1})
        say(world, "remove account")
        await world.wait(5 * SECOND)
        (lost,) = in_state(world, DeliveryState.UNKNOWN)
        assert lost.due_at is None
        assert (world.state(), the_run(world).state) == ("finished", "failed")
        control_at = world.clock.now()
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, "sent", control_at))
        assert world.counts() == {"sent": 1}
        await process.stop()

    world.play(script)
