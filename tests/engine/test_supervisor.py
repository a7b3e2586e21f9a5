"""The supervisor: lanes that crash or hang, and what becomes of their accounts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paceline.core.errors import SchemaMismatch, StoreError, StoreUnavailable
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine import lane as lanes
from paceline.engine import taking
from paceline.engine.chooser import Chooser
from paceline.engine.commands import accounts
from paceline.engine.crashes import Crash, CrashBook, OneTooMany, Restart
from paceline.engine.memory import take_snapshot
from tests.engine.doubles import Double, Watcher, forever
from tests.engine.faults import LostStore, TrippedStore
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

SANDBOX = "sandbox"


def double(world: World, **acts: Any) -> Double:
    return Double(world.providers.get(SANDBOX), **acts)


def generation(world: World, name: str = "ann") -> int:
    account = world.account_now(name)
    return world.read(lambda tx: tx.lanes.get(account.id).generation)


async def restarts(world: World, process: Process, crashes: int) -> list[int]:
    """Kill ann's lane whenever it runs; how long each time until it was started again."""
    pauses = []
    for _ in range(crashes):
        await world.until(lambda: process.supervisor.kill("ann"), every_us=SECOND // 20)
        killed_at, before = world.clock.now(), generation(world)
        if world.account_now().state == "suspended":
            break
        await world.until(
            lambda before=before: (
                generation(world) > before  # type: ignore[misc]
                or world.account_now().state == "suspended"
            ),
            every_us=SECOND // 20,
        )
        pauses.append(world.clock.now() - killed_at)
    return pauses


# ---------------------------------------------------------------------- crashes


def test_a_lane_that_is_killed_comes_back_later_each_time_and_at_last_not_at_all(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "600/min"}, latency="200ms")
        world.account("bob", policy={"rate": "60/min"})
        world.campaign(200)
        world.campaign(20, name="other", on=("bob",))
        watcher = Watcher()
        process = world.process(observer=watcher)
        pauses = await restarts(world, process, 5)
        assert [round(pause / SECOND) for pause in pauses[:4]] == [1, 2, 4, 8]
        account = world.account_now()
        assert account.state == "suspended"
        assert account.state_reason.startswith("Too many worker crashes")
        assert watcher.crashes == {"ann": 5}
        events = world.read(lambda tx: tx.events.latest(limit=20))
        assert any("suspended: Too many worker crashes" in event.text for event in events)
        await world.until_finished("other")
        calls = len(world.calls("ann"))
        await world.wait(10 * MINUTE)
        assert len(world.calls("ann")) == calls, "suspended means that nothing is sent"
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 200}


def test_crashes_are_forgotten_after_ten_minutes() -> None:
    book = CrashBook()

    def pause(account_id: int, at: Instant) -> int:
        verdict = book.note(account_id, Crash(at, None))
        assert isinstance(verdict, Restart)
        return verdict.pause_us

    pauses = [pause(1, n * SECOND) for n in range(4)]
    assert pauses == [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]
    assert pause(2, 4 * SECOND) == SECOND, "every lane has its own"
    assert pause(1, 10 * MINUTE + 2 * SECOND) == 2 * SECOND, "only the last one is remembered"
    later = [pause(1, 20 * MINUTE + n * SECOND) for n in (3, 4, 5, 6)]
    assert later == [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]
    assert book.note(1, Crash(20 * MINUTE + 7 * SECOND, None)) == OneTooMany(None)
    assert pause(1, 20 * MINUTE + 8 * SECOND) == SECOND, "a person has looked since"


@pytest.mark.parametrize(
    ("served", "blamed"),
    [([7, 7, 7, 7, 7], 7), ([7, 7, 8, 7, 7], None), ([None, 7, 7, 7, 7], None)],
)
def test_a_run_is_to_blame_if_it_was_the_same_every_time(
    served: list[int | None], blamed: int | None
) -> None:
    book = CrashBook()
    verdicts = [book.note(1, Crash(at, run_id)) for at, run_id in enumerate(served)]
    assert verdicts[-1] == OneTooMany(blamed)


