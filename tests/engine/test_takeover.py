"""Several processes on one database: one lane per account at any time, whoever dies or sleeps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Part
from paceline.core.states import DeliveryState
from paceline.engine.leases import LEASE_US
from tests.engine.doubles import Double, Watcher
from tests.engine.faults import Standstill, TrippedStore, intends
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

NAMES = ("ann", "bob", "cy", "dee", "eve", "fay")


def owner_of(world: World, name: str = "ann") -> str | None:
    """The name of the process that owns an account's lane."""

    def look(tx: Any) -> str | None:
        owner = tx.lanes.get(world.account_now(name).id).owner
        return next((p.name for p in tx.processes.list() if p.id == owner), None)

    return world.read(look)


def judge_lanes(world: World, *, latency_us: int) -> None:
    """One lane per account: calls never overlap, and generations only ever grow."""
    for account in world.read(lambda tx: tx.accounts.list()):
        called = [effect.called_at for effect in world.calls(account.name)]
        overlaps = [later - earlier for earlier, later in pairwise(called)]
        assert min(overlaps, default=latency_us) >= latency_us
        rows = world.read(lambda tx, account=account: list(tx.ledger.walk(account.id)))
        generations = [row.generation for row in rows if row.kind == "intent"]
        assert generations == sorted(generations)


def set_up_six(world: World, count: int = 12) -> None:
    for name in NAMES:
        world.account(name, policy={"rate": "60/min"}, latency="400ms")
        world.campaign(count, name=f"of-{name}", on=(name,))


async def all_finished(world: World) -> None:
    for name in NAMES:
        await world.until_finished(f"of-{name}", within_us=HOUR)


# ---------------------------------------------------------------------- sharing


@pytest.mark.parametrize("processes", [2, 3])
def test_lanes_are_shared_and_every_account_has_one(worlds: Worlds, processes: int) -> None:
    async def script(world: World) -> None:
        set_up_six(world)
        room = len(NAMES) // processes
        watchers = [Watcher() for _ in range(processes)]
        fleet = [
            world.process(f"p{n}", observer=watcher, max_lanes=room)
            for n, watcher in enumerate(watchers)
        ]
        await all_finished(world)
        for process in fleet:
            await process.stop()
        served = [{account for account, _, _ in watcher.intents} for watcher in watchers]
        assert [len(names) for names in served] == [room] * processes
        assert set().union(*served) == set(NAMES)
        judge_lanes(world, latency_us=400_000)
        # With a process for every few accounts nobody had to wait for a place.
        assert world.clock.now() - world.start_at < 20 * SECOND

    worlds.fresh().play(script)


def test_processes_that_come_and_go_lose_nothing_and_send_nothing_twice(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        set_up_six(world, 40)
        fleet = [world.process(f"p{n}", max_lanes=3) for n in range(3)]
        for round_number in range(4):
            await world.wait(6 * SECOND)
            going = fleet.pop(0)
            await (going.kill() if round_number % 2 else going.stop())
            fleet.append(world.process(f"q{round_number}", max_lanes=3))
        await all_finished(world)
        for process in fleet:
            await process.stop()
        judge_lanes(world, latency_us=400_000)
        assert all(world.counts(f"of-{name}") == {"sent": 40} for name in NAMES)

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- handing over


def test_a_stop_hands_the_lanes_over_at_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="400ms")
        world.campaign(20)
        first = world.process("one")
        await world.until(lambda: len(world.sends()) == 5)
        second = world.process("two")
        await world.wait(SECOND)
        assert owner_of(world) == "one"
        await first.stop()
        stopped_at = world.clock.now()
        await world.until(lambda: owner_of(world) == "two", within_us=1_100_000)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        gaps = [later - earlier for earlier, later in pairwise(e.called_at for e in world.calls())]
        assert max(gaps) < 3 * SECOND, "the others did not wait for a lease to run out"
        assert any(effect.called_at > stopped_at for effect in world.calls())

    worlds.fresh().play(script)


