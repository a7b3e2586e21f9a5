"""The orchestrator: who gets a worker, when, and together with whom; starting and stopping."""

from __future__ import annotations

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine.leases import LEASE_US
from paceline.engine.orchestrator import END_WITHIN_US
from paceline.engine.station import NO_LEASE
from tests.engine.workforce import REST_US, Service, Workforce
from tests.engine.world import World
from tests.engine.worlds import Worlds

FAST = {"rate": "60/min"}


def two_accounts(world: World, count: int = 10) -> None:
    for name in ("ann", "bob"):
        world.account(name, policy=FAST)
    world.campaign(count, name="spring", on=("ann",))
    world.campaign(count, name="other", on=("bob",))


async def both_finished(world: World) -> None:
    await world.until_finished("spring")
    await world.until_finished("other")


def owner(world: World, name: str = "ann") -> int | None:
    account = world.account_now(name)
    return world.read(lambda tx: tx.lanes.get(account.id).owner)


# ---------------------------------------------------------------------- who gets a worker


def test_every_account_has_a_worker_of_its_own_which_ends_when_there_is_nothing_to_do(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        two_accounts(world)
        world.account("idle")
        service = Service(world)
        await both_finished(world)
        assert [len(worker.given) for worker in service.workforce.started] == [1, 1]
        assert service.workforce.count("idle") == 0
        assert owner(world) is None or owner(world) != service.orchestrator.process_id
        await world.wait(REST_US + 10 * SECOND)
        assert service.books.workers[-1] == 0, "an idle account costs nothing"
        world.campaign(5, name="next", on=("ann",))
        await world.until_finished("next")
        assert service.workforce.count("ann") == 2 and service.workforce.count("bob") == 1
        await service.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 10}


def test_a_worker_stays_as_long_as_something_of_its_accounts_is_due_soon(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "80s"})
        world.campaign(8)
        # Parked between two messages, so that nothing runs.
        workforce = Workforce(world, park_after_us=5 * SECOND)
        service = Service(world, workforce=workforce)
        await world.until_finished(every_us=SECOND)
        assert len(workforce.started) == 1
        assert len(world.sends()) == 8
        await service.stop()

    worlds.fresh().play(script)


