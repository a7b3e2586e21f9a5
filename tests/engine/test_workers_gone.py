"""Workers that crash, hang, block or leak: who is blamed, and whom it does not harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.reports import Standstill
from paceline.core.sizes import MB
from paceline.engine.commands import accounts
from paceline.engine.crashes import AWAY_PAUSE_US
from paceline.engine.lane import Lane
from paceline.engine.leases import LEASE_US
from paceline.engine.orchestrator import OrchestratorOptions
from paceline.engine.ports import Message
from paceline.engine.ports.workers import AWAY
from paceline.engine.workers import fault_of
from tests.engine.doubles import Act, Double, forever
from tests.engine.workforce import BEAT_US, FakeWorker, Service, Workforce
from tests.engine.world import World
from tests.engine.worlds import Worlds

FAST = {"rate": "60/min"}
TOO_MANY = "Too many worker crashes (last: {})"


def rogue(world: World, befalls: Callable[[FakeWorker], None], *names: str) -> Service:
    """A service with a driver that does this to its worker whenever one of these accounts sends."""
    workforce = Workforce(world)

    async def send(real: Act, message: Message) -> Any:
        name = message.target.partition("-")[0]
        if name in names:
            befalls(workforce.of(name))
            await forever()
        return await real(message)

    workforce.more["providers"] = Double(world.providers.get("sandbox"), send=send).registry()
    return Service(world, workforce=workforce)


def people(world: World, *names: str, count: int = 10) -> None:
    """Accounts, each with a campaign that is named after it, as are all it writes to."""
    for name in names:
        world.account(name, policy=FAST)
        world.campaign(count, name=name, on=(name,))


async def starts(world: World, service: Service, name: str, count: int) -> list[int]:
    """When so many workers for an account were started, in seconds after the first."""
    at = []
    for number in range(1, count + 1):
        await world.until(
            lambda n=number: service.workforce.count(name) >= n,  # type: ignore[misc]
            5 * MINUTE,
        )
        at.append(world.clock.now())
    return [round((one - at[0]) / SECOND) for one in at]


def assert_suspended(world: World, name: str, fault: str) -> None:
    account = world.account_now(name)
    reason = TOO_MANY.format(fault)
    assert (account.state, account.state_reason) == ("suspended", reason)
    (alert,) = [one for one in world.read(lambda tx: tx.alerts.list()) if one.account_id]
    assert (alert.kind, alert.account_id) == ("account.suspended", account.id)
    assert alert.text == f"account {name} is suspended: {reason}"
    events = world.read(lambda tx: tx.events.latest(limit=100))
    assert f"{name} is suspended: {reason}" in [event.text for event in events]


# ---------------------------------------------------------------------- one account each


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (3, "its worker ended with exit code 3"),
        (-6, "its worker was ended by SIGABRT"),
        (-9, "its worker was ended by SIGKILL, perhaps for want of memory"),
        (-63, "its worker was ended by signal 63"),
    ],
)
def test_an_account_whose_worker_crashes_rests_ever_longer_and_is_suspended(
    worlds: Worlds, code: int, fault: str
) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bad", count=30)
        service = rogue(world, lambda worker: worker.die(code), "bad")
        at = await starts(world, service, "bad", 5)
        # A second to start, then the pause, and after the first time a second for the pace.
        gaps = [after - before for before, after in pairwise(at)]
        assert gaps == [2, 4, 6, 10]
        await world.until(lambda: world.account_now("bad").state == "suspended", MINUTE)
        assert_suspended(world, "bad", fault)
        assert service.books.crashes == {"bad": 5}
        await world.until_finished("ann")
        assert service.workforce.count("ann") == 1, "nobody else has noticed"
        await service.stop()

    world = worlds.fresh()
    world.play(script)


def test_fault_of_an_exit() -> None:
    assert fault_of(0) == fault_of(None) == fault_of(AWAY) == ""


def test_crashes_that_lie_far_apart_suspend_nobody(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"spacing": "100s"})
        world.campaign(40, name="ann", on=("ann",))
        service = Service(world)
        for number in range(1, 9):
            await world.until(lambda n=number: service.workforce.count("ann") == n)  # type: ignore[misc]
            await world.wait(3 * MINUTE)
            service.workforce.of("ann").die(-11)
        await world.until(lambda: service.workforce.count("ann") == 9)
        assert world.account_now("ann").state == "active"
        await service.stop()

    worlds.fresh().play(script)


def test_what_a_dead_worker_held_is_free_at_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", count=60)
        service = Service(world)
        await world.until(lambda: len(world.sends()) == 3)
        service.workforce.of("ann").die(-9)
        died_at, sent = world.clock.now(), len(world.sends())
        await world.until(lambda: len(world.sends()) > sent)
        assert world.clock.now() - died_at < LEASE_US / 2, "nobody waits for a dead one's lease"
        await world.until_finished("ann")
        names = {row.name for row in world.read(lambda tx: tx.processes.list())}
        assert names == {"one", "one worker 2"}
        await service.stop()
        assert world.counts("ann") == {"sent": 60}

    worlds.fresh().play(script)


def test_a_worker_that_says_nothing_is_ended_and_its_account_blamed(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bad", count=30)
        service = rogue(world, FakeWorker.fall_silent, "bad")
        await world.until(lambda: service.workforce.count("bad") == 1)
        began_at = world.clock.now()
        await world.until(lambda: service.workforce.count("bad") == 2, every_us=SECOND)
        assert 45 <= (world.clock.now() - began_at) / SECOND <= 60
        await world.until(lambda: world.account_now("bad").state == "suspended", 10 * MINUTE)
        fault = world.account_now("bad").state_reason.removesuffix(")").rpartition("last: ")[2]
        assert fault.startswith("its worker did not answer for 4") and fault.endswith(" s")
        assert_suspended(world, "bad", fault)
        await world.until_finished("ann")
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_that_leaks_is_replaced_in_good_order_and_at_last_not_any_more(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bad", count=60)
        service = Service(world, memory_limit=512 * MB)
        for number in range(1, 6):
            await world.until(lambda n=number: service.workforce.count("bad") == n)  # type: ignore[misc]
            worker = service.workforce.of("bad")
            await world.until(lambda w=worker: w.process is not None and w.tally.lanes == 1)  # type: ignore[misc]
            worker.memory = 600 * MB
        await world.until(lambda: world.account_now("bad").state == "suspended", 5 * MINUTE)
        assert_suspended(world, "bad", "its worker took 600 MB of memory, more than 512 MB")
        assert set(world.counts("bad")) <= {"sent", "ready"}, "each has ended in good order"
        await world.until_finished("ann")
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_that_leaks_and_does_not_end_is_ended(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", count=600)
        service = Service(world, memory_limit=512 * MB, grace_us=10 * SECOND)
        await world.until(lambda: len(world.sends()) == 2)
        worker = service.workforce.of("ann")
        worker.deaf, worker.memory = True, 600 * MB
        await world.until(lambda: service.workforce.count("ann") == 2, MINUTE)
        assert worker.process is not None and worker.process.dead
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_that_finds_the_database_away_is_not_a_crash(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", count=5)
        service = Service(world, workforce=Workforce(world, start_us=3 * SECOND))
        at = []
        for number in range(1, 8):
            await world.until(lambda n=number: service.workforce.count("ann") == n)  # type: ignore[misc]
            at.append(world.clock.now())
            service.workforce.of("ann").die(AWAY)
        assert all(later - sooner >= AWAY_PAUSE_US for sooner, later in pairwise(at))
        await world.until_finished("ann")
        assert world.account_now("ann").state == "active"
        assert not service.books.crashes
        await service.stop()

    worlds.fresh().play(script)


def test_a_service_that_stood_still_itself_takes_nobody_for_silent(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", count=200)
        service = Service(world)
        await world.until(lambda: len(world.sends()) == 3)
        orchestrator = service.orchestrator
        orchestrator._workers[0].heard_us -= 5 * MINUTE
        orchestrator._listened_us -= 5 * MINUTE
        await orchestrator._listen()
        await world.wait(MINUTE)
        assert service.workforce.count("ann") == 1
        await service.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- counts that survive


def test_a_lane_s_crashes_count_when_its_worker_dies_and_the_other_way_round(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, crashes = Lane._step, [0]

    async def defective(self: Lane, sender: Any) -> Any:
        if self._name == "bad" and crashes[0] > 0:
            crashes[0] -= 1
            raise RuntimeError("a defect of the lane")
        return await step(self, sender)

    monkeypatch.setattr(Lane, "_step", defective)

    async def script(world: World) -> None:
        people(world, "bad", count=100)
        service = Service(world)
        await world.until(lambda: len(world.sends()) == 3)
        crashes[0] = 2  # seen to by the worker itself: 1 s, 2 s
        await world.until(lambda: service.books.crashes["bad"] == 2)
        await world.wait(3 * SECOND)
        assert service.workforce.count("bad") == 1
        service.workforce.of("bad").die(-6)  # the third, so 4 s
        died_at = world.clock.now()
        await world.until(lambda: service.workforce.count("bad") == 2)
        assert round((world.clock.now() - died_at) / SECOND) == 4
        await world.until(lambda: len(service.workforce.of("bad").assigned) == 1)
        (assignment,) = service.workforce.of("bad").assigned
        assert len(assignment.crashes) == 3, "the new worker knows"
        await world.wait(5 * SECOND)
        crashes[0] = 2  # the fourth and the fifth
        await world.until(lambda: world.account_now("bad").state == "suspended", MINUTE)
        assert world.account_now("bad").state_reason == TOO_MANY.format(
            "RuntimeError: a defect of the lane"
        )
        assert service.workforce.count("bad") == 2
        world.write(lambda tx: accounts.resume(tx, "bad", world.clock.now()))
        await world.until_finished("bad", HOUR)
        await service.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- several accounts in one


def test_when_nobody_knows_who_it_was_each_is_alone_until_it_is_known(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bad", "cleo", count=30)
        service = rogue(world, lambda worker: worker.die(-11), "bad")
        service.orchestrator._options = _three_each(service)
        await world.until(lambda: world.account_now("bad").state == "suspended", 5 * MINUTE)
        assert_suspended(world, "bad", "its worker was ended by SIGSEGV")
        given = [len(worker.given) for worker in service.workforce.started]
        assert given[0] == 3 and set(given[1:]) == {1}
        assert service.workforce.count("bad") == 1 + 5
        assert service.books.crashes == {"bad": 5}, "the others are not blamed"
        for name in ("ann", "cleo"):
            await world.until_finished(name)
            assert service.workforce.count(name) == 2
        await world.wait(11 * MINUTE)
        for name in ("ann", "cleo"):
            world.campaign(3, name=f"{name} again", on=(name,))
        await world.until_finished("cleo again")
        assert len(service.workforce.started[-1].given) == 2, "and now they may share again"
        await service.stop()

    worlds.fresh().play(script)


def test_who_blocks_a_worker_of_several_is_blamed_by_name(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bad", count=30)
        service = rogue(world, lambda worker: worker.fall_silent("bad"), "bad")
        service.orchestrator._options = _three_each(service)
        await world.until(lambda: world.account_now("bad").state == "suspended", 15 * MINUTE)
        fault = world.account_now("bad").state_reason
        assert fault.startswith("Too many worker crashes (last: its driver blocked its worker for")
        assert service.books.crashes == {"bad": 5}
        await world.until_finished("ann")
        assert all(len(worker.given) <= 2 for worker in service.workforce.started), (
            "nobody had to be told apart"
        )
        await service.stop()

    worlds.fresh().play(script)


def test_who_blocked_a_worker_for_a_moment_only_is_not_blamed_for_what_comes_later(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        people(world, "ann", "bob", count=30)
        service = Service(world, accounts_per_worker=2)
        await world.until(lambda: len(world.sends()) >= 4)
        worker = service.workforce.of("bob")
        worker.tell(Standstill("bob"))
        await world.wait(BEAT_US + SECOND)
        worker.die(-11)
        await world.until_finished("bob")
        assert not service.books.crashes
        await world.until_finished("ann")
        await service.stop()

    worlds.fresh().play(script)


def _three_each(service: Service) -> OrchestratorOptions:
    return replace(service.orchestrator._options, accounts_per_worker=3)
