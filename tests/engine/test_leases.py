"""The process's lease: how long a send may start, whatever the clocks do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.core.errors import LeaseLost
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine.catalogue import Catalogue
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.leases import (
    IDLE_LEASE_US,
    IDLE_RENEW_EVERY_US,
    LEASE_US,
    RENEW_EVERY_US,
    UNSAFE_TAIL_US,
)
from paceline.engine.taking import Taking
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.store.database import open_store
from tests.engine.desk import Desk, open_desk, run
from tests.engine.doubles import Watcher
from tests.engine.faults import LostStore, TrippedStore
from tests.engine.world import World
from tests.engine.worlds import Worlds

SAFE_US = LEASE_US - UNSAFE_TAIL_US


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path) as opened:
        yield opened


def a_lane(desk: Desk) -> int:
    """An account of nobody's."""
    providers = Registry([SandboxProvider(desk.clock, MemoryEffects())])
    with desk.store.write() as tx:
        new = NewAccount("ann", "sandbox")
        return accounts.add(tx, new, House(providers, Catalogue()), desk.clock.at).id


def test_the_numbers_fit_together() -> None:
    assert (LEASE_US, RENEW_EVERY_US, UNSAFE_TAIL_US) == (15 * SECOND, 5 * SECOND, 5 * SECOND)
    assert RENEW_EVERY_US < SAFE_US, "one lost renewal stops nobody"
    assert 2 * IDLE_RENEW_EVERY_US < IDLE_LEASE_US


def test_before_joining_nothing_is_safe_and_nobody_has_a_number(desk: Desk) -> None:
    assert not desk.lease.safe()
    assert not desk.lease.joined
    with pytest.raises(LeaseLost):
        _ = desk.lease.process_id


