"""Timeouts: what is in doubt is asked about, proved, or left to a person; never guessed."""

from paceline.core.instants import DAY, HOUR, MINUTE
from paceline.core.model import Part
from paceline.core.states import DeliveryState
from paceline.engine.commands import campaigns, control
from paceline.engine.ports import LedgerRow
from tests.engine.scenes import (
    TWO_PARTS,
    change,
    delivery,
    finish,
    ledger,
    say,
    the_run,
    to,
    until,
    violations,
)
from tests.engine.world import World

FAST = "10ms"


def test_a_timeout_whose_message_went_out_is_found_and_counts_as_sent(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_latency="2s")
        world.campaign(targets=to("timeout", "a"))
        process = world.process()
        await until(world, lambda: world.counts().get("unknown") == 1)
        lost = delivery(world, "timeout")
        assert lost.reason == "no answer within 2s"
        assert lost.due_at is not None
        assert world.state() == "running"
        await finish(world, process=process)
        assert [row.outcome for row in resolutions(world)] == ["accepted"]

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert len(world.calls()) == 2


def resolutions(world: World) -> list[LedgerRow]:
    return [row for row in ledger(world) if row.kind == "resolution"]


def test_a_timeout_whose_message_did_not_go_out_is_proved_and_sent_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_latency="2s")
        world.campaign(targets=to("lost", "a"))
        await finish(world)
        assert [row.outcome for row in resolutions(world)] == ["absent"]
        assert delivery(world, "lost").attempts == 2

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert len(world.calls()) == 3


def test_where_nobody_can_be_asked_a_doubt_is_held_and_the_run_ends_without_it(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_latency="2s", finds=False)
        world.campaign(targets=to("timeout", "a"))
        await finish(world)
        assert the_run(world).summary == "1 of 2 delivered (1 unknown)"
        assert delivery(world, "timeout").due_at is None

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "unknown": 1}
    assert len(world.calls()) == 2


def test_a_look_up_that_proves_nothing_is_repeated_and_then_left_to_a_person(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(timeout_latency="2s", proves_absence=False)
        world.campaign(targets=to("lost"))
        await finish(world, every_us=10 * MINUTE, within_us=DAY, poll_us=HOUR)
        found = delivery(world, "lost")
        assert (found.state, found.due_at) == (DeliveryState.UNKNOWN, None)
        assert found.reason == "no answer within 2s; held for a person"

    world.play(script)
    assert len(world.calls()) == 1


def test_who_would_rather_send_twice_than_not_at_all_may_say_so(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"on_unknown": "resend"}, timeout_latency="2s", finds=False)
        world.campaign(targets=to("lost", "a"))
        await finish(world)
        assert delivery(world, "lost").attempts == 2

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


def test_a_call_that_hangs_longer_than_the_policy_waits_is_in_doubt(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "3s"}, timeout_latency="30s")
        world.campaign(targets=to("slow"))
        process = world.process()
        await until(world, lambda: world.counts() == {"unknown": 1})
        assert delivery(world, "slow").reason == "no answer within 3 s"
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert len(world.calls()) == 1


def test_the_parts_after_a_found_one_go_out_and_it_is_not_repeated(world: World) -> None:
    async def script(world: World) -> None:
        world.account(timeout_at=[2], timeout_latency="2s")
        world.campaign(1, parts=(*TWO_PARTS, Part("text", "three")))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert [effect.key for effect in world.calls()] == ["test-1-0", "test-1-1", "test-1-2"]


def test_a_doubt_of_a_cancelled_campaign_stays_one(world: World) -> None:
    """It would be sent again while it is in doubt, but not any more; and it may have arrived."""

    async def script(world: World) -> None:
        world.account(policy={"on_unknown": "resend"}, timeout_latency="2s", finds=False)
        world.campaign(targets=to("timeout", "a"))
        process = world.process()
        await until(world, lambda: world.counts().get("unknown") == 1)
        world.write(lambda tx: campaigns.cancel(tx, "spring", world.clock.now()))
        await world.wait(10 * MINUTE)
        assert world.counts() == {"sent": 1, "unknown": 1}
        assert delivery(world, "timeout").reason.endswith("; held for a person")
        await process.stop()

    world.play(script)
    assert len(world.calls()) == 2


