"""Campaigns of several steps: each after the one before, once, and never without it."""

from itertools import pairwise

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Step, Target
from paceline.engine.commands import campaigns
from paceline.engine.commands.retrying import retry_failed
from paceline.engine.verify import verify
from tests.engine.scenes import deliveries, finish
from tests.engine.world import World

THREE = (
    Step(2 * HOUR, Content((Part("text", "still there, {{ target }}?"), Part("text", "PS")))),
    Step(DAY, Content((Part("text", "goodbye {{ target }}"),))),
)


def test_every_step_follows_the_one_before_from_the_same_account(world: World) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"rate": "60/min"})
        world.campaign(6, on=("ann", "bob"), steps=THREE)
        assert world.counts() == {"ready": 6, "planned": 12}
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts().get("sent") == 6)
        await world.wait(5 * MINUTE)
        assert world.counts() == {"sent": 6, "ready": 6, "planned": 6}
        await finish(world, process=process, every_us=HOUR, within_us=3 * DAY)
        assert world.counts() == {"sent": 18}
        rows = deliveries(world)
        firsts = {row.position: row for row in rows if row.step == 1}
        for row in rows:
            assert row.account_id == firsts[row.position].account_id

    world.play(script)
    for number in range(6):
        target = f"spring-{number:04}"
        account = "ann" if number % 2 == 0 else "bob"
        sends = [effect for effect in world.sends() if effect.target == target]
        assert [effect.account for effect in sends] == [account] * 4
        gaps = [b.called_at - a.at for a, b in pairwise(sends)]
        assert 2 * HOUR <= gaps[0] <= 2 * HOUR + 2 * MINUTE
        assert DAY <= gaps[2] <= DAY + 2 * MINUTE


def test_nothing_follows_a_message_that_was_not_delivered(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(
            targets=[Target("bounce-1"), Target("anna"), Target("reject-2")], steps=THREE
        )
        await finish(world, every_us=HOUR, within_us=3 * DAY, poll_us=MINUTE)
        assert world.counts() == {"sent": 3, "bounced": 1, "failed": 1, "skipped": 4}
        reasons = {row.reason for row in deliveries(world) if row.state == "skipped"}
        assert reasons == {
            "step 1 was not delivered: it is bounced",
            "step 1 was not delivered: it is failed",
            "step 2 was not delivered: it is skipped",
        }

    world.play(script)


def test_a_crash_between_a_message_and_its_follow_up_loses_neither(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(4, steps=THREE[:1])
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts().get("sent") == 4)
        await process.kill()
        await finish(world, every_us=MINUTE, within_us=DAY, poll_us=MINUTE)

    world.play(script)
    assert world.counts_at_end == {"sent": 8}
    assert len(world.sends()) == 12


def test_a_cancelled_campaign_sends_no_further_step(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3, steps=THREE)
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts().get("sent") == 3)
        world.write(lambda tx: campaigns.cancel(tx, "spring", world.clock.now()))
        await world.wait(2 * DAY)
        assert world.counts() == {"sent": 3, "cancelled": 6}
        await process.stop()

    world.play(script)


def test_a_pooled_contact_keeps_its_account(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"rate": "6/min"})
        world.campaign(8, on=("ann", "bob"), assignment="pooled", steps=THREE[:1])
        await finish(world, every_us=MINUTE, within_us=DAY, poll_us=MINUTE)
        assert world.counts() == {"sent": 16}

    world.play(script)
    for number in range(8):
        target = f"spring-{number:04}"
        assert len({effect.account for effect in world.sends() if effect.target == target}) == 1
    assert {effect.account for effect in world.sends()} == {"ann", "bob"}


def test_what_follows_a_retried_message_follows_it_after_all(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, reject_at=(2,))
        world.campaign(targets=[Target("anna"), Target("ben"), Target("bounce-1")], steps=THREE)
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts().get("skipped") == 4, every_us=MINUTE)
        await world.until_finished(every_us=HOUR, within_us=3 * DAY)
        assert world.counts() == {"sent": 3, "failed": 1, "bounced": 1, "skipped": 4}
        assert world.write(lambda tx: retry_failed(tx, "spring", world.clock.now())).again == 1
        # Whoever does not exist stays without.
        assert world.counts() == {"sent": 3, "ready": 1, "bounced": 1, "planned": 2, "skipped": 2}
        await world.until_finished(every_us=HOUR, within_us=3 * DAY)
        assert world.counts() == {"sent": 6, "bounced": 1, "skipped": 2}
        assert world.read(lambda tx: verify(tx, world.clock.now())) == []
        await process.stop()

    world.play(script)
    assert len([effect for effect in world.sends() if effect.target == "ben"]) == 4


def _bounce(world: World, target: str, at: int) -> None:
    """A message that had been accepted comes back, as a mail server would tell us later."""
    (first,) = [row for row in deliveries(world) if row.target == target and row.step == 1]
    moved = world.write(
        lambda tx: tx.deliveries.move(first.id, "bounce", at=at, reason="no such user")
    )
    assert moved == "bounced"


def test_a_bounce_after_the_release_calls_the_follow_up_off(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=[Target("anna"), Target("ben")], steps=THREE)
        process = world.process(poll_us=MINUTE)
        await world.until(
            lambda: world.counts() == {"sent": 2, "ready": 2, "planned": 2}, within_us=HOUR
        )
        _bounce(world, "anna", world.clock.now())
        await world.wait(3 * MINUTE)
        assert world.counts() == {"sent": 1, "bounced": 1, "ready": 1, "skipped": 2, "planned": 1}
        await finish(world, process=process, every_us=HOUR, within_us=3 * DAY)
        assert world.counts() == {"sent": 3, "bounced": 1, "skipped": 2}
        reasons = {row.reason for row in deliveries(world) if row.state == "skipped"}
        assert reasons == {
            "step 1 was not delivered: it is bounced",
            "step 2 was not delivered: it is skipped",
        }

    world.play(script)
    assert len([effect for effect in world.sends() if effect.target == "anna"]) == 1
    assert len([effect for effect in world.sends() if effect.target == "ben"]) == 4


def test_a_bounce_in_the_last_moment_is_seen_by_whoever_would_send(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks for later steps any more: the lane itself finds out, and others go on."""

    async def never(*_: object) -> None:
        return

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=[Target("anna"), Target("ben")], steps=THREE[:1])
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts() == {"sent": 2, "ready": 2}, within_us=HOUR)
        monkeypatch.setattr("paceline.engine.housekeeping.follow", never)
        due_at = min(row.due_at or 0 for row in deliveries(world) if row.step == 2)
        await world.wait(due_at - world.clock.now() - SECOND)
        _bounce(world, "anna", world.clock.now())
        await finish(world, process=process, every_us=MINUTE, within_us=HOUR)
        assert world.counts() == {"sent": 2, "bounced": 1, "skipped": 1}

    world.play(script)
    assert [effect.target for effect in world.sends()].count("anna") == 1
    assert [effect.target for effect in world.sends()].count("ben") == 3
