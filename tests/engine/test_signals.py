"""Signals in force: who waits because of a provider's answer, and who goes on."""

from itertools import pairwise
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Wait
from paceline.core.states import AccountState, DeliveryState
from paceline.engine import queries
from paceline.engine.commands import signals
from tests.engine.scenes import (
    called,
    delivery,
    events,
    finish,
    gaps,
    reply,
    say,
    send_direct,
    to,
    until,
)
from tests.engine.world import World

FAST = "10ms"


def set_signal(world: World, signal: str, **changes: Any) -> None:
    """As `paceline signals set` does it."""
    now, providers = world.clock.now(), world.providers.names()
    said = {key.rstrip("_"): value for key, value in changes.items()}
    world.write(lambda tx: signals.set_rule(tx, signal, said, providers, now))


def arrived(world: World) -> list[str]:
    return [effect.target for effect in world.sends()]


@pytest.mark.parametrize("policy", [{"rate": "60/min"}, {}], ids=["paced", "at full speed"])
def test_only_first_contacts_wait_out_a_spam_signal(
    calm: None, world: World, policy: dict[str, Any]
) -> None:
    async def script(world: World) -> None:
        set_signal(world, "sandbox throttled", scope="new contacts", for_="6h")
        world.account(policy=policy, throttle_at=[4], retry_after=None, latency=FAST)
        world.campaign(name="winter", targets=to("old-1", "old-2", "old-3"))
        first = world.process(poll_us=MINUTE)
        await until(world, lambda: len(world.sends()) == 3, SECOND)
        # The fourth call meets the signal. Somebody new is in front of somebody we know.
        world.campaign(targets=to("new-1", "new-2", "old-2", "new-3", "old-3"))
        await until(world, lambda: len(world.sends()) == 5, SECOND)
        assert arrived(world)[3:] == ["old-2", "old-3"]
        reply(world, "new-9")
        await until(world, lambda: len(world.sends()) == 6, SECOND)
        assert arrived(world)[5] == "new-9"
        waiting = delivery(world, "new-2")
        answer = world.read(lambda tx: queries.why_delivery(tx, waiting.id, world.clock.now()))
        assert isinstance(answer.verdict, Wait)
        assert answer.verdict.gate == "signal"
        assert "nobody is written to for the first time: throttled" in answer.verdict.why
        # The checkpoint keeps it: another process does not write to strangers either.
        await first.stop()
        second = world.process("two", poll_us=MINUTE)
        await world.wait(HOUR)
        assert len(world.calls()) == 7
        await finish(world, process=second, every_us=MINUTE, within_us=DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 5}
    assert sorted(arrived(world)[6:]) == ["new-1", "new-2", "new-3"]
    assert called(world)[7] >= called(world)[3] + 6 * HOUR


def test_only_the_campaign_waits(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        set_signal(world, "sandbox rejected", scope="campaign", for_="2h")
        world.account(policy={"rate": "60/min"}, reject_at=[1], latency=FAST)
        world.campaign(3)
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: len(world.calls()) == 1, SECOND)
        world.campaign(3, name="autumn")
        await until(world, lambda: world.state("autumn") == "finished", SECOND)
        assert world.counts() == {"failed": 1, "ready": 2}
        answer = world.read(lambda tx: queries.why_account(tx, "ann", world.clock.now()))
        assert isinstance(answer.verdict, Wait)
        assert answer.verdict.why.startswith("the campaign waits: rejected by the provider")
        assert world.account_now().state is AccountState.ACTIVE
        await finish(world, process=process, every_us=MINUTE, within_us=3 * HOUR)

    world.play(script)
    assert world.counts_at_end == {"failed": 1, "sent": 2}
    assert called(world)[4] >= called(world)[0] + 2 * HOUR


def test_a_signal_may_pause_the_campaign_until_somebody_resumes_it(world: World) -> None:
    async def script(world: World) -> None:
        set_signal(world, "* rejected", scope="campaign", for_="until resumed")
        world.account(policy={"rate": "60/min"}, reject_at=[2], latency=FAST)
        world.campaign(4)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        (told,) = events(world, "campaign.paused")
        assert told.text.startswith("campaign spring paused by a signal on ann")
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "campaign.signal"
        say(world, "resume campaign")
        assert world.read(lambda tx: tx.alerts.list()) == []
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"failed": 1, "sent": 3}


def test_after_the_hold_the_pace_ramps_back(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        ramp = {"slow_by": 4, "recover": "10m"}
        set_signal(world, "sandbox throttled", for_="1h", scope="account", ramp=ramp)
        world.account(policy={"rate": "60/min"}, throttle_at=[5], retry_after=None, latency=FAST)
        world.campaign(400)
        process = world.process(poll_us=MINUTE)
        await finish(world, process=process, every_us=MINUTE, within_us=4 * HOUR)

    world.play(script)
    times = called(world)
    spread = gaps(times)
    assert spread[4] >= HOUR
    after = spread[5:]
    # The way back has its full length though it is far shorter than the hold before it.
    assert abs(after[0] - 4 * SECOND) < 50_000
    assert all(later <= earlier for earlier, later in pairwise(after))
    recovered_at = times[4] + HOUR + 10 * MINUTE + SECOND
    late = [gap for at, gap in zip(times[5:], after, strict=False) if at > recovered_at]
    assert late and set(late) == {SECOND}


def test_a_change_is_in_force_before_the_next_message(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "6/min"}, throttle_at=[2, 4], retry_after=None, latency=FAST)
        world.campaign(4)
        process = world.process()
        await until(world, lambda: len(world.calls()) == 2, within_us=MINUTE)
        held_at = world.calls()[1].at
        await until(world, lambda: len(world.calls()) == 3, within_us=10 * MINUTE)
        assert world.calls()[2].called_at >= held_at + MINUTE
        set_signal(world, "* throttled", for_="5s")
        await until(world, lambda: len(world.calls()) == 5, within_us=10 * MINUTE)
        assert world.calls()[4].called_at < world.calls()[3].at + 30 * SECOND
        world.write(lambda tx: signals.reset(tx, None, world.clock.now()))
        assert world.read(signals.table).own == {}
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 4}


def test_whoever_may_have_got_a_message_is_known(world: World) -> None:
    async def script(world: World) -> None:
        ann = world.account(policy={"rate": "60/min"}, lost_at=[2], timeout_latency="1s")
        bob = world.account("bob")
        world.campaign(targets=to("sent", "lost"))
        process = world.process()
        await until(world, lambda: delivery(world, "lost").state is not DeliveryState.READY)

        def knows(account_id: int, target: str) -> bool:
            return world.read(lambda tx: tx.deliveries.knows(account_id, target))

        assert knows(ann.id, "sent")
        assert knows(ann.id, "lost")
        assert not knows(ann.id, "other")
        assert not knows(bob.id, "sent")
        await finish(world, process=process)

    world.play(script)


def test_single_messages_without_a_campaign_let_their_account_wait(world: World) -> None:
    """There is nothing that somebody could resume but the account."""

    async def script(world: World) -> None:
        breaker = {"above": "20%", "samples": 5, "window": 10}
        world.account(policy={"rate": "60/min", "breaker": breaker}, reject_at=[3, 5], latency=FAST)
        for number in range(8):
            send_direct(world, f"eve-{number}")
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.PAUSED)
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.text == "account ann is paused: error rate 2/5 is above 20%"
        assert alert.reasons == (("the message is refused", 2),)
        assert len(world.calls()) == 5
        say(world, "resume account")
        await until(world, lambda: len(world.calls()) == 8)
        await process.stop()

    world.play(script)