OPEN = "; an earlier try may have arrived, held for a person"


def test_what_would_be_sent_again_stays_in_doubt_when_its_account_is_removed(
    world: World,
) -> None:
    """Found by the simulator (seed 21000): it was cancelled, though the provider had all of it."""

    async def script(world: World) -> None:
        policy = {"on_unknown": "resend", "rate": "1/h"}
        world.account(policy=policy, timeout_latency="2s", finds=False)
        world.campaign(targets=to("timeout", "a"))
        process = world.process()
        await until(world, lambda: delivery(world, "timeout").reason.startswith("sent again"))
        assert world.counts() == {"ready": 2}
        say(world, "remove account")
        assert delivery(world, "timeout").reason == f"account ann removed{OPEN}"
        await process.stop()
        assert violations(world) == []

    world.play(script)
    assert world.counts_at_end == {"cancelled": 1, "unknown": 1}


def test_a_second_try_that_is_refused_says_nothing_of_the_first(world: World) -> None:
    async def script(world: World) -> None:
        policy = {"on_unknown": "resend", "rate": "60/min"}
        fates = {"timeout_at": [1], "reject_at": [3]}
        world.account(policy=policy, timeout_latency="2s", finds=False, **fates)
        world.campaign(targets=to("somebody", "a"))
        await finish(world)
        found = delivery(world, "somebody")
        assert (found.attempts, found.due_at) == (2, None)
        assert found.reason.endswith(OPEN)
        assert violations(world) == []

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "unknown": 1}


def test_a_second_try_that_is_refused_after_the_policy_has_changed(world: World) -> None:
    """What may have arrived does not depend on what is to be done about it from now on."""

    async def script(world: World) -> None:
        policy = {"on_unknown": "resend", "rate": "1/m"}
        fates = {"timeout_at": [1], "reject_at": [2]}
        world.account(policy=policy, timeout_latency="2s", finds=False, **fates)
        world.campaign(targets=to("somebody"))
        process = world.process()
        await until(world, lambda: delivery(world, "somebody").reason.startswith("sent again"))
        change(world, overrides={"on_unknown": "hold"})
        await finish(world, process=process)
        assert delivery(world, "somebody").reason.endswith(OPEN)

    world.play(script)
    assert world.counts_at_end == {"unknown": 1}


def test_one_of_a_pool_that_was_called_off_in_doubt_can_be_resolved(world: World) -> None:
    async def script(world: World) -> None:
        policy = {"on_unknown": "resend", "rate": "1/h"}
        for name in ("ann", "bob"):
            world.account(name, policy=policy, timeout_latency="2s", finds=False)
        world.campaign(targets=to("timeout"), on=("ann", "bob"), assignment="pooled")
        process = world.process()
        await until(world, lambda: delivery(world, "timeout").reason.startswith("sent again"))
        ann = delivery(world, "timeout").account_id == world.account_now("ann").id
        say(world, "pause account", "ann" if ann else "bob")
        say(world, "cancel campaign")
        found = delivery(world, "timeout")
        assert (found.state, found.due_at) == ("unknown", None)
        await process.stop()
        now = world.clock.now()
        world.write(lambda tx: control.resolve_unknown(tx, found.id, "failed", now))

    world.play(script)
    assert world.counts_at_end == {"failed": 1}


def test_a_doubt_is_looked_into_while_a_cap_holds_the_lane(world: World) -> None:
    """The slot of a message that never went out comes back, and there is room for another today."""

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 2}, "rate": "60/min"}, timeout_latency="2s")
        world.campaign(targets=to("timeout", "a", "b"))
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: world.counts().get("unknown") == 1)
        await world.wait(15 * MINUTE)
        assert world.counts() == {"sent": 2, "ready": 1}, (
            "found at the provider, at 9 and not at 24"
        )
        await process.stop()

    world.play(script)
