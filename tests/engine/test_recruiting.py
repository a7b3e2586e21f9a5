"""Workers that cannot be had: it is tried again, no account is blamed, and somebody is told."""

from __future__ import annotations

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import MINUTE, SECOND
from paceline.core.reports import Away
from paceline.engine.crashes import AWAY_PAUSE_US
from paceline.engine.ports import Alert, Journal
from paceline.engine.ports.workers import AWAY
from paceline.engine.recruiting import FAILURES_TOLD, Recruiting
from tests.engine.workforce import BEAT_US, Service, Workforce
from tests.engine.world import World
from tests.engine.worlds import Worlds

FAST = {"rate": "60/min"}


def alerts(world: World, *, cleared: bool = False) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list(with_cleared=cleared))


async def go_away(world: World, service: Service, number: int, reason: str = "") -> None:
    """The next worker that is started cannot reach the database."""
    workforce = service.workforce
    await world.until(lambda: len(workforce.started) == number, 2 * MINUTE)
    worker = workforce.started[-1]
    if reason:
        worker.tell(Away(reason))
    worker.die(AWAY)


def test_workers_that_cannot_reach_the_database_are_told_of(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(3)
        service = Service(world, workforce=Workforce(world, start_us=3 * SECOND))
        for number in range(1, FAILURES_TOLD):
            await go_away(world, service, number, "too many clients already")
        await world.wait(10 * SECOND)
        assert alerts(world) == [] and service.orchestrator.problem is None, "that may happen"
        await go_away(world, service, FAILURES_TOLD, "too many clients already")
        await world.wait(10 * SECOND)
        problem = "workers cannot be started: too many clients already"
        assert service.orchestrator.problem == problem
        (alert,) = alerts(world)
        assert (alert.kind, alert.account_id) == ("workers.failing", None)
        assert alert.text == f"process one: {problem}"
        await go_away(world, service, FAILURES_TOLD + 1)
        await world.wait(10 * SECOND)
        (alert,) = alerts(world)
        assert alert.count == 2, "it goes on"
        await world.until_finished(within_us=2 * MINUTE)
        assert service.orchestrator.problem is None
        await world.until(lambda: alerts(world) == [], MINUTE)
        assert world.account_now().state == "active"
        await service.stop()

    worlds.fresh().play(script)


def test_many_that_find_the_database_away_together_are_one_failure(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        for number in range(4):
            world.account(f"number-{number}", policy=FAST)
            world.campaign(1, name=f"of {number}", on=(f"number-{number}",))
        service = Service(world, workforce=Workforce(world, start_us=3 * SECOND))
        await world.until(lambda: len(service.workforce.started) == 4)
        for worker in service.workforce.started:
            worker.die(AWAY)
        await world.wait(AWAY_PAUSE_US - SECOND)
        assert alerts(world) == [] and service.orchestrator.problem is None
        assert len(service.workforce.started) == 4, "nobody else tries meanwhile"
        for number in range(4):
            await world.until_finished(f"of {number}")
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_that_says_it_lives_and_never_joins_is_ended(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(3)
        service = Service(world)
        workforce = service.workforce
        workforce.idles = True
        await world.until(lambda: len(workforce.started) == 1)
        began_at = world.clock.now()
        await world.until(lambda: workforce.started[0].over, 5 * MINUTE, every_us=SECOND)
        assert 60 * SECOND <= world.clock.now() - began_at <= 60 * SECOND + 2 * BEAT_US
        await world.until(lambda: len(workforce.started) == FAILURES_TOLD + 1, 10 * MINUTE)
        await world.until(lambda: alerts(world) != [], MINUTE)
        problem = service.orchestrator.problem
        assert problem is not None
        assert problem.startswith("workers cannot be started: it did not join within 6")
        assert [alert.text for alert in alerts(world)] == [f"process one: {problem}"]
        assert world.account_now().state == "active", "nothing of it was done yet"
        workforce.idles = workforce.started[-1].idles = False
        await world.until_finished(within_us=5 * MINUTE)
        await world.until(lambda: alerts(world) == [], MINUTE)
        await service.stop()

    worlds.fresh().play(script)


def test_a_service_that_stops_takes_its_alert_along(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(3)
        service = Service(world)
        service.workforce.refusal = OSError("no more processes")
        await world.until(lambda: len(alerts(world)) == 1, 5 * MINUTE)
        await service.stop()
        assert alerts(world) == []
        assert len(alerts(world, cleared=True)) == 1

    worlds.fresh().play(script)


def test_what_cannot_be_told_now_is_told_the_next_time(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        service = Service(world)
        recruiting = Recruiting("two", world.clock, most=1, most_starting=1)
        for _ in range(FAILURES_TOLD):
            recruiting.failed("two worker 1", "no more processes")
            await world.wait(MINUTE)
        with pytest.raises(StoreUnavailable):
            await recruiting.tell(_away())
        await recruiting.tell(service.journal)
        await recruiting.tell(service.journal)
        (alert,) = alerts(world)
        assert alert.count == 1, "nothing has happened since"
        await recruiting.retire(_away())
        await recruiting.retire(service.journal)
        assert alerts(world) == []
        await service.stop()

    worlds.fresh().play(script)


def _away() -> Journal:
    class Gone:
        def write(self, work: object, *, alone: bool = False) -> object:
            raise StoreUnavailable("the database cannot be reached")

    return Gone()  # type: ignore[return-value]
