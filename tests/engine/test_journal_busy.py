"""The journal while somebody else holds a row: whoever needs it fails, in good time and alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from paceline.core.errors import RowBusy, StoreBusy, StoreConflict, StoreUnavailable
from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine.committing import REPLAY_US
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.leases import RENEW_EVERY_US, ProcessLease
from paceline.engine.ports import Tx
from paceline.store.base import Context
from tests.engine.desk import TwoClocks
from tests.engine.faults import TrippedStore
from tests.engine.test_journal import journal_on, play, put, settings, spoil
from tests.engine.world import World
from tests.engine.worlds import Worlds

T = TypeVar("T")

FIRST_WAIT_US, HURRIED_WAIT_US = 5 * SECOND, 50 * MILLISECOND


def raising(error: Exception) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        tx.settings.put("spoilt", True)
        raise error

    return work


LOCKED = raising(RowBusy("a row is locked"))


class Unhurried(InlineRunner):
    """Lets the loop go on before it works, as a thread would: whoever was answered has heard it."""

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        for _ in range(3):
            await asyncio.sleep(0)
        return function()


async def answers_of(journal: GroupJournal, works: list[Any]) -> list[Any]:
    return await asyncio.gather(*map(journal.write, works), return_exceptions=True)


@pytest.mark.parametrize("place", [0, 1, 31, 62, 63])
def test_only_the_unit_that_needs_the_row_fails_and_is_found_in_few_steps(
    worlds: Worlds, place: int
) -> None:
    async def script(world: World) -> None:
        store = TrippedStore(world.store)
        works: list[Any] = [put(f"k{n}", n) for n in range(64)]
        works[place] = LOCKED
        answers = await answers_of(journal_on(store), works)
        assert isinstance(answers.pop(place), RowBusy)
        expected = [f"k{n}" for n in range(64) if n != place]
        assert answers == expected
        assert settings(world.store, *expected) == [n for n in range(64) if n != place]
        assert settings(world.store, "spoilt") == [None]
        assert store.commits == 1 + 2 * 6

    play(worlds, script)


def test_only_pieces_of_a_group_that_has_waited_are_in_a_hurry(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        store = TrippedStore(world.store)
        hurried: list[int] = []
        monkeypatch.setattr(Context, "hurry", lambda _: hurried.append(store.commits))
        journal = journal_on(store)
        await answers_of(journal, [put("a", 1), spoil, put("b", 2)])
        assert (store.commits, hurried) == (4, [])
        await answers_of(journal, [put("a", 1), LOCKED])
        assert (store.commits, hurried) == (7, [6, 7])
        await answers_of(journal, [put("a", 1)])
        assert hurried == [6, 7]

    play(worlds, script)


@pytest.mark.parametrize("count", [2, 500])
def test_units_that_all_wait_for_one_lock_fail_in_good_time(worlds: Worlds, count: int) -> None:
    async def script(world: World) -> None:
        clock, store = TwoClocks(), TrippedStore(world.store)
        began_us = clock.us

        def wait(tx: Tx) -> None:
            clock.pass_by(FIRST_WAIT_US if store.commits == 1 else HURRIED_WAIT_US)
            raise RowBusy("a row is locked")

        journal = GroupJournal(store, clock, writer=InlineRunner(), reader=InlineRunner())
        answers = await answers_of(journal, [wait] * count)
        assert [type(answer) for answer in answers] == [RowBusy] * count
        longest_us = FIRST_WAIT_US + min(REPLAY_US, count * HURRIED_WAIT_US)
        assert clock.us - began_us <= longest_us + HURRIED_WAIT_US

    play(worlds, script)


def test_a_unit_found_busy_while_another_fault_is_looked_for_bounds_the_rest_too(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        clock, store = TwoClocks(), TrippedStore(world.store)

        def wait(tx: Tx) -> None:
            clock.pass_by(REPLAY_US)
            raise RowBusy("a row is locked")

        journal = GroupJournal(store, clock, writer=InlineRunner(), reader=InlineRunner())
        answers = await answers_of(journal, [put("a", 1), spoil, wait, wait, put("b", 2)])
        kinds = [type(answer) for answer in answers]
        assert kinds == [str, ZeroDivisionError, RowBusy, RowBusy, RowBusy]
        assert settings(world.store, "a", "b") == [1, None]
        assert store.commits == 1 + 4

    play(worlds, script)


def test_a_busy_a_bad_and_a_conflicting_unit_each_get_their_own_answer(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        conflict = raising(StoreConflict("deadlock detected"))
        works: list[Any] = [put("a", 1), LOCKED, put("b", 2), spoil, put("c", 3), conflict]
        answers = await answers_of(journal_on(world.store), works)
        kinds = [type(answer) for answer in answers]
        assert kinds == [str, RowBusy, str, ZeroDivisionError, str, StoreConflict]
        assert settings(world.store, "a", "b", "c", "spoilt") == [1, 2, 3, None]

    play(worlds, script)


def test_a_locked_file_is_the_same_for_all_and_tried_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        store = TrippedStore(world.store)
        works: list[Any] = [put("a", 1), raising(StoreBusy("the file is locked")), put("b", 2)]
        answers = await answers_of(journal_on(store), works)
        assert [type(answer) for answer in answers] == [StoreBusy] * 3
        assert store.commits == 1

    play(worlds, script)


def test_a_store_that_goes_away_while_the_culprit_is_looked_for_is_not_asked_again(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        def trip(commit: int, moment: str) -> None:
            if commit == 3 and moment == "before":  # the group, its busy half, and half of that
                raise StoreUnavailable("away")

        store = TrippedStore(world.store, trip)
        works: list[Any] = [put("a", 1), put("b", 1), LOCKED, *(put(key, 1) for key in "cdefg")]
        answers = await answers_of(journal_on(store), works)
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 8
        assert store.commits == 3

    play(worlds, script)


def test_what_goes_first_overtakes_whatever_waits(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store, group_limit=2)
        done: list[str] = []

        def note(name: str) -> Callable[[Tx], None]:
            return lambda tx: done.append(name)

        waiting = [journal.write(note(name)) for name in "abcd"]
        renewal = journal.write(note("renewal"), alone=True, first=True)
        await asyncio.gather(*waiting, renewal)
        assert done == ["renewal", "a", "b", "c", "d"]

    play(worlds, script)


def test_a_lease_is_renewed_before_what_has_gathered_while_a_group_waited(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        clock = TwoClocks()
        journal = GroupJournal(
            world.store, clock, writer=Unhurried(), reader=InlineRunner(), group_limit=1
        )
        lease = ProcessLease(journal, clock, "one")
        await lease.join()
        clock.pass_by(RENEW_EVERY_US)
        safe: list[bool] = []

        def slow(tx: Tx) -> None:
            safe.append(lease.safe())
            clock.pass_by(FIRST_WAIT_US)

        waiting = [asyncio.ensure_future(journal.write(slow)) for _ in range(3)]
        renewal = asyncio.ensure_future(lease.renew())
        await asyncio.gather(*waiting, renewal)
        assert safe == [True, True, False], "two waits fit into a lease that was renewed in time"

    play(worlds, script)