@pytest.mark.parametrize("after_us", [0, 2_400_000, 4_900_000])
def test_the_lanes_of_the_dead_are_taken_over_when_their_lease_is_over_and_not_before(
    worlds: Worlds, after_us: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min"}, latency="50ms")
        world.campaign(20)
        first = world.process("one")
        await world.until(lambda: len(world.sends()) == 5)
        second = world.process("two")
        await world.wait(after_us)
        await first.kill()
        died_at = world.clock.now()
        (row,) = world.read(lambda tx: [p for p in tx.processes.list() if p.name == "one"])
        await world.until(lambda: owner_of(world) == "two", every_us=50_000)
        assert row.lease_until_at <= world.clock.now() <= row.lease_until_at + 1_100_000
        assert LEASE_US - 5 * SECOND <= row.lease_until_at - died_at <= LEASE_US
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        silent = [e for e in world.calls() if died_at < e.called_at < row.lease_until_at]
        assert not silent

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- a host that stands still


async def freeze_when(
    world: World, host: Standstill, when: Callable[[Any], bool], *, before: bool, us: int
) -> None:
    """Let the host stand still at its first commit that ``when`` is true of; return meanwhile."""
    frozen_at: list[Instant] = []

    def freeze(function: Any) -> None:
        if not frozen_at and when(function):
            frozen_at.append(world.clock.now())
            host.freeze_for(us)

    if before:
        host.before = freeze
    else:
        host.after = freeze
    await world.until(lambda: bool(frozen_at))


def stand(world: World) -> tuple[Standstill, Process]:
    host = Standstill(world.clock, world.providers.get("sandbox"))
    return host, world.process("one", **host.ports())


def asleep_before_the_intent(world: World) -> Any:
    async def open_slowly(real: Any, account: Any) -> Any:
        await world.wait(30 * SECOND)
        return await real(account)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "1m"})
        world.campaign(10)
        host, first = stand(world)
        await freeze_when(world, host, intends, before=True, us=20 * SECOND)
        assert not world.calls()
        # The new owner has not come to any delivery yet when the sleeper wakes up.
        slow = Double(world.providers.get("sandbox"), open=open_slowly)
        second = world.process("two", providers=slow.registry())
        await world.until(lambda: not host.frozen)
        assert (owner_of(world), world.counts()) == ("two", {"ready": 10})
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await first.stop()
        await second.stop()
        judge_lanes(world, latency_us=20_000)
        assert world.counts() == {"sent": 10}
        generations = {
            row.generation
            for row in world.read(lambda tx: list(tx.ledger.walk(world.account_now().id)))
        }
        assert 1 not in generations, "the sleeper's intent was refused"

    return script(world)


def asleep_before_the_call(world: World) -> Any:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(10)
        host, first = stand(world)
        await freeze_when(world, host, intends, before=False, us=90 * SECOND)
        assert world.counts() == {"ready": 9, "sending": 1}
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await world.until(lambda: not host.frozen)
        await world.wait(10 * SECOND)
        await first.stop()
        await second.stop()
        assert host.wire.calls == 0, "the sleeper made no call under a lease that had run out"
        assert world.counts() == {"sent": 10}

    return script(world)


def test_a_process_that_slept_before_its_intent_cannot_commit_it(worlds: Worlds) -> None:
    worlds.fresh().play(asleep_before_the_intent)


def test_a_process_that_slept_after_its_intent_does_not_start_the_call(worlds: Worlds) -> None:
    worlds.fresh().play(asleep_before_the_call)


