"""Lanes that are parked after each message: how often they write, and when they are woken."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine import lane as lanes
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.leases import ProcessLease, Renewed
from paceline.engine.outbox import Outbox
from tests.engine.world import World
from tests.engine.worlds import Worlds

SPACED = {"spacing": "10m"}
MESSAGES = 5


def test_what_became_of_a_message_is_written_as_its_lane_is_parked(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[Instant] = []
    submit = Outbox.submit

    async def counted(self: Outbox, intent: Any, begins: Any = None) -> bool:
        if intent is None:
            alone.append(self._context.clock.now())
        return await submit(self, intent, begins)

    monkeypatch.setattr(Outbox, "submit", counted)

    async def script(world: World) -> None:
        world.account(policy=SPACED)
        world.campaign(MESSAGES)
        process = world.process()
        await world.until_finished(within_us=2 * HOUR, every_us=SECOND)
        await process.stop()
        assert world.counts() == {"sent": MESSAGES}
        # The last one of a run is written before the run is ended.
        assert len(alone) == 1

    worlds.fresh().play(script)


def test_a_lane_is_woken_when_its_pace_lets_the_next_one_go(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when that is due: it would find that it has to wait, and be parked again."""
    begun: list[Instant] = []
    begin = lanes.Lane._begin

    async def counted(self: lanes.Lane) -> Any:
        begun.append(self._clock.now())
        return await begin(self)

    monkeypatch.setattr(lanes.Lane, "_begin", counted)

    async def script(world: World) -> None:
        account = world.account(policy=SPACED)
        world.campaign(MESSAGES)
        now = world.clock.now()
        # Each falls due in the middle of the gap after the one before it.
        ids = world.read(lambda tx: [d.id for d in tx.path.due(account.id, 1, now, 10)])
        assert len(ids) == MESSAGES
        for place, delivery_id in enumerate(ids):
            due_at = now + place * 5 * MINUTE
            world.write(lambda tx, i=delivery_id, at=due_at: tx.deliveries.postpone(i, at, ""))
        process = world.process()
        await world.until_finished(within_us=2 * HOUR, every_us=SECOND)
        await process.stop()
        assert len(begun) == MESSAGES

    worlds.fresh().play(script)


def test_a_process_that_parks_its_last_lane_has_a_long_lease_by_then(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewals: list[Instant] = []
    renew = ProcessLease.renew

    async def counted(self: ProcessLease) -> None:
        renewals.append(self._clock.now())
        await renew(self)

    monkeypatch.setattr(ProcessLease, "renew", counted)

    async def script(world: World) -> None:
        world.account(policy=SPACED)
        world.campaign(2)
        process = world.process()
        await world.until(lambda: len(world.sends()) == 1)
        await world.wait(SECOND)
        ((row),) = world.read(lambda tx: tx.processes.list())
        assert row.lease_until_at - world.clock.now() > MINUTE
        await world.wait(50 * SECOND)
        assert not renewals
        await process.stop()

    worlds.fresh().play(script)


def test_a_renewal_that_is_heard_of_late_changes_nothing_of_a_younger_one(world: World) -> None:
    async def script(world: World) -> None:
        runner = InlineRunner()
        journal = GroupJournal(world.store, world.clock, writer=runner, reader=runner)
        lease = ProcessLease(journal, world.clock, "one")
        early = lease.ask()
        await world.wait(SECOND)
        lease.extend(lease.ask())
        safe_us, at = lease._safe_until_us, world.clock.now()
        lease.renewed_along(early, Renewed(at + HOUR, at))
        assert (lease._safe_until_us, lease._long) == (safe_us, False)
        lease.renewed_along(lease.ask(), Renewed(at + HOUR, at))
        assert lease._long

    world.play(script)
