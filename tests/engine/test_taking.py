"""Lanes that are taken: what was read along with them, and accounts that cannot be read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from paceline.core import usage as usages
from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Ask
from paceline.core.policy import Policy
from paceline.core.usage import Usage
from paceline.engine import lane as lanes
from paceline.engine import taking
from paceline.engine.journal import GroupJournal
from paceline.engine.leases import RENEW_EVERY_US, ProcessLease
from paceline.engine.memory import take_snapshot
from paceline.engine.ports import LaneUnit, Lease
from tests.engine.doubles import Watcher
from tests.engine.faults import TrippedStore
from tests.engine.world import World
from tests.engine.worlds import Worlds

T = TypeVar("T")


def test_a_lane_begins_with_what_was_read_when_it_was_taken(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Instant] = []

    def look(tx: Any, account_id: int, now: Instant, *, known: Any = None) -> Any:
        looks.append(now)
        return take_snapshot(tx, account_id, now, known=known)

    monkeypatch.setattr(lanes, "take_snapshot", look)

    async def script(world: World) -> None:
        for name in ("ann", "ben"):
            world.account(name, policy={"rate": "60/min"})
        world.campaign(4, on=("ann", "ben"))
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not looks, "nothing was touched, so nobody had to look again"

    worlds.fresh().play(script)


def test_an_account_that_cannot_be_read_keeps_no_other_from_being_taken(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        bad = world.account("ann", policy={"rate": "60/min"})
        world.account("ben", policy={"rate": "60/min"})
        world.campaign(4, on=("ann", "ben"))

        def look(tx: Any, account_id: int, now: Instant, *, known: Any = None) -> Any:
            if account_id == bad.id:
                raise InputError("no such limit", key="rate")
            return take_snapshot(tx, account_id, now, known=known)

        for module in (lanes, taking):
            monkeypatch.setattr(module, "take_snapshot", look)
        watcher = Watcher()
        process = world.process(observer=watcher)
        await world.wait(MINUTE)
        assert world.counts()["sent"] == 2, "all of the other's"
        assert watcher.crashes["ann"], "and this one is told of"
        await process.stop()

    worlds.fresh().play(script)


def test_a_lane_that_is_due_again_is_taken_in_the_visit_that_shows_it(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    take_up = taking.Taking.take_up

    async def noted(self: taking.Taking, account_ids: list[int], *args: Any) -> Any:
        tried.extend(account_ids)
        return await take_up(self, account_ids, *args)

    monkeypatch.setattr(taking.Taking, "take_up", noted)

    async def script(world: World) -> None:
        world.account(policy={"spacing": "10m"})
        world.campaign(3)
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert len(world.calls()) == 3
        assert len(tried) == 1, "only before anything was known"

    worlds.fresh().play(script)


def test_where_there_is_no_room_for_those_that_wait_nothing_is_written_to_look(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"spacing": "1m"})
            world.campaign(2, name=f"to-{name}", on=(name,))
        store, looks = TrippedStore(world.store), [0]

        def look() -> None:
            looks[0] += 1

        store.look = look
        process = world.process(store=store, max_lanes=1)
        await world.until(lambda: len(world.sends()) == 1)
        await world.wait(2 * SECOND)
        looked, written = looks[0], store.commits
        await world.wait(40 * SECOND)
        assert looks[0] - looked >= 40, "it goes on looking"
        assert store.commits - written <= 40 * SECOND // RENEW_EVERY_US + 1, "but for its lease"
        for name in ("ann", "bob"):
            await world.until_finished(f"to-{name}", within_us=HOUR, every_us=SECOND)
        await process.stop()

    worlds.fresh().play(script)


def test_more_lanes_than_a_few_are_taken_in_a_visit_of_their_own(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "FEW", 1)

    async def script(world: World) -> None:
        for name in ("ann", "ben"):
            world.account(name, policy={"spacing": "10m"})
        world.campaign(6, on=("ann", "ben"))
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert len(world.calls()) == 6

    worlds.fresh().play(script)


class _LateRunner:
    """A store that is busy: whoever asks has to wait for his turn."""

    def __init__(self, world: World, waits_us: int) -> None:
        self._world = world
        self._waits_us = waits_us

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        await self._world.wait(self._waits_us)
        return function()

    def close(self) -> None:
        return


@pytest.mark.parametrize("few", [taking.FEW, 0])
def test_what_was_sent_while_a_lane_was_being_taken_is_not_taken_for_a_wrong_clock(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Its gap would begin before it was sent, and end as much too early."""
    monkeypatch.setattr(taking, "FEW", few)

    async def script(world: World) -> None:
        account_id = world.account(policy={"spacing": "60s"}).id
        runner = _LateRunner(world, 10 * SECOND)
        journal = GroupJournal(world.store, world.clock, writer=runner, reader=runner)
        lease = ProcessLease(journal, world.clock, "late")
        await lease.join()
        policy = Policy.from_mapping({"spacing": "60s"})
        asked = asyncio.ensure_future(
            taking.Taking(journal, lease).take_up([account_id], world.clock.now)
        )
        await world.wait(8 * SECOND)
        sent_at = world.clock.now()
        usage = usages.spend(Usage(), policy, Ask(), sent_at, random.Random(1))
        usage = usages.started(usage, sent_at, policy, reply=False)
        with world.store.write() as tx:
            other = tx.processes.join("other", MINUTE).id
            ((row, _),) = taking.take(tx, [account_id], other)
            ours = Lease(account_id, other, row.generation)
            tx.path.apply([LaneUnit(ours, row.revision, usages.to_json(usage))])
            tx.lanes.park(ours, row.revision, sent_at)
        ((_, _, snapshot),) = await asked
        assert snapshot is not None
        assert snapshot.usage().last_at == sent_at
        await journal.close()

    worlds.fresh().play(script)
