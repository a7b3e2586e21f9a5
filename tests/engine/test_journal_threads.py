"""The journal on real threads and a real file, and what becomes of its callers when it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from paceline.engine.clock import LoopClock, SystemClock
from paceline.engine.journal import GroupJournal, InlineRunner, ThreadRunner
from paceline.engine.ports import Store
from paceline.sim.loop import run_virtual
from paceline.store.database import open_store
from tests.engine.test_journal import Groups, put, settings, spoil

T = TypeVar("T")


@contextmanager
def on_threads(tmp_path: Path, store_of: Callable[[Store], Any]) -> Iterator[tuple[Any, Store]]:
    clock = SystemClock()
    store = open_store(f"sqlite:///{tmp_path / 'real.db'}", clock=clock.now)
    journal = GroupJournal(
        store_of(store),
        clock,
        writer=ThreadRunner("test-writer"),
        reader=ThreadRunner("test-reader", 2),
        observer=Groups(),
    )
    try:
        yield journal, store
    finally:
        store.close()


class Gated:
    """A store whose first transaction waits for us, in its thread, until the gate is opened."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.writers: set[str] = set()

    @contextmanager
    def write(self) -> Iterator[Any]:
        self.writers.add(threading.current_thread().name)
        with self._store.write() as tx:
            yield tx
            self.entered.set()
            assert self.gate.wait(30)

    def read(self) -> Any:
        return self._store.read()


async def heard(event: threading.Event) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, 30)


def test_what_gathers_while_a_commit_runs_is_the_next_group(tmp_path: Path) -> None:
    async def script(journal: Any, store: Store, gated: Gated) -> None:
        first = asyncio.ensure_future(journal.write(put("first", 1)))
        await heard(gated.entered)
        rest = [asyncio.ensure_future(journal.write(put(f"k{n}", n))) for n in range(20)]
        read = await journal.read(lambda tx: tx.settings.get("first"))
        assert read is None, "a reader sees nothing before the commit, and waits for nobody"
        assert not first.done()
        gated.gate.set()
        assert await first == "first"
        assert await asyncio.gather(*rest) == [f"k{n}" for n in range(20)]
        assert journal._observer.sizes == [1, 20]
        assert settings(store, "first", "k19") == [1, 19]
        assert len(gated.writers) == 1
        await journal.close()

    gated: list[Gated] = []

    def wrap(store: Store) -> Gated:
        gated.append(Gated(store))
        return gated[0]

    with on_threads(tmp_path, wrap) as (journal, store):
        asyncio.run(script(journal, store, gated[0]))


def test_hundreds_of_callers_on_real_threads_each_get_their_own_answer(tmp_path: Path) -> None:
    async def script(journal: Any, store: Store) -> None:
        async def caller(number: int) -> None:
            if number % 10 == 3:
                with pytest.raises(ZeroDivisionError):
                    await journal.write(spoil)
            else:
                assert await journal.write(put(f"k{number}", number)) == f"k{number}"
                found = await journal.read(lambda tx: tx.settings.get(f"k{number}"))
                assert found == number

        await asyncio.gather(*map(caller, range(200)))
        await journal.close()
        keys = [f"k{n}" for n in range(200) if n % 10 != 3]
        assert settings(store, *keys) == [n for n in range(200) if n % 10 != 3]
        assert settings(store, "spoilt") == [None]

    with on_threads(tmp_path, lambda store: store) as (journal, store):
        asyncio.run(script(journal, store))


def test_closing_with_threads_commits_what_waits_and_later_writes_are_refused(
    tmp_path: Path,
) -> None:
    async def script(journal: Any, store: Store) -> None:
        waiting = [asyncio.ensure_future(journal.write(put(f"k{n}", n))) for n in range(5)]
        await asyncio.wait(waiting, timeout=0)
        await journal.close()
        assert [await future for future in waiting] == [f"k{n}" for n in range(5)]
        with pytest.raises(RuntimeError):
            await journal.write(put("late", 1))
        with pytest.raises(RuntimeError):
            await journal.read(lambda tx: tx.settings.get("k0"))
        assert settings(store, "k4", "late") == [4, None]

    with on_threads(tmp_path, lambda store: store) as (journal, store):
        asyncio.run(script(journal, store))


def test_a_loop_that_ends_leaves_no_caller_waiting_for_ever() -> None:
    """The drainer is cancelled with a group in hand and another one waiting: all hear of it."""

    class Never(InlineRunner):
        async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
            await asyncio.get_running_loop().create_future()
            return function()

    async def script() -> None:
        journal = GroupJournal(
            None,  # type: ignore[arg-type]
            LoopClock(0),
            writer=Never(),
            reader=Never(),
            group_limit=1,
        )
        callers = [asyncio.ensure_future(journal.write(put("k", n))) for n in range(3)]
        await asyncio.wait(callers, timeout=1)
        assert journal._drainer is not None
        journal._drainer.cancel()
        done, pending = await asyncio.wait(callers, timeout=1)
        assert not pending
        assert all(caller.cancelled() for caller in done)

    run_virtual(script())
