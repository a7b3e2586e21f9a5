"""Groups of a service: put together on the loop's own thread, committed on the other one, and given
a moment to gather.

Everything that is true of a group on the writer's thread is true of these; whatever is in their way
is left to that thread, which can wait and can find out whose fault it is.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MILLISECOND
from paceline.engine import journal as journals
from paceline.engine.clock import LoopClock, SystemClock
from paceline.engine.journal import GroupJournal, InlineRunner, ThreadRunner
from paceline.engine.ports import LaneResult, LaneUnit, Lease, Store, Tx
from paceline.sim.loop import run_virtual
from paceline.store.database import open_store
from tests.engine.faults import TrippedStore
from tests.engine.scenes import called
from tests.engine.test_journal import Groups, journal_on, own_lanes, play, put, unit_of
from tests.engine.world import MONDAY_NINE, World
from tests.engine.worlds import Worlds

PASSED = LaneResult(True, (), True)


class Seen:
    """A store that notes how its transactions are asked for, and on which thread they end."""

    prompt = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.at_once: list[bool] = []
        self.ended_on: list[str] = []

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Any]:
        self.at_once.append(at_once)
        with self._store.write(at_once=at_once) as tx:
            yield tx
        self.ended_on.append(threading.current_thread().name)

    def read(self) -> Any:
        return self._store.read()


def journal_here(world: World, store: Any, groups: Groups | None = None) -> GroupJournal:
    runner = InlineRunner()
    return GroupJournal(
        store, world.clock, writer=runner, reader=runner, observer=groups, here=True
    )


def test_units_are_committed_at_once_and_other_work_by_the_writer(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        seen = Seen(world.store)
        journal = journal_here(world, seen)
        units = [unit_of(world, lease) for lease in own_lanes(world, "ann", "bob").values()]
        assert await asyncio.gather(*map(journal.submit, units)) == [PASSED, PASSED]
        assert seen.at_once == [True]
        await journal.write(put("beside", 1))
        assert seen.at_once == [True, False]

    play(worlds, script)


def test_only_the_commit_is_waited_for_on_the_other_thread(tmp_path: Path) -> None:
    clock = SystemClock()
    store = open_store(str(tmp_path / "real.db"), clock=clock.now)
    seen = Seen(store)

    async def on_real_threads() -> None:
        writer = ThreadRunner("the-writer")
        journal = GroupJournal(seen, clock, writer=writer, reader=writer, here=True)  # type: ignore[arg-type]
        unit = LaneUnit(Lease(1, 1, 1), revision=1)
        assert await journal.submit(unit) == LaneResult(held=False, settled=(), intended=False)
        await journal.close()

    asyncio.run(on_real_threads())
    store.close()
    assert seen.at_once == [True]
    assert [name.startswith("the-writer") for name in seen.ended_on] == [True]


def test_lanes_whose_turn_it_is_share_a_group_though_the_commit_takes_no_time(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        groups = Groups()
        journal = journal_here(world, world.store, groups)
        units = [unit_of(world, lease) for lease in own_lanes(world, "ann", "bob", "cy").values()]

        async def after_turns(turns: int, unit: Any) -> LaneResult:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await journal.submit(unit)

        late = (after_turns(3 * place, unit) for place, unit in enumerate(units))
        assert await asyncio.gather(*late) == [PASSED] * 3
        assert groups.sizes == [3]

    play(worlds, script)


def test_nobody_is_waited_for_once_as_many_have_come_as_came_lately(worlds: Worlds) -> None:
    """And whoever is missing is, for a few turns: three come, then two and one a little later."""

    async def script(world: World) -> None:
        groups = Groups()
        journal = journal_here(world, world.store, groups)
        units = [unit_of(world, lease) for lease in own_lanes(world, "ann", "bob", "cy").values()]

        async def turns_of(late: int) -> int:
            turns, ended = 0, False

            async def submit(unit: Any, after: int) -> None:
                nonlocal ended
                for _ in range(after):
                    await asyncio.sleep(0)
                await journal.submit(unit)
                ended = True

            first, second, third = units
            asked = [submit(first, 0), submit(second, 0), submit(third, late)]
            submitted = [asyncio.ensure_future(one) for one in asked]
            while not ended:
                await asyncio.sleep(0)
                turns += 1
            await asyncio.gather(*submitted)
            return turns

        for _ in range(60):  # at first anybody may come
            await turns_of(0)
        prompt = await turns_of(0)
        assert prompt < journals.QUIET_TURNS
        assert await turns_of(5) > prompt
        assert await turns_of(0) == prompt
        assert set(groups.sizes) == {3}

    play(worlds, script)


@pytest.mark.parametrize(("together", "sizes"), [(True, [3]), (False, [1, 1, 1])])
def test_what_is_done_for_all_at_once_is_waited_for_on_a_store_that_takes_its_time(
    worlds: Worlds, together: bool, sizes: list[int]
) -> None:
    async def script(world: World) -> None:
        groups, seen = Groups(), Seen(world.store)
        seen.prompt = False
        journal = journal_here(world, seen, groups)

        async def after_turns(turns: int) -> int:
            for _ in range(turns):
                await asyncio.sleep(0)
            if together:
                return await journal.write_together(_doubled, turns)
            return await journal.write(lambda tx: 2 * turns)

        assert await asyncio.gather(*map(after_turns, (0, 3, 6))) == [0, 6, 12]
        assert groups.sizes == sizes and seen.at_once == [False] * len(sizes)

    play(worlds, script)


@pytest.mark.parametrize(
    ("hurried", "lanes", "sizes"), [(True, 3, [3]), (False, 3, [1, 1, 1]), (True, 18, [16, 2])]
)
def test_a_handful_of_lanes_without_a_pace_is_waited_for_on_a_store_that_takes_its_time(
    worlds: Worlds, hurried: bool, lanes: int, sizes: list[int]
) -> None:
    async def script(world: World) -> None:
        groups, seen = Groups(), Seen(world.store)
        seen.prompt = False
        journal = journal_here(world, seen, groups)
        leases = own_lanes(world, *(f"lane-{number}" for number in range(lanes)))
        units = [unit_of(world, lease) for lease in leases.values()]

        async def after_turns(unit: LaneUnit, turns: int) -> LaneResult:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await journal.submit(unit, hurried=hurried)

        coming = [after_turns(unit, 3 * place) for place, unit in enumerate(units)]
        assert await asyncio.gather(*coming) == [PASSED] * lanes
        assert groups.sizes == sizes

    play(worlds, script)


def _doubled(_: Tx, numbers: Sequence[int]) -> list[int]:
    return [2 * number for number in numbers]


def test_who_writes_to_the_file_meanwhile_is_waited_for_by_the_writer(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"

    class Obliging(Seen):
        """Lets the other one finish as soon as somebody waits for it."""

        def write(self, *, at_once: bool = False) -> Any:
            if not at_once:
                other.rollback()
            return super().write(at_once=at_once)

    async def script(clock: LoopClock) -> None:
        # Whoever waited for this one, on the loop's own thread, would wait for ever.
        store = open_store(str(file), clock=clock.now, busy_timeout_us=HOUR)
        seen = Obliging(store)
        runner = InlineRunner()
        journal = GroupJournal(seen, clock, writer=runner, reader=runner, here=True)  # type: ignore[arg-type]
        other.execute("BEGIN IMMEDIATE")
        unit = LaneUnit(Lease(1, 1, 1), revision=1)
        assert await journal.submit(unit) == LaneResult(held=False, settled=(), intended=False)
        assert seen.at_once == [True, False]
        with store.write() as tx:  # it can wait again
            assert tx.settings.get("nothing") is None
        store.close()

    other = sqlite3.connect(file, isolation_level=None)
    run_virtual(script(LoopClock(MONDAY_NINE)), start_at=MONDAY_NINE)
    other.close()


def test_a_bad_unit_harms_no_other(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        seen = Seen(world.store)
        journal = journal_here(world, seen)
        leases = own_lanes(world, "ann", "bob")
        good, bad = (unit_of(world, lease) for lease in leases.values())
        bad = bad._replace(usage=object())
        answers = await asyncio.gather(
            journal.submit(good), journal.submit(bad), return_exceptions=True
        )
        assert answers[0] == PASSED
        assert isinstance(answers[1], Exception)
        assert seen.at_once[:2] == [True, False]

    play(worlds, script)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_commit_that_the_store_does_not_confirm_fails_for_all_and_is_not_repeated(
    worlds: Worlds, moment: str
) -> None:
    async def script(world: World) -> None:
        def trip(_: int, now: str) -> None:
            if now == moment:
                raise StoreUnavailable("the database is away")

        store = TrippedStore(world.store, trip)
        journal = journal_here(world, store)
        units = [unit_of(world, lease) for lease in own_lanes(world, "ann", "bob").values()]
        answers = await asyncio.gather(*map(journal.submit, units), return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
        assert store.commits == 1

    play(worlds, script)


def test_a_service_may_ask_for_a_moment_between_two_groups(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        groups = Groups()
        journal = journal_on(world.store, groups, gather_us=10 * MILLISECOND)
        clock = world.clock

        async def later(key: str, us: int) -> int:
            await clock.sleep(us)
            asked_us = clock.monotonic_us()
            await journal.write(put(key, 1))
            return clock.monotonic_us() - asked_us

        waits = (0, MILLISECOND, 2 * MILLISECOND, 100 * MILLISECOND)
        took = await asyncio.gather(*(later(str(us), us) for us in waits))
        assert took == [0, 3 * MILLISECOND, 2 * MILLISECOND, 0]
        assert groups.sizes == [1, 2, 1]

    play(worlds, script)


def test_a_lane_without_a_pace_is_not_kept_waiting_for_company(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store, Groups(), gather_us=10 * MILLISECOND)
        clock, (lease,) = world.clock, own_lanes(world, "ann").values()

        async def took(*, hurried: bool) -> int:
            await journal.write(put("before", 1))
            asked_us = clock.monotonic_us()
            await journal.submit(unit_of(world, lease), hurried=hurried)
            took_us = clock.monotonic_us() - asked_us
            await clock.sleep(100 * MILLISECOND)
            return took_us

        assert await took(hurried=False) == 10 * MILLISECOND, "longer than all else waits"
        assert await took(hurried=True) == 0

    play(worlds, script)


@pytest.mark.parametrize(("policy", "hurries"), [({}, True), ({"min_gap": "1ms"}, False)])
def test_lanes_say_whether_they_are_in_a_hurry(
    worlds: Worlds, policy: dict[str, str], hurries: bool
) -> None:
    """By whether they have asked ahead of their time."""

    async def script(world: World) -> None:
        world.account(policy=policy, latency="0s")
        world.campaign(20)
        process = world.process()
        process.journal._gather_us = 10 * MILLISECOND
        await world.until_finished()
        await process.stop()
        took_us = called(world)[-1] - called(world)[0]
        assert (took_us < 20 * MILLISECOND) is hurries, took_us

    play(worlds, script)


class Gone(InlineRunner):
    """A runner that never comes to it: its thread has ended, or somebody called it off."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def run(self, function: Any, *, at_once: bool = False) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [RuntimeError("no thread"), asyncio.CancelledError()], ids=repr)
def test_a_transaction_that_nobody_commits_is_undone(worlds: Worlds, error: BaseException) -> None:
    async def script(world: World) -> None:
        runner = Gone(error)
        journal = GroupJournal(world.store, world.clock, writer=runner, reader=runner, here=True)
        unit = unit_of(world, *own_lanes(world, "ann").values())
        with pytest.raises(type(error)):
            await journal.submit(unit)
        with world.store.write(at_once=True) as tx:  # nobody holds the file
            assert tx.settings.get("nothing") is None
        assert world.counts("for-ann") == {"ready": 2}

    play(worlds, script)
