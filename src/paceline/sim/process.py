"""A simulated process: the real journal and supervisor behind ports that can fail, stop and die.

A crash kills the ports first and drops the work afterwards, so that nothing that a real crash
would leave behind gets tidied up on the way out. What was on the wire when a process died arrives
all the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from paceline.core.errors import RowBusy, StoreBusy, StoreConflict, StoreError, StoreUnavailable
from paceline.core.instants import SECOND, Instant
from paceline.engine.clock import LoopClock, SystemClock
from paceline.engine.journal import GroupJournal
from paceline.engine.ports import LaneUnit, Store, Tx
from paceline.engine.supervisor import Supervisor, SupervisorOptions
from paceline.engine.unsubscribing import Links
from paceline.providers.registry import Registry
from paceline.providers.sandbox import SandboxProvider
from paceline.sim.beside import Doors, lookers, wire_of
from paceline.sim.loop import OWNER, VirtualLoop
from paceline.sim.machine import MachineClock, Skew
from paceline.sim.phone import Phone
from paceline.sim.trace import Trace
from paceline.sim.watching import CommitWatch
from paceline.sim.weather import Commit, Weather
from paceline.sim.witness import Witness

T = TypeVar("T")

TELLING_SECONDS = 2
"""How long a stop waits for a notice that is under way."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all processes of a world share."""

    clock: LoopClock
    store: Store
    provider: SandboxProvider
    witness: Witness
    weather: Weather
    trace: Trace
    outside: Context
    """Where the far side of the wire lives: what is started there survives every process."""
    phone: Phone | None = None
    """Where operators are told of alerts, in worlds in which they are."""
    links: Links | None = None
    """By which people unsubscribe, in worlds with mail."""
    prompt: bool = False
    """Whether drivers can begin a call without being waited for."""


