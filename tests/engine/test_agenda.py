"""What a lane reads ahead: in few visits to the store, and never past what it has not seen."""

from __future__ import annotations

from typing import cast

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine.agenda import RunQueue
from paceline.engine.memory import policy_of
from paceline.engine.ports import Journal
from tests.engine.world import World


def read_at(patch: pytest.MonkeyPatch) -> list[Instant]:
    """When pages were read in a visit of their own."""
    visits: list[Instant] = []
    read = RunQueue.read

    async def watched(queue: RunQueue, now: Instant, *rest: object) -> None:
        visits.append(now)
        await read(queue, now, *rest)  # type: ignore[arg-type]

    patch.setattr(RunQueue, "read", watched)
    return visits


def test_a_lane_that_wakes_for_one_message_reads_no_page_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before it, nor after it to find out when the next is due."""
    visits = read_at(monkeypatch)

    async def script(world: World) -> None:
        world.account(policy={"spacing": "5m"})
        world.campaign(6)
        process = world.process()
        await world.until_finished(within_us=2 * HOUR, every_us=MINUTE)
        await process.stop()
        assert len(world.sends()) == 6
        assert not visits

    world.play(script)


def test_what_falls_due_after_a_page_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = read_at(monkeypatch)

    async def script(world: World) -> None:
        account = world.account(policy={"rate": "60/s"})
        world.campaign(3)
        start_at = world.clock.now()
        due = [start_at, start_at + 30 * SECOND, start_at + 90 * SECOND]
        with world.store.write() as tx:
            (run,) = tx.runs.of_campaign(tx.campaigns.list()[0].id)
            rows = tx.path.due(account.id, run.id, start_at, 3)
            for row, due_at in zip(rows, due, strict=True):
                tx.deliveries.postpone(row.id, due_at, "")
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        sent = [effect.at for effect in world.sends()]
        late = [at - due_at for at, due_at in zip(sent, due, strict=True)]
        assert all(0 <= late_us < SECOND for late_us in late), late
        assert len(visits) == 2, "once for each that was not due at first"

    world.play(script)


def test_who_was_written_to_meanwhile_is_asked_for_anew(world: World) -> None:
    """What a delivery asks for is remembered while it waits, but not beyond what was learned."""

    async def script(world: World) -> None:
        account = world.account(policy={"per_recipient": "1/day"})
        world.campaign(1)
        now = world.clock.now()
        with world.store.read() as tx:
            (run,) = tx.runs.of_campaign(tx.campaigns.list()[0].id)
            (delivery,) = tx.path.due(account.id, run.id, now, 1)

        class Told:
            async def read(self, work: object) -> dict[str, tuple[Instant, ...]]:
                return {delivery.target: (now,)}

        queue = RunQueue(run, account.id, policy_of(account), cast("Journal", Told()))
        content = queue.content_of(delivery)
        before = queue.ask(delivery, content)
        assert queue.ask(delivery, content) is before
        assert not before.contacted
        assert await queue.contacted_anew(delivery, now)
        assert queue.ask(delivery, content).contacted == (now,)

    world.play(script)
