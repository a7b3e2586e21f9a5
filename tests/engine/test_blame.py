"""Who is blamed for a worker's end: nobody, where the worker says that it was none of them."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.reports import Joined, LaneCrash, Standstill
from paceline.engine.crashes import CRASHES_ALLOWED, Crash, CrashBook, Restart
from paceline.engine.ports import Alert
from tests.engine.workforce import FakeWorker, Service, Workforce
from tests.engine.world import World
from tests.engine.worlds import Worlds

FAST = {"rate": "60/min"}
IN_THE_LOG = Standstill(None, excused=True, where="write (logs.py:80)")


def people(world: World, *names: str, count: int = 500) -> None:
    for name in names:
        world.account(name, policy=FAST)
        world.campaign(count, name=name, on=(name,))


def alerts(world: World) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list())


async def stand_still(world: World, service: Service, at: Standstill) -> FakeWorker:
    """The worker of ann stops moving in the middle of its work; until it was ended."""
    sent = len(world.sends("ann"))
    await world.until(lambda: len(world.sends("ann")) > sent, 2 * MINUTE)
    worker = service.workforce.of("ann")
    worker.fall_silent(standstill=at)
    await world.until(lambda: worker.over, 2 * MINUTE)
    return worker


@pytest.mark.parametrize("together", [1, 3])
def test_who_waits_for_the_log_or_the_database_is_not_blamed_and_a_person_is_told(
    worlds: Worlds, together: int
) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bob")
        service = Service(world, accounts_per_worker=together)
        for _ in range(CRASHES_ALLOWED + 1):
            await stand_still(world, service, IN_THE_LOG)
        await world.wait(30 * SECOND)
        assert [world.account_now(name).state for name in ("ann", "bob")] == ["active"] * 2
        assert not service.books.crashes
        (alert,) = alerts(world)
        assert (alert.kind, alert.account_id) == ("process.blocked", None)
        assert alert.count == CRASHES_ALLOWED + 1
        names = "ann" if together == 1 else "ann, bob"
        told = f"a worker of process one stood still and was ended ({names}: its worker did not"
        assert alert.text.startswith(told)
        assert alert.text.endswith("no account is to blame, it stood at write (logs.py:80)")
        given = {len(worker.given) for worker in service.workforce.started}
        assert max(given) == min(together, 2), "nobody has to be kept apart from anybody"
        await service.stop()

    worlds.fresh().play(script)


def test_a_lone_account_is_blamed_where_nothing_excuses_it(worlds: Worlds) -> None:
    """Its driver may block in a callback, of which nobody knows whose it is."""

    async def script(world: World) -> None:
        people(world, "ann")
        service = Service(world)
        await stand_still(world, service, Standstill(None, where="recv (ssl.py:1)"))
        await world.until(lambda: service.books.crashes == {"ann": 1}, SECOND)
        assert alerts(world) == []
        await service.stop()

    worlds.fresh().play(script)


def test_who_moves_again_after_waiting_for_the_log_is_blamed_for_what_comes_later(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        people(world, "ann")
        service = Service(world)
        await world.until(lambda: len(world.sends("ann")) > 2)
        worker = service.workforce.of("ann")
        worker.tell(IN_THE_LOG)
        await world.wait(10 * SECOND)
        worker.die(-11)
        await world.until(lambda: service.books.crashes == {"ann": 1})
        await service.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- told once


def test_a_crash_that_was_told_from_here_counts_once_when_it_comes_back() -> None:
    book = CrashBook()
    mine, theirs = Crash(MINUTE, 1), Crash(MINUTE + 1, None)
    assert isinstance(book.note(7, mine), Restart)
    for crash in (mine, theirs, theirs):
        book.learn(7, crash)
    assert book.recent(7, MINUTE + SECOND) == [mine, theirs]


def test_a_lane_that_crashes_before_its_worker_was_told_of_it_crashes_once(
    worlds: Worlds,
) -> None:
    """The lane is free a moment before the worker is told what is known of it. If it crashes in
    that moment, the crash is among what is known by then."""

    async def script(world: World) -> None:
        people(world, "ann")
        workforce = Workforce(world)
        service = Service(world, workforce=workforce)
        orchestrator = service.orchestrator
        assign = orchestrator._assign

        def late(worker: object, account_ids: object) -> None:
            fake = workforce.started[-1]
            crash = Crash(world.clock.now(), None)
            fake._book.note(world.account_now("ann").id, crash)
            assign(worker, account_ids)  # type: ignore[arg-type]

        orchestrator._assign = late  # type: ignore[method-assign]
        await world.until(lambda: len(world.sends("ann")) > 2)
        fake = workforce.of("ann")
        (assignment,) = fake.assigned
        assert len(assignment.crashes) == 1
        ann = world.account_now("ann").id
        now = world.clock.now()
        assert len(fake._book.recent(ann, now)) == 1
        assert len(orchestrator._blame.crashes.recent(ann, now)) == 1
        await service.stop()

    worlds.fresh().play(script)


def test_reports_of_a_worker_that_has_ended_harm_nobody(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", count=3)
        service = Service(world)
        await world.until_finished("ann")
        worker = service.workforce.of("ann")
        worker.die(0)
        await asyncio.sleep(0)
        for report in (Joined(99), LaneCrash(1, world.clock.now(), None), IN_THE_LOG):
            worker._hear(report)
        await world.wait(10 * SECOND)
        assert alerts(world) == []
        await service.stop()

    worlds.fresh().play(script)