def test_killing_a_lane_that_does_not_run_does_nothing(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account()
        process = world.process()
        await world.wait(MINUTE)
        assert not process.supervisor.kill("ann")
        assert not process.supervisor.kill("nobody")
        await process.stop()

    worlds.fresh().play(script)


def test_a_killed_lane_is_given_back_even_if_it_is_killed_again_while_the_store_is_away(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="500ms")
        world.campaign(5)
        store = LostStore(world.store, world.clock, 5, "before", 8 * MINUTE)
        watcher = Watcher()
        process = world.process(store=store, observer=watcher)
        await world.until(lambda: store.gone)
        assert process.supervisor.kill("ann")
        for _ in range(7):  # each of these would have cut off the giving back
            await world.wait(MINUTE)
            assert not process.supervisor.kill("ann")
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert watcher.crashes == {"ann": 1}

    worlds.fresh().play(script)


def test_a_store_that_is_away_when_a_lane_starts_is_no_crash(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Instant] = []

    def look(tx: Any, account_id: int, now: Instant, *, known: Any = None) -> Any:
        tries.append(now)
        if len(tries) <= 8:
            raise StoreUnavailable("not now")
        return take_snapshot(tx, account_id, now, known=known)

    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("not now")

    # Nobody's first look is shared: where that fails, each lane looks by itself.
    monkeypatch.setattr(taking, "FEW", 0)
    monkeypatch.setattr(taking, "take_snapshot", away)
    monkeypatch.setattr(lanes, "take_snapshot", look)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(2)
        watcher = Watcher()
        process = world.process(observer=watcher)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes
        assert tries[8] - tries[0] >= 8 * 20 * SECOND

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- steps that hang
def test_a_lane_whose_step_never_returns_is_restarted_after_five_minutes(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_next, hung = Chooser.start_next, []

    async def start_or_hang(self: Any, now: Instant) -> Any:
        if not hung:
            hung.append(now)
            await forever()
        return await start_next(self, now)

    monkeypatch.setattr(Chooser, "start_next", start_or_hang)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(2)
        watcher = Watcher()
        process = world.process(observer=watcher)
        await world.until(lambda: bool(watcher.crashes))
        noticed_us = world.clock.now() - hung[0]
        assert 5 * MINUTE <= noticed_us <= 6 * MINUTE + SECOND
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert watcher.crashes == {"ann": 1}

    worlds.fresh().play(script)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_lane_that_waits_is_not_stuck(worlds: Worlds, concurrency: int) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "60/min", "concurrency": concurrency, "timeout": "20m"}
        world.account(policy=policy, latency="9m")
        world.campaign(2)
        watcher = Watcher()
        process = world.process(observer=watcher, poll_us=MINUTE)
        await world.until(lambda: world.state() == "finished", every_us=MINUTE)
        await process.stop()
        assert not watcher.crashes
        assert world.counts() == {"sent": 2}

    worlds.fresh().play(script)


def test_skipping_thousands_is_many_steps_and_not_one(worlds: Worlds) -> None:
    """A lane that has much to put away still looks up in between, at a stop for one."""

    async def script(world: World) -> None:
        world.account()
        world.campaign(300)
        with world.store.write() as tx:
            for number in range(300):
                tx.suppressions.add(f"spring-{number:04}", "asked", "person", world.clock.now())

        def trip(commit: int, moment: str) -> None:
            if commit == 20:
                process.supervisor.stop()

        process = world.process(store=TrippedStore(world.store, trip))
        await process.gone()
        assert 10 < world.counts()["skipped"] < 30

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- the process itself


def test_a_process_with_no_room_left_waits_instead_of_spinning(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"rate": "60/min"})
        world.campaign(20)
        world.campaign(20, name="other", on=("bob",))
        watcher, looks = Watcher(), 0

        def look() -> None:
            nonlocal looks
            looks += 1

        store = TrippedStore(world.store)
        store.look = look
        process = world.process(store=store, observer=watcher, max_lanes=1)
        began_at = world.clock.now()
        await world.until(lambda: len(world.sends()) == 10)
        busy = {name: len(world.sends(name)) for name in ("ann", "bob")}
        assert sorted(busy.values()) == [0, 10]
        (running,) = [name for name, sent in busy.items() if sent]
        assert looks < 10 * (world.clock.now() - began_at) / SECOND
        world.write(lambda tx: accounts.pause(tx, running, world.clock.now()))
        await world.until(lambda: len(world.sends()) >= 20)
        assert len(world.sends(running)) <= 11, "the change reached the lane that runs"
        world.write(lambda tx: accounts.resume(tx, running, world.clock.now()))
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await world.until_finished("other")
        await process.stop()
        assert max(watcher.lanes) == 1

    worlds.fresh().play(script)


def test_a_store_that_fails_in_any_way_is_waited_for(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="500ms")
        world.campaign(30)
        store = TrippedStore(world.store)
        process = world.process(store=store)
        await world.until(lambda: len(world.sends()) == 3)

        def full() -> None:
            raise StoreError("the disk is full")

        sound, store.look = store.look, full
        await world.wait(10 * MINUTE)
        assert process.running
        assert len(world.calls()) <= 4, "nothing is sent that could not be put on record"
        store.look = sound
        await world.until_finished(every_us=SECOND, within_us=HOUR)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert sum(world.counts_at_end.values()) == 30


@pytest.mark.parametrize("error", [SchemaMismatch("made by a newer version"), KeyError("defect")])
def test_a_failure_no_waiting_mends_ends_the_process_once_its_messages_have_settled(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "concurrency": 3}, latency="3s")
        world.campaign(30)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 3)

        async def fail(due: Any) -> None:
            raise error

        monkeypatch.setattr(process.supervisor, "_attend", fail)
        await world.until(lambda: not process.running, MINUTE)
        with pytest.raises(type(error)):
            await process.stop()
        assert set(world.counts()) == {"sent", "ready"}, "what had started is on record"
        calls = len(world.calls())
        await world.wait(MINUTE)
        assert len(world.calls()) == calls
        second = world.process("two")
        await world.until_finished(every_us=SECOND)
        await second.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 30}


def test_renewing_goes_on_after_a_failure_nobody_foresaw(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        def trip(commit: int, moment: str) -> None:
            if commit == 3:  # after the name and the joining: the first renewal
                raise StoreError("the disk was full for a moment")

        world.account()
        process = world.process(store=TrippedStore(world.store, trip))
        await world.wait(14 * SECOND)
        assert process.supervisor.healthy
        await world.wait(MINUTE)
        assert process.supervisor.healthy
        await process.stop()

    worlds.fresh().play(script)


def test_a_run_whose_last_lane_had_no_time_to_end_it_is_ended_all_the_same(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(2)
        first = world.process()

        def trip(commit: int, moment: str) -> None:
            if world.counts() == {"sent": 2}:
                first.die()
                raise asyncio.CancelledError

        store = TrippedStore(world.store, trip)
        await first.kill()
        first = world.process("one", store=store)
        await world.until(lambda: first.dead)
        assert world.state() == "running"
        second = world.process("two")
        await world.until_finished(within_us=2 * MINUTE)
        await second.stop()

    worlds.fresh().play(script)
