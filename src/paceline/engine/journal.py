"""The journal: every write of a process, grouped into few transactions.

Units of work gather while the last group commits, and the next group takes whatever has gathered.
Where commits are quick and many lanes have something to say now and then, a service may ask for a
moment between two groups, so that a thousand lanes are not a thousand commits a second; whoever
comes after a pause never waits, nor does a lane without a pace to keep, and a busy journal has no
such moments. Lanes' units are merged
into one statement per kind; other work follows in the order it came. If a group fails, its units
are replayed one by one, so that one bad unit harms no other; if it was only in another
transaction's way, it is tried once more as a whole before that. A unit that needs a row which
somebody holds for long is found in the same way, and fails alone; but that takes no longer than the
process can wait for its lease. Other work that costs hardly more for many than for one is done for
all who ask for it together.

The store is synchronous. On which thread it runs is the runner's affair: a thread of its own in a
real process, inline in a simulated one. Where a store is prompt, though, a group of lanes' units is
put together ``here``, on the loop's own thread, and only its commit is waited for on the other:
two threads that both want the interpreter take longer than one for the work of both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeVar

import structlog

from paceline.core.errors import StoreError
from paceline.core.instants import MILLISECOND
from paceline.engine.committing import Commit, Entry, apply, is_away
from paceline.engine.crossing import arrived
from paceline.engine.observe import Observer, Unobserved
from paceline.engine.ports import Clock, Holds, LaneResult, LaneUnit, Store, Together, Tx, Work

T = TypeVar("T")
One = TypeVar("One")

log = structlog.get_logger("paceline.journal")

GROUP_LIMIT = 500
"""Units in one transaction at most: other writers of the same file wait for its end."""
QUIET_TURNS = 8
"""Turns of the loop in which nobody came, after which nobody is expected."""
HANDFUL = 16
"""Lanes that pay more for a second group than they win by it."""
COMING_US = 8 * MILLISECOND
BEGUN_WITHIN_S = 0.002
"""How long the loop stands still at most, until the other thread has begun."""
PATIENCE_US = 4 * MILLISECOND
"""What work other than that of lanes is kept waiting for company at most."""


class Runner(Protocol):
    """Runs a synchronous function for the event loop."""

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        """``at_once``: the loop does nothing else until it has begun, which is a moment."""
        ...

    def close(self) -> None: ...


class ThreadRunner:
    """A thread of its own: the loop goes on while the database works."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        loop = asyncio.get_running_loop()
        if not at_once:
            return await loop.run_in_executor(self._pool, function)
        begun = Lock()
        begun.acquire()
        running = loop.run_in_executor(self._pool, _telling(begun.release, function))
        # A thread that wakes up asks for the interpreter, and a busy loop hands it over late:
        # whatever it is to do without it would begin when there is nothing to be done beside it.
        begun.acquire(timeout=BEGUN_WITHIN_S)
        return await running

    def close(self) -> None:
        self._pool.shutdown(wait=True)


class InlineRunner:
    """The caller's own thread: for simulated worlds, where threads would break determinism."""

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        return function()

    def close(self) -> None:
        return


