"""Who gets a worker: nobody with nothing to do, and of the others as many as there are places."""

from __future__ import annotations

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine.commands import control
from paceline.engine.idle_lanes import look
from paceline.engine.queries import account_view, why_account
from paceline.engine.workers import TURN_US, Worker, make_room
from tests.engine.workforce import REST_US, Service, Workforce
from tests.engine.world import World
from tests.engine.worlds import Worlds

FAST = {"rate": "60/min"}


def many(world: World, count: int, *, sending: int = 0, messages: int = 5) -> list[str]:
    """Accounts, the first few of which have a campaign that is named after them."""
    names = [f"number-{n:02}" for n in range(count)]
    for name in names:
        world.account(name, policy=FAST)
    for name in names[:sending]:
        world.campaign(messages, name=name, on=(name,))
    return names


def stop_all(world: World) -> None:
    world.write(lambda tx: control.stop_all(tx, "enough", world.clock.now()))


def go_on(world: World) -> None:
    world.write(lambda tx: control.go_on(tx, world.clock.now()))


def wakes(world: World, names: list[str]) -> list[int | None]:
    ids = [world.account_now(name).id for name in names]
    return world.read(lambda tx: [tx.lanes.get(one).wake_at for one in ids])


# ---------------------------------------------------------------------- nothing to do


def test_who_was_woken_for_nothing_gets_no_worker(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        names = many(world, 30, sending=1, messages=300)
        service = Service(world)
        await world.until(lambda: len(world.sends()) >= 2)
        assert len(service.workforce.started) == 1
        for change in (stop_all, go_on):
            change(world)
            await world.wait(10 * SECOND)
            assert len(service.workforce.started) == 1, "only one has something to send"
            assert wakes(world, names[1:]) == [None] * 29, "they sleep until something comes up"
        sent = len(world.sends())
        await world.until(lambda: len(world.sends()) > sent)
        world.campaign(3, name="later", on=(names[7],))
        await world.until_finished("later")
        assert service.workforce.count(names[7]) == 1, "who has something to do is heard"
        await service.stop()

    worlds.fresh().play(script)


def test_nobody_has_anything_to_do_while_everything_is_stopped(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        many(world, 5, sending=5)
        stop_all(world)
        service = Service(world)
        await world.wait(MINUTE)
        assert service.workforce.started == []
        go_on(world)
        await world.until(lambda: len(world.sends()) == 25)
        assert len(service.workforce.started) == 5
        await service.stop()

    worlds.fresh().play(script)


def test_who_has_something_to_do_later_is_woken_then(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST)
        at = world.clock.now() + 10 * MINUTE
        world.campaign(2, start_at=at)
        service = Service(world)
        await world.wait(MINUTE)
        assert service.workforce.started == []
        assert wakes(world, ["ann"]) == [at]
        await world.wait(11 * MINUTE)
        assert len(world.sends()) == 2
        assert at <= world.sends()[0].called_at <= at + 5 * SECOND
        await service.stop()

    worlds.fresh().play(script)


def test_what_was_left_in_the_middle_is_seen_to_though_everything_is_stopped(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy=FAST, latency="5s")
        world.campaign(3)
        process = world.process()
        await world.until(lambda: world.counts().get("sending", 0) == 1)
        await process.kill()
        stop_all(world)
        ann = world.account_now().id
        now = world.clock.now()
        assert world.read(lambda tx: look(tx, ann, now).busy)
        service = Service(world)
        await world.until(lambda: "sending" not in world.counts(), MINUTE)
        assert len(service.workforce.started) == 1
        go_on(world)
        await world.until_finished(within_us=HOUR)
        await service.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- as many as there are places


def test_no_more_workers_than_there_are_places_and_everybody_has_a_turn(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        names = many(world, 6, sending=6, messages=400)
        service = Service(world, max_workers=2)
        turns: dict[str, int] = {}
        for _ in range(9 * 60):
            await world.wait(SECOND)
            alive = [worker for worker in service.workforce.started if not worker.over]
            assert len(alive) <= 2
            for name in names:
                turns[name] = len(world.sends(name))
        assert min(turns.values()) > 60, "everybody gets on"
        assert max(turns.values()) < 3 * min(turns.values()), "and nobody far ahead of others"
        given = [worker.given[0] for worker in service.workforce.started]
        assert given[:6] == sorted(given[:6]), "whoever was due first, and nobody twice before"
        assert given[6:12] == given[:6], "and then round again"
        assert max(service.books.waiting) == 4
        assert not service.books.crashes, "to make room is no crash"
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_with_nothing_to_do_makes_room_at_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        names = many(world, 2, sending=1, messages=3)
        service = Service(world, max_workers=1)
        await world.until_finished(names[0])
        world.campaign(3, name="next", on=(names[1],))
        began_at = world.clock.now()
        await world.until(lambda: len(world.sends(names[1])) == 3, MINUTE)
        assert world.clock.now() - began_at < REST_US / 2
        await service.stop()

    worlds.fresh().play(script)


def test_who_waits_for_a_place_can_say_so(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        names = many(world, 2, sending=2, messages=300)
        service = Service(world, max_workers=1)
        await world.wait(30 * SECOND)
        assert len(service.workforce.started) == 1
        now = world.clock.now()
        served, waiting = names
        answer = world.read(lambda tx: why_account(tx, waiting, now))
        (told,) = answer.outside
        assert told == (
            "its lane has waited since 09:00:00 UTC for a process to take it: there are as many "
            "workers as there may be (max_workers), or they cannot be started (paceline alerts)"
        )
        assert world.read(lambda tx: account_view(tx, waiting, now)).held == told
        assert world.read(lambda tx: why_account(tx, served, now)).outside == []
        await service.stop()

    worlds.fresh().play(script)


def test_a_worker_that_does_not_make_room_is_ended(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        names = many(world, 2, sending=2, messages=900)
        service = Service(world, max_workers=1, grace_us=10 * SECOND)
        await world.until(lambda: len(service.workforce.started) == 1)
        service.workforce.started[0].deaf = True
        await world.until(lambda: len(world.sends(names[1])) > 3, 5 * MINUTE)
        assert service.books.crashes == {names[0]: 1}
        await service.stop()

    worlds.fresh().play(script)


def test_a_place_that_another_service_has_is_not_asked_for(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        many(world, 4, sending=4, messages=400)
        services = [
            Service(world, name, max_workers=2, workforce=Workforce(world)) for name in "ab"
        ]
        await world.wait(5 * MINUTE)
        assert [len(service.workforce.started) for service in services] == [2, 2]
        for service in services:
            await service.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize("wanted", [0, 1, 2, 3])
def test_make_room(wanted: int) -> None:
    def worker(name: str, started_us: int, lanes: int, *, leaving: bool = False) -> Worker:
        made = Worker(name, {}, [], heard_us=0, started_us=started_us, process_id=1, lanes=lanes)
        made.leaving = leaving
        return made

    workers = [
        worker("young", TURN_US, 1),
        worker("old", 0, 1),
        worker("elder", -1, 1),
        worker("idle", 30 * SECOND, 0),
        worker("leaves", -5, 1, leaving=True),
    ]
    starting = worker("starts", -9, 0)
    starting.process_id = None
    chosen = make_room([*workers, starting], wanted, TURN_US)
    assert [one.name for one in chosen] == ["idle", "elder", "old"][: max(0, wanted - 1)]