class Process:
    """One process from its start to its stop or its crash."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        skew: Skew,
        rng: random.Random,
        options: SupervisorOptions,
    ) -> None:
        self.around = around
        self.name = name
        self.skew = skew
        self.alive = True
        self.gone = asyncio.Event()
        """Set when it has ended, however it did."""
        self._moving: asyncio.Event | None = None
        self._unheard: list[Callable[[], None]] = []
        self.stood_still = 0
        """How often."""
        clock = self._clock()
        self.now: Callable[[], Instant] = clock.now
        watch = CommitWatch(self)
        self.store = PortStore(around.store, around.trace, name)
        self.journal = GroupJournal(
            self.store,
            clock,
            writer=PortRunner(self),
            reader=PortRunner(self, writes=False),
            observer=watch,
        )
        providers = Registry([wire_of(self)])
        self.supervisor = Supervisor(
            self.journal,
            clock,
            providers,
            observer=watch,
            rng=rng,
            options=options,
        )
        self._context = copy_context()
        self._context.run(OWNER.set, self)
        self._main = self._begin(self.supervisor.run(), "process")
        self._main.add_done_callback(lambda _: self.gone.set())
        self._doors = Doors(self, clock, providers)
        beside = lookers(self, clock, providers)
        self._beside = [(one, self._begin(one.run(), type(one).__name__)) for one in beside]
        around.trace.note(name, "starts")

    def _begin(self, work: Coroutine[Any, Any, T], what: str) -> asyncio.Task[T]:
        loop = asyncio.get_running_loop()
        return loop.create_task(work, name=f"{what} {self.name}", context=self._context)

    def _clock(self) -> SystemClock:
        """The machine's clock as the engine reads it in production, over virtual time."""
        return MachineClock(
            self.around.clock, self.skew, sleep=self._sleep, call_later=self._call_later
        )

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self._ring, callback)

    def _ring(self, callback: Callable[[], None]) -> None:
        """A timer goes off: now, or when the process moves again, or never if it is dead."""
        if self._moving is not None:
            self._unheard.append(callback)
        elif self.alive:
            callback()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.pass_gate()

    def begin_to_stop(self) -> None:
        """As a deploy does it (SIGTERM): what has started may finish."""
        if self.alive:
            self.around.trace.note(self.name, "is stopped")
            self.supervisor.stop()

    async def stop(self) -> None:
        """End in good order; a defect that ended the supervisor comes out here."""
        self.supervisor.stop()
        await asyncio.wait({self._main})
        await self.leave()

    async def leave(self) -> None:
        """It has ended, by itself or because it was told to: the machine forgets it.

        At its start it ends when the database is away. Any other error is a defect, and comes out
        here. Whatever it left running ends with it.
        """
        if not self.alive:
            return
        try:
            self._main.result()
        except StoreUnavailable as error:
            self.around.trace.note(self.name, "ends", str(error))
        if not await self._told_its_last():
            return
        await self.journal.close()
        self.alive = False
        self._drop()

    async def _told_its_last(self) -> bool:
        """As in production: what is being told is told, for a moment, and the rest is left.

        False where the process has died over it.
        """
        if not self._beside:
            return self.alive
        for one, _ in self._beside:
            one.stop()
        running = [running for _, running in self._beside]
        _, late = await asyncio.wait(running, timeout=TELLING_SECONDS)
        for running_on in late:
            running_on.cancel()
        await asyncio.wait(running)
        for ended in running:
            if not ended.cancelled():
                ended.result()
        return self.alive

    async def unsubscribe(self, token: str) -> bool:
        """Whether somebody who followed a link was told that it is done. Whoever asks a process
        that dies, or that cannot reach its database, was not."""
        return await self._knocked(self._doors.unsubscribe(token), "page of")

    async def report(self, account: str, body: bytes, within_us: int) -> bool:
        """Whether a provider that reports something was told in time that it is taken."""
        return await self._knocked(self._doors.report(account, body), "hook of", within_us)

    async def _knocked(
        self, work: Coroutine[Any, Any, bool], what: str, within_us: int | None = None
    ) -> bool:
        """Whether somebody who called was told yes. Whoever loses patience hangs up; what they
        asked for goes on."""
        if not self.alive:
            work.close()
            return False
        answering = self._begin(work, what)
        await asyncio.wait({answering}, timeout=None if within_us is None else within_us / SECOND)
        if not answering.done():
            answering.add_done_callback(_noticed)
            return False
        return _noticed(answering)

    # ------------------------------------------------------------------ what befalls it

    def crash(self, where: str) -> None:
        """As ``kill -9``: the ports die, then every task is dropped, wherever it waits."""
        if not self.alive:
            return
        self.alive = False
        self.around.trace.note(self.name, "crashes", where)
        self.around.witness.crashes += 1
        if self._moving is not None:
            self._moving.set()
        self._drop()
        self.gone.set()

    def _drop(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for task in loop.unfinished(self):
            task.cancel()

    def stand_still(self, us: int) -> None:
        """As a machine that is put to sleep: nothing moves until it goes on."""
        if self._moving is not None or not self.alive:
            return
        self._moving = asyncio.Event()
        self.stood_still += 1
        self.around.trace.note(self.name, "stands still", f"{us} us")
        asyncio.get_running_loop().call_later(us / SECOND, self._go_on)

    def _go_on(self) -> None:
        if self._moving is not None:
            self._moving.set()
            self._moving = None
            unheard, self._unheard = self._unheard, []
            for callback in unheard:
                self._ring(callback)
            if self.alive:
                self.around.trace.note(self.name, "goes on")

    @property
    def hindered(self) -> bool:
        return self._moving is not None or not self.alive

    async def pass_gate(self) -> None:
        """Where a process that stands still waits, and a dead one ends."""
        while self._moving is not None and self.alive:
            await self._moving.wait()
        self.refuse_dead()

    def refuse_dead(self) -> None:
        if not self.alive:
            raise asyncio.CancelledError


def _noticed(answering: asyncio.Task[bool]) -> bool:
    """What somebody was told: nothing, where their process died or could not reach its database.
    Any other error is a defect, and comes out here."""
    if answering.cancelled() or isinstance(answering.exception(), StoreError):
        return False
    return answering.result()


INSIDE = (Commit.BUSY, Commit.CONFLICT, Commit.ROW)
"""What strikes within a transaction, so that only the journal can know what to make of it."""


class PortStore:
    """The shared store as one process meets it: others may be in its way."""

    prompt = False
    """Whatever is written goes by way of the runner, where the weather strikes."""

    def __init__(self, store: Store, trace: Trace, name: str) -> None:
        self._store = store
        self._trace = trace
        self._name = name
        self.next_fate = Commit.WELL

    def write(self, *, at_once: bool = False) -> AbstractContextManager[Tx]:
        fate, self.next_fate = self.next_fate, Commit.WELL
        if fate is Commit.WELL:
            return self._store.write(at_once=at_once)
        return self._struck(fate, at_once=at_once)

    @contextmanager
    def _struck(self, fate: Commit, *, at_once: bool) -> Iterator[Tx]:
        if fate is Commit.BUSY:
            self._trace.note(self._name, "store", "is busy")
            raise StoreBusy("somebody else holds the file")
        with self._store.write(at_once=at_once) as tx:
            yield tx
            if fate is Commit.CONFLICT:
                self._trace.note(self._name, "store", "undoes a commit that was in the way")
                raise StoreConflict("somebody else was in the way")
            if fate is Commit.ROW:
                self._trace.note(self._name, "store", "undoes a commit that waited for a row")
                raise RowBusy("somebody else holds a row")

    def set_off(self, units: Sequence[LaneUnit]) -> None:
        return None  # nothing passes by the runner

    def read(self) -> AbstractContextManager[Tx]:
        return self._store.read()

    def analyse(self) -> None:
        self._store.analyse()

    def wipe(self) -> bool:
        return self._store.wipe()

    def close(self) -> None:
        return


class PortRunner:
    """Runs store calls inline, and lets the weather strike before, at and after each of them."""

    def __init__(self, process: Process, *, writes: bool = True) -> None:
        self._process = process
        self._writes = writes

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        process, weather = self._process, self._process.around.weather
        if process.hindered:
            await process.pass_gate()
        before_us = weather.store_takes_us()
        if before_us:
            await asyncio.sleep(before_us / SECOND)
            await process.pass_gate()
        fate = weather.commit() if self._writes else Commit.WELL
        process.around.witness.refuse_if_away()
        if fate in INSIDE:
            process.store.next_fate = fate
            fate = Commit.WELL
        if fate is not Commit.WELL:
            return await self._struck(fate, function)
        result = function()
        after_us = weather.store_takes_us()
        late = bool(after_us) and not self._writes
        shelf = process.around.witness.shelf() if late else None
        if after_us:
            await asyncio.sleep(after_us / SECOND)
        if process.hindered:
            await process.pass_gate()
        if shelf is not None:
            process.around.witness.tell(shelf)
        return result

    async def _struck(self, fate: Commit, function: Callable[[], T]) -> T:
        process, around = self._process, self._process.around
        if fate is Commit.CRASH_BEFORE:
            process.crash("before a commit")
            raise asyncio.CancelledError
        if fate is Commit.REFUSED:
            around.trace.note(process.name, "store", "refuses a commit")
            raise StoreUnavailable("the connection broke before the commit")
        if fate is Commit.AWAY:
            around.witness.send_away(around.weather.up_to(around.weather.climate.away_us))
            raise StoreUnavailable("the database cannot be reached")
        result = function()
        if fate is Commit.CRASH_AFTER:
            process.crash("after a commit")
            raise asyncio.CancelledError
        if fate is Commit.UNHEARD:
            around.trace.note(process.name, "store", "loses the answer to a commit")
            raise StoreUnavailable("the connection broke after the commit")
        process.stand_still(around.weather.up_to(around.weather.climate.standstill_us))
        await process.pass_gate()
        return result

    def close(self) -> None:
        return