def test_a_call_withdrawn_late_wakes_the_lane_that_held_it_for_lost(worlds: Worlds) -> None:
    """Nobody can be asked, so the delivery was held for a person; the sleeper knows better."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, finds=False)
        world.campaign(3)
        host, first = stand(world)
        await freeze_when(world, host, intends, before=False, us=5 * MINUTE)
        second = world.process("two")
        held = {"sent": 2, "unknown": 1}
        await world.until(lambda: world.counts() == held, every_us=SECOND)
        await world.wait(MINUTE)
        assert owner_of(world) is None, "it is parked, and expects nothing more"
        await world.until(lambda: world.counts() == {"sent": 3}, 6 * MINUTE, SECOND)
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_the_outcome_of_a_sleeper_is_still_recorded(worlds: Worlds, concurrency: int) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "60/min", "timeout": "5m", "concurrency": concurrency}
        world.account(policy=policy, finds=False, latency="4s")
        world.campaign(concurrency)
        host, first = stand(world)
        await world.until(lambda: host.wire.calls == concurrency)
        host.freeze_for(MINUTE)
        second = world.process("two")
        await world.until(lambda: world.counts() == {"unknown": concurrency})
        await world.until(lambda: not host.frozen)
        await world.wait(10 * SECOND)
        assert world.counts() == {"sent": concurrency}
        await first.stop()
        await second.stop()
        assert len(world.calls()) == concurrency

    worlds.fresh().play(script)


def test_calls_still_under_way_when_the_lane_is_lost_are_heard_out(worlds: Worlds) -> None:
    """They answer one after the other, long after the first of them has told that all is lost."""

    async def script(world: World) -> None:
        policy = {"rate": "60/min", "timeout": "5m", "concurrency": 3}
        world.account(policy=policy, finds=False, latency="40s")
        world.campaign(3)
        host, first = stand(world)
        await world.until(lambda: host.wire.calls == 3)
        host.freeze_for(25 * SECOND)
        second = world.process("two")
        await world.until(lambda: world.counts() == {"unknown": 3})
        await world.until(lambda: not host.frozen)
        assert world.counts() == {"unknown": 3}
        await world.wait(30 * SECOND)
        assert world.counts() == {"sent": 3}
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)


def test_the_rest_of_a_sleepers_message_goes_out_once_its_part_is_known(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "5m"}, finds=False, latency="4s")
        world.campaign(1, parts=(Part("text", "one"), Part("text", "two"), Part("text", "three")))
        host, first = stand(world)
        await world.until(lambda: host.wire.calls == 2)
        host.freeze_for(MINUTE)
        second = world.process("two")
        await world.until(lambda: world.counts() == {"unknown": 1})
        await world.until(lambda: world.counts() == {"sent": 1}, within_us=2 * MINUTE)
        await first.stop()
        await second.stop()
        assert [effect.key.rsplit("-", 1)[1] for effect in world.sends()] == ["0", "1", "2"]

    worlds.fresh().play(script)


def test_an_outcome_that_comes_after_another_attempt_changes_nothing(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "30s"}, lost_at=(1,), latency="1s")
        world.campaign(1)
        host, first = stand(world)
        await world.until(lambda: host.wire.calls == 1)
        host.freeze_for(4 * MINUTE)
        second = world.process("two")
        await world.until(lambda: world.counts() == {"sent": 1}, within_us=3 * MINUTE)
        before = world.read(lambda tx: tx.deliveries.page())
        await world.until(lambda: not host.frozen)
        await world.wait(10 * SECOND)
        assert world.read(lambda tx: tx.deliveries.page()) == before
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)


def test_what_was_intended_before_the_lease_ran_out_is_not_sent_after_it_was_renewed(
    worlds: Worlds,
) -> None:
    """In between another process may have had the lane: by the time the answer to the intent's
    commit comes, the lease looks safe again, but it is another term of it."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3)
        store = TrippedStore(world.store)
        process = world.process(store=store)
        intents = 0

        def run_out_at_the_first_intent(number: int, moment: str) -> None:
            nonlocal intents
            sending = world.read(lambda tx: tx.runs.counts(1)[DeliveryState.SENDING])
            if moment == "after" and sending and not intents:
                intents += 1
                process.supervisor._lease.term += 1

        store.trip = run_out_at_the_first_intent
        await world.until_finished()
        await process.stop()
        rows = world.read(lambda tx: tx.ledger.of_delivery(1))
        assert [row.outcome for row in rows] == [None, "withdrawn", None, "accepted"]
        assert rows[1].reason == "the lease had run out in between"
        assert len(world.calls()) == 3

    worlds.fresh().play(script)
