"""Calls that were given up and live on: nothing overtakes them, and their answers still count."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.commands import control
from tests.engine.doubles import Act, Double, Watcher
from tests.engine.scenes import TWO_PARTS
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

TEN_MINUTES = 10 * MINUTE
POLL_US = 10 * SECOND
SHORT: dict[str, Any] = {"rate": "60/min", "timeout": "10s"}


def stubborn(
    world: World, for_us: int = TEN_MINUTES, *, times: int = 1, at_last: Act | None = None
) -> Act:
    """The first few calls hear of no cancellation and no close; they act after so long."""
    left = times

    async def act(real: Any, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            return await real(*arguments)
        ends_at = world.clock.now() + for_us
        while world.clock.now() < ends_at:
            with suppress(asyncio.CancelledError):
                await world.clock.sleep_until(ends_at)
        real.__self__._closed = False
        return await (at_last(real, *arguments) if at_last else real(*arguments))

    return act


def answering(outcome: Outcome) -> Act:
    async def act(real: Act, *arguments: Any) -> Any:
        return outcome

    return act


async def failing(real: Act, *arguments: Any) -> Any:
    raise ConnectionResetError("reset")


def double(world: World, **acts: Act) -> Double:
    return Double(world.providers.get("sandbox"), **acts)


async def all_sent(world: World, count: int, within_us: int = HOUR) -> None:
    await world.until(lambda: world.counts() == {"sent": count}, within_us, 10 * SECOND)
    await world.wait(11 * MINUTE)
    assert len(world.calls()) == count, "nobody was contacted twice, not even in vain"


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("finds", [True, False])
@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_a_call_that_delivers_long_after_it_was_given_up_is_not_overtaken(
    worlds: Worlds, on_unknown: str, finds: bool, concurrency: int
) -> None:
    async def script(world: World) -> None:
        policy = {**SHORT, "on_unknown": on_unknown, "concurrency": concurrency}
        world.account(policy=policy, finds=finds, proves_absence=finds)
        world.campaign(3)
        watcher = Watcher()
        provider = double(world, send=stubborn(world))
        process = world.process(providers=provider.registry(), observer=watcher, poll_us=POLL_US)
        await all_sent(world, 3)
        assert not watcher.crashes
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_nor_after_hours_in_which_it_was_asked_about_again_and_again(
    calm: None, worlds: Worlds, on_unknown: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={**SHORT, "on_unknown": on_unknown})
        world.campaign(1)
        provider = double(world, send=stubborn(world, 9 * HOUR))
        process = world.process(providers=provider.registry(), poll_us=MINUTE)
        await all_sent(world, 1, 10 * HOUR)
        assert provider.called["find"] > 5
        await process.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- lanes that come and go


async def in_doubt(world: World) -> None:
    await world.until(lambda: world.counts().get("unknown") == 1, MINUTE)


def take_away_the_lanes(world: World) -> None:
    """By the database's clock the lease of every process is over."""
    world.write(lambda tx: [tx.processes.renew(row.id, 0) for row in tx.processes.list()])


def test_a_new_owner_waits_for_a_call_of_the_former_one(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT)
        world.campaign(3)
        provider = double(world, send=stubborn(world))
        first = world.process("one", providers=provider.registry(), poll_us=HOUR)
        await in_doubt(world)
        await world.until(lambda: len(world.sends()) == 2, MINUTE)
        take_away_the_lanes(world)
        second = world.process("two", poll_us=POLL_US)
        await all_sent(world, 3)
        owner = world.read(lambda tx: tx.lanes.get(world.account_now().id).generation)
        assert owner > 1
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)


def test_so_it_does_after_a_stop_for_as_long_as_the_stopped_process_lives(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT)
        world.campaign(3)
        provider = double(world, send=stubborn(world))
        first = world.process("one", providers=provider.registry(), poll_us=POLL_US)
        await in_doubt(world)
        began_at = world.clock.now()
        await first.stop()
        assert world.clock.now() - began_at < 10 * SECOND, "a stop does not wait for it"
        second = world.process("two", poll_us=POLL_US)
        await all_sent(world, 3)
        await second.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_so_it_does_after_the_lane_was_killed(
    worlds: Worlds, elsewhere: bool, concurrency: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={**SHORT, "concurrency": concurrency})
        world.campaign(3)
        provider = double(world, send=stubborn(world))
        first = world.process("one", providers=provider.registry(), poll_us=POLL_US)
        await world.until(lambda: provider.called["send"] == 1)
        assert first.supervisor.kill("ann")
        processes: list[Process] = [first]
        if elsewhere:
            processes.append(world.process("two", poll_us=POLL_US))
            await first.stop()
        await all_sent(world, 3)
        await processes[-1].stop()

    worlds.fresh().play(script)