def test_a_send_may_start_until_the_last_part_of_the_lease(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        desk.clock.pass_by(SAFE_US - 1)
        assert desk.lease.safe()
        desk.clock.pass_by(1)
        assert not desk.lease.safe()
        await desk.lease.renew()
        assert desk.lease.safe()
        assert desk.rows() == [(desk.lease.process_id, desk.clock.at + IDLE_LEASE_US)]

    run(script)


def test_an_idle_process_is_known_for_long_but_may_send_no_longer_for_it(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        await desk.lease.renew()
        desk.clock.pass_by(IDLE_RENEW_EVERY_US)
        assert desk.rows()[0][1] > desk.clock.at, "the fleet knows that it is alive"
        assert desk.lease.alive
        assert not desk.lease.safe(), "but nothing may be sent on that"
        desk.clock.pass_by(IDLE_LEASE_US)
        assert not desk.lease.alive

    run(script)


def test_taking_lanes_makes_the_lease_a_short_one_in_the_same_transaction(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        await desk.lease.renew()
        taking = Taking(desk.journal, desk.lease)
        desk.clock.pass_by(MINUTE)
        assert await taking.take([a_lane(desk)]) != []
        assert desk.rows() == [(1, desk.clock.at + LEASE_US)]
        assert desk.lease.safe()
        desk.clock.pass_by(RENEW_EVERY_US)
        await desk.lease.renew()
        assert desk.rows() == [(1, desk.clock.at + LEASE_US)], "short while a lane is ours"

    run(script)


def test_taking_nothing_leaves_the_lease_as_it_is(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        await desk.lease.renew()
        before = desk.rows()
        desk.clock.pass_by(MINUTE)
        assert await Taking(desk.journal, desk.lease).take([99]) == []
        assert desk.rows() == before
        assert not desk.lease.safe()

    run(script)


def test_a_slow_renewal_counts_from_when_it_was_asked_for(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()

        def slowly(commit: int, moment: str) -> None:
            if moment == "after":
                desk.clock.pass_by(7 * SECOND)

        desk.clock.pass_by(5 * SECOND)
        desk.tripped.trip = slowly
        await desk.lease.renew()
        assert desk.lease.safe()
        desk.clock.pass_by(SAFE_US - 7 * SECOND)
        assert not desk.lease.safe()

    run(script)


def test_a_machine_that_slept_does_not_trust_its_monotonic_clock(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        desk.clock.at += MINUTE  # the machine was suspended: only the wall clock went on
        assert not desk.lease.safe()
        await desk.lease.renew()
        assert desk.lease.safe()

    run(script)


def test_a_wall_clock_that_is_set_back_does_not_make_the_lease_longer(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        desk.clock.at -= HOUR
        desk.clock.pass_by(SAFE_US)
        assert not desk.lease.safe()

    run(script)


def test_a_renewal_that_fails_lets_the_lease_run_out(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        lost = LostStore(desk.store, desk.clock, 1, "before", MINUTE)
        desk.journal._store = lost
        desk.clock.pass_by(RENEW_EVERY_US)
        await desk.lease.renew()
        desk.clock.pass_by(RENEW_EVERY_US)
        assert not desk.lease.safe()

    run(script)


def test_a_renewal_of_which_only_the_answer_is_lost_does_not_count_either(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        desk.journal._store = LostStore(desk.store, desk.clock, 1, "after", SECOND)
        desk.clock.pass_by(RENEW_EVERY_US)
        await desk.lease.renew()
        assert desk.rows() == [(1, desk.clock.at + IDLE_LEASE_US)], "the database has it"
        desk.clock.pass_by(RENEW_EVERY_US)
        assert not desk.lease.safe(), "but we do not know"

    run(script)


def test_a_process_that_was_buried_joins_again_under_a_new_number(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        before = desk.lease.process_id
        desk.clock.pass_by(2 * HOUR)
        with desk.store.write() as tx:
            assert tx.processes.bury(HOUR) == 1
        await desk.lease.renew()
        assert desk.lease.process_id != before
        assert desk.lease.safe()

    run(script)


def test_leaving_forgets_the_process_at_once(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        await desk.lease.leave()
        assert desk.rows() == []
        assert not desk.lease.safe()
        assert not desk.lease.joined
        await desk.lease.renew()
        assert desk.rows() == [], "a renewal that comes late does not join again"

    run(script)


def test_a_renewal_under_way_while_leaving_does_not_join_again(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        await asyncio.gather(desk.lease.renew(), desk.lease.leave())
        assert desk.rows() == []
        assert not desk.lease.safe()

    run(script)


# ---------------------------------------------------------------------- in a running process


def test_a_database_whose_clock_jumps_makes_nobody_spin(tmp_path: Path) -> None:
    """By the database's time the lease is over, by ours it is not: intents are refused until the
    next renewal, and the lane waits for it instead of asking as fast as it can."""
    ahead_us = 0
    world = World("")
    store = open_store(
        f"sqlite:///{tmp_path / 'jump.db'}", clock=lambda: world.clock.now() + ahead_us
    )

    async def script(world: World) -> None:
        nonlocal ahead_us
        world.account(policy={"rate": "600/min"})
        world.campaign(300)
        tripped, watcher = TrippedStore(store), Watcher()
        process = world.process(store=tripped, observer=watcher)
        await world.until(lambda: len(world.sends()) == 20)
        commits, ahead_us = tripped.commits, 20 * SECOND
        await world.wait(2_500_000)
        assert len(world.sends()) <= 21
        assert tripped.commits - commits < 20
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes
        assert world.counts() == {"sent": 300}

    try:
        world = World("", opened=store)
        world.play(script)
    finally:
        store.close()


def test_a_lease_that_runs_out_stops_the_sending_and_a_renewal_starts_it_again(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(60)
        tripped = TrippedStore(world.store)
        process = world.process(store=tripped)
        await world.until(lambda: len(world.sends()) == 10)
        lease = process.supervisor._lease
        renew, process.supervisor._lease.renew = lease.renew, _not_now  # type: ignore[method-assign]
        for loop in process.supervisor._side:
            loop.cancel()
        await world.wait(30 * SECOND)
        assert not process.supervisor.healthy
        silent = len(world.sends())
        assert silent <= 21
        await renew()
        await world.until(lambda: len(world.sends()) > silent)
        await process.kill()
        second = world.process("two")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await second.stop()
        assert world.counts() == {"sent": 60}

    worlds.fresh().play(script)


async def _not_now() -> None:
    return