def test_accounts_share_a_worker_and_later_ones_join_it_while_there_is_room(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        names = ("ann", "bob", "cleo", "dan")
        for name in names:
            world.account(name, policy=FAST)
        for name in names[:2]:
            world.campaign(30, name=f"of {name}", on=(name,))
        service = Service(world, accounts_per_worker=3)
        await world.until(lambda: len(world.sends("bob")) >= 2)
        for name in names[2:]:
            world.campaign(5, name=f"of {name}", on=(name,))
        for name in names:
            await world.until_finished(f"of {name}")
        first, second = service.workforce.started
        assert len(first.given) == 2, "both were due when it was started"
        assert [len(one.account_ids) for one in first.assigned] == [2, 1]
        assert len(second.given) == 1, "three are enough"
        await service.stop()

    worlds.fresh().play(script)


def test_only_a_few_workers_start_at_the_same_time(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        names = [f"number-{n}" for n in range(9)]
        for name in names:
            world.account(name, policy=FAST)
            world.campaign(1, name=f"of {name}", on=(name,))
        workforce = Workforce(world, start_us=10 * SECOND)
        service = Service(world, workforce=workforce, starts_at_once=3)
        await world.wait(9 * SECOND)
        assert len(workforce.started) == 3
        await world.wait(10 * SECOND)
        assert len(workforce.started) == 6
        for name in names:
            await world.until_finished(f"of {name}")
        await service.stop()

    worlds.fresh().play(script)


def test_two_services_start_one_worker_for_one_lane(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(10)
        services = [Service(world, name) for name in ("one", "two")]
        await world.until_finished()
        assert sum(len(service.workforce.started) for service in services) == 1
        for service in services:
            await service.stop()

    worlds.fresh().play(script)


def test_a_lane_of_a_service_that_is_gone_is_taken_over_after_its_lease(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(10)
        gone = world.process("gone")
        await world.until(lambda: len(world.sends()) == 3)
        await gone.kill()
        service = Service(world)
        await world.until_finished(within_us=LEASE_US + MINUTE)
        await service.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- the service's own part


def test_what_workers_have_counted_is_on_the_service_s_books(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        two_accounts(world)
        service = Service(world)
        await world.until(lambda: service.books.lanes == 2)
        await both_finished(world)
        await world.wait(10 * SECOND)
        books = service.books
        assert books.intents == {"ann": 10, "bob": 10}
        assert sum(books.attempts.values()) == 20
        assert books.moves == {"sent": 20}
        assert sum(books.latency.counts) == 20
        assert books.lanes == 0, "both lanes are parked"
        await service.stop()

    worlds.fresh().play(script)


def test_the_service_is_a_member_of_the_fleet_whether_it_has_workers_or_not(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        service = Service(world)
        assert service.orchestrator.problem == NO_LEASE
        await world.wait(HOUR)
        assert service.orchestrator.healthy and service.orchestrator.problem is None
        assert [row.name for row in world.read(lambda tx: tx.processes.list())] == ["one"]
        await service.stop()
        assert world.read(lambda tx: tx.processes.list()) == []

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (OSError("no more processes"), "no more processes"),
        (RuntimeError("a defect"), "RuntimeError('a defect')"),
    ],
)
def test_workers_that_cannot_be_started_are_nobody_s_fault(
    worlds: Worlds, refusal: Exception, told: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(3)
        service = Service(world)
        workforce = service.workforce
        workforce.refusal = refusal
        await world.wait(5 * MINUTE)
        assert service.orchestrator.problem == f"workers cannot be started: {told}"
        assert owner(world) is None, "somebody else may be able to"
        assert world.account_now().state == "active"
        workforce.refusal = None
        await world.until_finished(within_us=2 * MINUTE)
        assert service.orchestrator.problem is None
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_that_dies_before_it_has_joined_is_nobody_s_fault_either(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(3)
        workforce = Workforce(world, start_us=10 * SECOND)
        service = Service(world, workforce=workforce)
        for number in range(1, 8):
            await world.until(lambda n=number: len(workforce.started) == n)  # type: ignore[misc]
            workforce.started[-1].die(1)
        await world.until_finished(within_us=5 * MINUTE)
        assert world.account_now().state == "active"
        await service.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- stopping


def test_a_stop_lets_workers_settle_and_hands_everything_back(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 3}, latency="3s")
        world.campaign(40)
        service = Service(world)
        await world.until(lambda: len(world.calls()) >= 6)
        await service.stop()
        assert set(world.counts()) == {"sent", "ready"}, "what had started is on record"
        assert owner(world) is None
        assert world.read(lambda tx: tx.processes.list()) == []
        calls = len(world.calls())
        await world.wait(MINUTE)
        assert len(world.calls()) == calls

    worlds.fresh().play(script)


def test_a_worker_that_does_not_end_is_ended_when_the_grace_period_is_over(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        two_accounts(world, 500)
        service = Service(world, grace_us=10 * SECOND)
        await world.until(lambda: len(world.sends("ann")) >= 2)
        service.workforce.of("ann").deaf = True
        stopped_at = world.clock.now()
        await service.stop()
        took_us = world.clock.now() - stopped_at
        assert 10 * SECOND <= took_us <= 10 * SECOND + END_WITHIN_US + SECOND
        assert owner(world) is None, "nothing of it is left, so nobody has to wait for its lease"
        assert world.read(lambda tx: tx.processes.list()) == []
        assert world.account_now().state == "active"

    worlds.fresh().play(script)


def test_a_stop_while_a_worker_starts_gives_back_what_was_held_for_it(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        world.campaign(3)
        service = Service(world, workforce=Workforce(world, start_us=20 * SECOND))
        await world.until(lambda: len(service.workforce.started) == 1)
        assert owner(world) == service.orchestrator.process_id
        service.orchestrator.stop()
        service.orchestrator.kill_all()
        await service.stop()
        assert owner(world) is None

    worlds.fresh().play(script)