class GroupJournal:
    """Group commit over one store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        writer: Runner,
        reader: Runner,
        observer: Observer | None = None,
        group_limit: int = GROUP_LIMIT,
        gather_us: int = 0,
        here: bool = False,
    ) -> None:
        """``gather_us``: a group begins no sooner than this after the one before it began."""
        self._here = here and store.prompt
        self._serves = here
        # Where the time is made up, nobody waits for a socket.
        self._crosses = here and isinstance(writer, ThreadRunner)
        self._store = store
        self._clock = clock
        self._writer = writer
        self._reader = reader
        self._observer = observer or Unobserved()
        self._limit = group_limit
        self._gather_us = gather_us
        self._began_us = -gather_us
        self._waiting: deque[Entry] = deque()
        self._hurried = 0
        """How many of those who wait have no pace to keep."""
        self._others = 0
        """How many of them are no lane's."""
        self._company = group_limit
        """How many come together, as far as that has shown lately."""
        self._drainer: asyncio.Task[None] | None = None

    def submit(
        self, unit: LaneUnit, *, hurried: bool = False, begins: Callable[[], None] | None = None
    ) -> Awaitable[LaneResult]:
        return self._enqueue(unit=unit, hurried=hurried, begins=begins)

    def submit_and(self, unit: LaneUnit, goes_on: Callable[[Tx, LaneResult], T]) -> Awaitable[T]:
        return self._enqueue(unit=unit, goes_on=goes_on)

    def write(
        self,
        work: Work[T],
        *,
        alone: bool = False,
        first: bool = False,
        talk: int | None = None,
    ) -> Awaitable[T]:
        return self._enqueue(first=first, work=work, alone=alone, talk=talk)

    def write_together(
        self, work: Together[One, T], one: One, *, holds: Holds = "lanes"
    ) -> Awaitable[T]:
        return self._enqueue(together=work, one=one, holds=holds)

    async def read(self, work: Work[T]) -> T:
        return await self._reader.run(lambda: _read(self._store, work))

    async def close(self) -> None:
        """Commit what is waiting, then let the threads go."""
        while self._drainer is not None:
            await asyncio.wait([self._drainer])
        self._writer.close()
        self._reader.close()

    def _enqueue(self, *, first: bool = False, **asked: Any) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        entry = Entry(future, **asked)
        self._hurried += entry.hurried
        self._others += entry.unit is None
        if first:
            self._waiting.appendleft(entry)
        else:
            self._waiting.append(entry)
        if self._drainer is None:
            self._drainer = loop.create_task(self._drain(), name="journal")
        return future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._drain_group()
        finally:
            self._drainer = None
            # Nobody is left to answer those that wait, and they must not wait for ever.
            for entry in self._waiting:
                entry.future.cancel()
            self._waiting.clear()
            self._hurried = self._others = 0

    async def _drain_group(self) -> None:
        if self._gather_us:
            await self._let_gather()
        if self._serves:
            await self._let_others_come(self._expected())
        group = self._next_group()
        # One that was missed is waited for again the next times, and forgotten after a while.
        self._company = max(len(group), self._company * 7 // 8)
        self._began_us = self._clock.monotonic_us()
        _answer(group, await self._commit(group))
        self._tell(len(group), self._clock.monotonic_us() - self._began_us)
        if group[0].alone and self._waiting:
            # Whoever renews the lease hears of it before anything is begun under the new one.
            await self._clock.sleep(0)

    async def _let_gather(self) -> None:
        left_us = self._began_us + self._patience_us() - self._clock.monotonic_us()
        if left_us > 0 and len(self._waiting) < self._limit:
            await self._clock.sleep(left_us)

    def _patience_us(self) -> int:
        """How long all who wait now can wait for company. A lane that keeps a pace has asked ahead
        of its time, and loses nothing."""
        if self._hurried:
            return 0
        return min(self._gather_us, PATIENCE_US) if self._others else self._gather_us

    async def _let_others_come(self, expected: int) -> None:
        """A commit that takes hardly any time gathers hardly any company. Lanes whose turn it is
        right now are worth waiting for: they take a few turns of the loop from one unit to the
        next, where the provider answers at once. Not for long, though: those who are on time
        would be late with all the others. Once all that are expected are there nobody is missed."""
        turns, known = 0, len(self._waiting)
        until_us = self._clock.monotonic_us() + COMING_US
        while known < expected and turns < QUIET_TURNS and self._clock.monotonic_us() < until_us:
            await self._clock.sleep(0)
            turns, known = turns + 1 if len(self._waiting) == known else 0, len(self._waiting)

    def _expected(self) -> int:
        """How many are worth waiting for: as many as came together lately. Where the loop has its
        hands free while a group is committed, another one can gather meanwhile; there only whoever
        asks for the same is waited for, and a handful of lanes without a pace, which would come in
        two halves by turns and pay twice for what a group costs by itself."""
        if self._here or self._waiting[0].together is not None:
            return self._company
        return min(self._company, HANDFUL) if self._hurried else 0

    def _next_group(self) -> list[Entry]:
        if len(self._waiting) == 1:
            (entry,) = self._waiting
            self._waiting.clear()
            self._hurried = self._others = 0
            return [entry]
        group, left = [self._waiting.popleft()], list[Entry]()
        kind = group[0].kind
        while self._waiting and len(group) < self._limit:
            if group[0].alone or self._waiting[0].alone:
                break
            entry = self._waiting.popleft()
            if entry.kind and kind and entry.kind != kind:
                left.append(entry)
                continue
            kind = kind or entry.kind
            group.append(entry)
        self._waiting.extendleft(reversed(left))
        for entry in group:
            self._hurried -= entry.hurried
            self._others -= entry.unit is None
        return group

    def _tell(self, units: int, took_us: int) -> None:
        try:
            self._observer.committed(units, took_us)
        except Exception:
            # Whoever watches can change nothing, least of all end every write of the process.
            log.exception("observer failed")

    async def _commit(self, group: list[Entry]) -> list[Any]:
        try:
            for entry in group:
                if entry.begins is not None:
                    entry.begins()
            commit = Commit(self._store, self._clock)
            work = partial(commit.answers, group)
            try:
                answers = await self._commit_swiftly(group) if self._serves else None
            except StoreError as error:
                answers, work = None, partial(commit.answers_after, error, group)
            return await self._writer.run(work) if answers is None else answers
        except Exception as error:
            # There is no thread any more: the journal has been closed. Or something is amiss that
            # nobody has thought of; whoever waits must hear of that, too.
            return [error] * len(group)
        except BaseException:
            for entry in group:
                entry.future.cancel()
            raise

    async def _commit_swiftly(self, group: list[Entry]) -> list[Any] | None:
        """Without the other thread, as far as that goes; None where it does not. Where it raises,
        all of it was tried and undone."""
        if self._here:
            return await self._commit_here(group)
        plain = all(entry.unit is not None and entry.goes_on is None for entry in group)
        return await self._cross(group) if plain and self._crosses else None

    async def _cross(self, group: list[Entry]) -> list[Any] | None:
        try:
            crossing = self._store.set_off([entry.unit for entry in group if entry.unit])
        except Exception as error:
            # The other thread finds out whose fault it is, and whoever is all right gets through.
            log.debug("not set off", units=len(group), error=repr(error))
            return None
        if crossing is None:
            return None
        try:
            return list(await arrived(crossing))
        except StoreError as error:
            if is_away(error):
                return [error] * len(group)
            raise

    async def _commit_here(self, group: list[Entry]) -> list[Any] | None:
        """None where anything is in the way: the other thread then does it all anew, has the time
        to wait, and finds out whose fault it is."""
        if any(entry.work is not None or entry.goes_on is not None for entry in group):
            return None
        try:
            with ExitStack() as opened:
                tx = opened.enter_context(self._store.write(at_once=True))
                answers = apply(tx, group)
                to_commit = opened.pop_all()
        except Exception as error:
            log.debug("not committed here", units=len(group), error=repr(error))
            return None
        # Whoever has this ends the transaction; nobody else may.
        ending = Lock()

        def end() -> None:
            if ending.acquire(blocking=False):
                to_commit.close()

        try:
            await self._writer.run(end, at_once=True)
        except StoreError as error:
            return [error] * len(group) if is_away(error) else None
        except BaseException as error:
            # There is no thread any more, or it was called off before it had begun.
            if ending.acquire(blocking=False):
                to_commit.__exit__(type(error), error, error.__traceback__)
            raise
        return answers


def _telling(begun: Callable[[], None], function: Callable[[], T]) -> Callable[[], T]:
    def run() -> T:
        begun()
        return function()

    return run


def _read(store: Store, work: Work[T]) -> T:
    with store.read() as tx:
        return work(tx)


def _answer(group: list[Entry], answers: list[Any]) -> None:
    for entry, answer in zip(group, answers, strict=True):
        future = entry.future
        if future.done():  # its caller was cancelled; what it wrote stands all the same
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
