"""Workers in virtual time: real supervisors behind a port that can crash, fall silent and leak."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from paceline.core.instants import SECOND
from paceline.core.reports import (
    Assignment,
    Beat,
    Joined,
    LaneCrash,
    Report,
    Standstill,
    read_assignment,
    read_report,
    write_assignment,
    write_report,
)
from paceline.engine.crashes import Crash, CrashBook
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.orchestrator import Orchestrator, OrchestratorOptions
from paceline.engine.tally import Tally
from paceline.worker import Roster
from tests.engine.world import Process, World

BEAT_US = 5 * SECOND
REST_US = 60 * SECOND


class Books(Tally):
    """What the service knows of its workers."""

    def __init__(self) -> None:
        super().__init__()
        self.workers: list[int] = []
        self.waiting: list[int] = []

    def workers_running(self, count: int) -> None:
        self.workers.append(count)

    def accounts_waiting(self, count: int) -> None:
        self.waiting.append(count)


class FakeWorker:
    """One worker: a process of the world, and its end of the line."""

    def __init__(
        self, world: World, name: str, account_ids: Sequence[int], hear: Callable[[Report], None],
        start_us: int, **more: Any,
    ) -> None:  # fmt: skip
        self.name = name
        self.given = list(account_ids)
        self.assigned: list[Assignment] = []
        self.memory = 50
        self.pid = 0
        self._world = world
        self._hear = hear
        self._roster = Roster(account_ids)
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.tally = Tally()
        self._book = CrashBook(lambda account_id, crash: self.tell(LaneCrash(account_id, *crash)))
        self.process: Process | None = None
        self.deaf = False
        """It does not end when it is asked to."""
        self.mute = False
        self.idles = False
        """It says that it lives, and never joins."""
        self._life = asyncio.ensure_future(self._live(start_us, more))

    async def _live(self, start_us: int, more: dict[str, Any]) -> None:
        await self._world.wait(start_us)
        world = self._world
        while self.idles:
            self.tell(Beat(None, self.memory, 0, self.tally.take()))
            await world.wait(BEAT_US)
        self.process = Process(
            world, world.store, self.name, self.tally,
            accounts=self._roster, leads=False, rest_us=REST_US, **more,
        )  # fmt: skip
        supervisor = self.process.supervisor
        supervisor._crashes = self._book
        beating = asyncio.ensure_future(self._beat())
        await supervisor.joined.wait()
        assert supervisor.process_id is not None
        self.tell(Joined(supervisor.process_id))
        await asyncio.wait({self.process._task})
        beating.cancel()
        if not self.process.dead:
            self._end(0)

    async def _beat(self) -> None:
        while True:
            assert self.process is not None
            number = self.process.supervisor.process_id
            self.tell(Beat(number, self.memory, self.tally.lanes, self.tally.take()))
            await self._world.wait(BEAT_US)

    def tell(self, report: Report) -> None:
        if not self.mute:
            self._hear(read_report(write_report(report)))

    @property
    def over(self) -> bool:
        return self._code.done()

    def _end(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    # ------------------------------------------------------------------ as the port has it

    def assign(self, assignment: Assignment) -> None:
        assignment = read_assignment(write_assignment(assignment))
        self.assigned.append(assignment)
        for account_id, at, run_id in assignment.crashes:
            self._book.learn(account_id, Crash(at, run_id))
        self._roster.add(assignment.account_ids)
        if self.process is not None:
            self.process.supervisor.nudge()

    def stop(self) -> None:
        if self.process is not None and not self.deaf:
            self.process.supervisor.stop()

    def kill(self) -> None:
        self.die(-9)

    async def ended(self) -> int:
        return await asyncio.shield(self._code)

    # ------------------------------------------------------------------ what befalls it

    def die(self, code: int) -> None:
        """At once, as a signal or a fatal error ends a process."""
        if not self._code.done():
            if self.process is not None and self.process.running:
                self.process.die()
            self._life.cancel()
            self.mute = True
            self._end(code)

    def fall_silent(self, culprit: str | None = None, standstill: Standstill | None = None) -> None:
        """It lives, but nothing in it moves any more; another thread may say who keeps it from
        moving."""
        if culprit is not None or standstill is not None:
            self.tell(standstill or Standstill(culprit))
        self.mute = True
        assert self.process is not None
        self.process.die()


class Workforce:
    """The port: starts workers, and remembers all of them."""

    def __init__(self, world: World, start_us: int = SECOND, **more: Any) -> None:
        """``more`` are ports of the workers' processes, or options of their supervisors."""
        self._world = world
        self._start_us = start_us
        self.more = more
        self.started: list[FakeWorker] = []
        self.refusal: Exception | None = None
        self.idles = False
        """Whether those that are started never join."""

    async def start(
        self, name: str, account_ids: Sequence[int], hear: Callable[[Report], None]
    ) -> FakeWorker:
        if self.refusal is not None:
            raise self.refusal
        worker = FakeWorker(self._world, name, account_ids, hear, self._start_us, **self.more)
        worker.pid = len(self.started) + 1
        worker.idles = self.idles
        self.started.append(worker)
        return worker

    def of(self, name: str) -> FakeWorker:
        """The worker that looks after an account, and lives."""
        account_id = self._world.account_now(name).id
        living = [worker for worker in self.started if not worker.over]
        return [worker for worker in living if account_id in worker._roster][-1]

    def count(self, name: str) -> int:
        account_id = self._world.account_now(name).id
        return sum(account_id in worker.given for worker in self.started)


class Service:
    """An orchestrator with its journal and its workforce."""

    def __init__(
        self, world: World, name: str = "one", *, workforce: Workforce | None = None,
        clock: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        self.workforce = workforce or Workforce(world)
        self.books = Books()
        runner = InlineRunner()
        self.journal = GroupJournal(
            world.store, world.clock, writer=runner, reader=runner, here=True
        )
        self.orchestrator = Orchestrator(
            self.journal,
            clock or world.clock,
            world.providers,
            self.workforce,
            observer=self.books,
            options=OrchestratorOptions(name=name, **options),
        )
        self._running = asyncio.ensure_future(self.orchestrator.run())

    async def stop(self) -> None:
        self.orchestrator.stop()
        await self._running