def test_a_lane_is_kept_for_a_while_and_then_parked_all_the_same(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(1)
        provider = double(world, send=stubborn(world, 40 * MINUTE))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await in_doubt(world)
        await world.wait(10 * MINUTE)
        assert process.supervisor._running and not provider.called["close"]
        await world.wait(10 * MINUTE)
        assert not process.supervisor._running and provider.called["close"] == 1
        await all_sent(world, 1)
        await process.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- what it says at last


def test_one_that_fails_at_last_leaves_a_doubt_that_is_resolved_as_any_other(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT)
        world.campaign(1)
        began_at = world.clock.now()
        provider = double(world, send=stubborn(world, at_last=failing))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await all_sent(world, 1)
        again_us = world.calls()[0].called_at - began_at
        assert again_us > TEN_MINUTES + 30 * SECOND, "what it wrote at last may not be seen yet"
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    ("outcome", "state", "account"),
    [
        (Outcome(OutcomeKind.REJECTED, "no"), "failed", "active"),
        (Outcome(OutcomeKind.BOUNCED, "nobody"), "bounced", "active"),
        (Outcome(OutcomeKind.UNAUTHORISED, "key"), "ready", "suspended"),
        (Outcome(OutcomeKind.TRANSIENT, "busy"), "sent", "active"),
        (Outcome(OutcomeKind.UNKNOWN, "who knows"), "sent", "active"),
    ],
    ids=lambda value: str(value.kind) if isinstance(value, Outcome) else value,
)
def test_what_it_answers_at_last_is_settled_like_any_answer(
    worlds: Worlds, outcome: Outcome, state: str, account: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={**SHORT, "daily": {"message": 1}})
        world.campaign(1)
        provider = double(world, send=stubborn(world, at_last=answering(outcome)))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await in_doubt(world)
        await world.until(lambda: world.counts() == {state: 1}, HOUR, 10 * SECOND)
        assert world.account_now().state == account
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize("finds", [True, False])
def test_the_parts_that_follow_go_on_after_a_late_answer(worlds: Worlds, finds: bool) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=finds)
        world.campaign(1, parts=TWO_PARTS)
        provider = double(world, send=stubborn(world))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await world.until(lambda: world.counts() == {"sent": 1}, HOUR, 10 * SECOND)
        assert [effect.key for effect in world.calls()] == ["test-1-0", "test-1-1"]
        await process.stop()

    worlds.fresh().play(script)


def test_a_run_that_had_ended_goes_on_where_the_late_answer_says_try_again(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(2)
        busy = answering(Outcome(OutcomeKind.TRANSIENT, "busy"))
        provider = double(world, send=stubborn(world, at_last=busy))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await world.until_finished(within_us=5 * MINUTE)
        assert world.counts() == {"unknown": 1, "sent": 1}
        await world.until(lambda: world.counts() == {"sent": 2}, HOUR, 10 * SECOND)
        await world.until_finished(within_us=MINUTE)
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    ("parts", "keys"), [(1, ["test-1-0"]), (2, ["test-1-0", "test-1-1"])], ids=["one", "two"]
)
def test_and_what_has_arrived_at_last_is_not_sent_again_on_a_person_s_word(
    worlds: Worlds, parts: int, keys: list[str]
) -> None:
    """They said that it was not there, and it was not: it came afterwards."""

    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(1, parts=TWO_PARTS[:parts])
        provider = double(world, send=stubborn(world))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await in_doubt(world)
        (lost,) = world.read(lambda tx: tx.deliveries.page())
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, "resend", world.clock.now()))
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await world.wait(11 * MINUTE)
        assert world.counts() == {"sent": 1}
        assert [effect.key for effect in world.calls()] == keys
        await process.stop()

    worlds.fresh().play(script)


def test_even_a_person_who_says_send_again_waits_for_it(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(1)
        provider = double(world, send=stubborn(world, at_last=failing))
        process = world.process(providers=provider.registry(), poll_us=POLL_US)
        await in_doubt(world)
        (lost,) = world.read(lambda tx: tx.deliveries.page())
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, "resend", world.clock.now()))
        await world.wait(5 * MINUTE)
        assert provider.called["send"] == 1
        (waiting,) = world.read(lambda tx: tx.deliveries.page())
        assert "has not ended" in waiting.reason
        await all_sent(world, 1)
        await process.stop()

    worlds.fresh().play(script)
