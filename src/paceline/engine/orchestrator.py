"""The orchestrator: has lanes run by workers, processes that each look after a few accounts.

It looks for lanes that are due as the supervisor does, but runs none. A lane that nobody looks
after is taken, so that nobody else starts a worker for it, and handed over as soon as a worker is
there. An account keeps its worker as long as there is something to do, unless others wait for a
place. What a worker does to itself (crash, hang, leak) is noticed here, counted as a crash of the
account that is to blame, and harms nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import structlog

from paceline.core.instants import SECOND
from paceline.core.reports import Assignment, Away, Beat, Joined, LaneCrash, Report, Standstill
from paceline.core.sizes import print_size
from paceline.engine.blame import Blame, Verdicts, clear_away
from paceline.engine.crashes import AWAY_PAUSE_US, Crash
from paceline.engine.idle_lanes import IdleLanes
from paceline.engine.leases import LEASE_US
from paceline.engine.ports import Clock, Journal, LaneRow, Lease, Providers
from paceline.engine.ports.workers import AWAY, MAX_WORKERS, Workers
from paceline.engine.recruiting import Recruiting
from paceline.engine.station import Station, StationOptions
from paceline.engine.workers import Patience, Worker, fault_of, make_room, release

log = structlog.get_logger("paceline.orchestrator")

END_WITHIN_US = LEASE_US + 5 * SECOND
"""How long a worker may take to hand back its lanes when its grace period is over."""
IN_LINE_US = 5 * SECOND
"""Who has waited for so long is waiting for a place: another service may have one to spare."""


class WorkersObserver(Protocol):
    """Told what workers have counted, and how many there are."""

    def add(self, taken: Mapping[str, Any]) -> None: ...

    def lanes_running(self, count: int) -> None: ...

    def workers_running(self, count: int) -> None: ...

    def accounts_waiting(self, count: int) -> None:
        """So many have something to do and wait for a worker."""
        ...

    def lane_crashed(self, account: str) -> None: ...


@dataclass(frozen=True, slots=True)
class OrchestratorOptions(StationOptions):
    accounts_per_worker: int = 1
    max_workers: int = MAX_WORKERS
    memory_limit: int = 0
    """What a worker may take, in bytes; 0 is anything."""
    listen_every_us: int = 5 * SECOND
    silent_us: int = 45 * SECOND
    """A worker that says nothing for so long hangs. It speaks every few seconds."""
    start_within_us: int = 60 * SECOND
    """How long one may take to join the fleet, for the machine or the database may be busy."""
    starts_at_once: int = 4
    """Workers that may be starting together: each keeps a core busy for a second."""


class Orchestrator(Station):
    """Runs the workers of one service."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        providers: Providers,
        workers: Workers,
        *,
        observer: WorkersObserver,
        options: OrchestratorOptions,
    ) -> None:
        super().__init__(journal, clock, providers, options)
        self._spawn = workers
        self._observer = observer
        self._options = options
        self._workers: list[Worker] = []
        self._started = 0
        self._blame = Blame(clock)
        self._idle = IdleLanes(journal, clock)
        self._patience = Patience(options.silent_us, options.start_within_us)
        self._recruiting = Recruiting(
            options.name, clock, options.max_workers, options.starts_at_once
        )
        self._waiting = 0
        self._listened_us = 0

    @property
    def problem(self) -> str | None:
        return self._recruiting.problem or super().problem

    def stop(self) -> None:
        """Start no more workers, and let those there are end in good order."""
        super().stop()
        for worker in self._workers:
            worker.stop()

    def kill_all(self) -> None:
        """End every worker at once, wherever it is."""
        for worker in self._workers:
            worker.kill()

    @property
    def _held(self) -> Collection[int]:
        return {lease.account_id for worker in self._workers for lease in worker.reserved}

    def _under_way(self) -> Sequence[asyncio.Future[Any]]:
        return [worker.ended for worker in self._workers if worker.ended is not None]

    def _look_over(self, now_us: int, stood_us: int) -> None:
        """Which lanes are stuck is seen where they run."""

    def _clock_was_set(self) -> None:
        """Every worker looks at the clock itself."""

    def _side_lines(self) -> list[asyncio.Future[None]]:
        self._listened_us = self._clock.monotonic_us()
        until_listening = partial(self._clock.sleep, self._options.listen_every_us)
        listening = asyncio.ensure_future(self._every(until_listening, self._listen))
        return [*super()._side_lines(), listening]

    # ------------------------------------------------------------------ finding work

    async def _attend(self, due: list[LaneRow]) -> None:
        """Find a worker for every lane that has none: one with room, or a new one."""
        served = {account_id for worker in self._workers for account_id in worker.accounts}
        unserved = [row for row in due if row.account_id not in served]
        ours = [row.account_id for row in unserved if row.owner == self._lease.process_id]
        await self._taking.let_go(ours, self._held)
        rested = [row for row in unserved if self._blame.is_rested(row.account_id)]
        others = [row for row in rested if row.account_id not in ours]
        busy = await self._idle.busy(others, self._lease.process_id)
        free = await self._find_room([row.account_id for row in busy])
        while free and not self._stop.is_set() and self._may_start():
            group = self._group_of(free)
            free = [account_id for account_id in free if account_id not in group]
            await self._start(group)
        self._stand_in_line([row for row in busy if row.account_id in free])

    def _stand_in_line(self, waiting: list[LaneRow]) -> None:
        """There is no place for these. Whoever has had one for long makes room; whoever was due
        first is first in line, and who made room is last."""
        if not self._recruiting.is_full(len(self._workers)):
            waiting = []  # it is only that a few are started at a time
        if waiting and not self._waiting:
            log.warning("accounts wait for a worker", accounts=len(waiting))
        self._waiting = len(waiting)
        self._observer.accounts_waiting(len(waiting))
        since_at, now_us = self._clock.now() - IN_LINE_US, self._clock.monotonic_us()
        patient = sum(row.wake_at is None or row.wake_at <= since_at for row in waiting)
        wanted = -(-patient // self._options.accounts_per_worker)
        for worker in make_room(self._workers, wanted, now_us):
            log.info("worker makes room for others", worker=worker.name, accounts=worker.names)
            self._ask_to_end(worker)

    async def _find_room(self, free: list[int]) -> list[int]:
        """Add to workers that have room; those for whom there is none."""
        if not free or self._options.accounts_per_worker == 1:
            return free
        accounts = await self._journal.read(lambda tx: tx.accounts.several(free))
        left = []
        for account_id in free:
            worker = self._with_room_for(account_id)
            if worker is None or account_id not in accounts:
                left.append(account_id)
            else:
                worker.accounts[account_id] = accounts[account_id]
                self._assign(worker, [account_id])
        return left

    def _with_room_for(self, account_id: int) -> Worker | None:
        if self._blame.is_suspect(account_id):
            return None
        for worker in self._workers:
            room = len(worker.accounts) < self._options.accounts_per_worker
            if worker.is_ready and room and not any(map(self._blame.is_suspect, worker.accounts)):
                return worker
        return None

    def _may_start(self) -> bool:
        starting = sum(worker.process_id is None for worker in self._workers)
        return self._recruiting.may_start(len(self._workers), starting)

    def _group_of(self, free: list[int]) -> list[int]:
        if self._blame.is_suspect(free[0]):
            return free[:1]
        sociable = [account_id for account_id in free if not self._blame.is_suspect(account_id)]
        return sociable[: self._options.accounts_per_worker]

    async def _start(self, account_ids: list[int]) -> None:
        taken = await self._taking.take(account_ids)
        if not taken:
            return
        process_id = self._lease.process_id
        self._started += 1
        now_us = self._clock.monotonic_us()
        worker = Worker(
            name=f"{self._options.name} worker {self._started}",
            accounts={account.id: account for _, account in taken},
            reserved=[Lease(row.account_id, process_id, row.generation) for row, _ in taken],
            heard_us=now_us,
            started_us=now_us,
        )
        self._workers.append(worker)
        self._took.set()
        self._tell()
        worker.ended = asyncio.ensure_future(self._look_after(worker))

    def _tell(self) -> None:
        self._observer.workers_running(len(self._workers))
        self._observer.lanes_running(sum(worker.lanes for worker in self._workers))

    def _assign(self, worker: Worker, account_ids: Iterable[int]) -> None:
        assert worker.process is not None, "nobody is told anything who was not started"
        now, chosen = self._clock.now(), sorted(account_ids)
        crashes = [
            LaneCrash(account_id, *crash)
            for account_id in chosen
            for crash in self._blame.crashes.recent(account_id, now)
        ]
        worker.process.assign(Assignment(tuple(chosen), tuple(crashes)))

    # ------------------------------------------------------------------ looking after

    async def _look_after(self, worker: Worker) -> None:
        """A worker from its start to its end, however it ends."""
        try:
            code = await self._see_through(worker)
            await self._bury(worker, code)
        except Exception as error:
            # A defect of ours. What it holds itself is free when its lease is over.
            log.exception("could not look after a worker", worker=worker.name)
            self._recruiting.failed(worker.name, repr(error))
            await self._insist(lambda tx: release(tx, worker.reserved))
        finally:
            worker.kill()
            self._workers.remove(worker)
            self._tell()
            self._nudge.set()

    async def _see_through(self, worker: Worker) -> int | None:
        """Its exit code; None if it was never started."""
        if self._stop.is_set():
            return None
        hear = partial(self._hear, worker)
        try:
            worker.process = await self._spawn.start(worker.name, sorted(worker.accounts), hear)
        except OSError as error:
            self._recruiting.failed(worker.name, str(error))
            return None
        log.info(
            "worker started", worker=worker.name, pid=worker.process.pid, accounts=worker.names
        )
        worker.heard_us = worker.started_us = self._clock.monotonic_us()
        if self._stop.is_set():
            worker.stop()
        ended = asyncio.ensure_future(worker.process.ended())
        joined = asyncio.ensure_future(worker.joined.wait())
        try:
            await asyncio.wait({ended, joined}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await self._hand_over(worker)
            return await ended
        finally:
            joined.cancel()
            ended.cancel()

    async def _hand_over(self, worker: Worker) -> None:
        """Let go of the lanes that were held for a worker: it takes them in the next moment."""
        await self._insist(lambda tx: release(tx, worker.reserved))
        worker.reserved.clear()
        worker.started_us = self._clock.monotonic_us()
        self._assign(worker, worker.accounts)

    def _hear(self, worker: Worker, report: Report) -> None:
        if isinstance(report, Standstill):
            worker.standstill = report
            return
        worker.heard_us = self._clock.monotonic_us()
        worker.standstill = None
        match report:
            case Away(reason):
                worker.away = reason
            case Joined(process_id):
                self._recruiting.joined()
                worker.process_id = process_id
                worker.joined.set()
                self._nudge.set()
            case LaneCrash(account_id, at, run_id):
                # What follows from it the worker knows. Here it is kept, should the worker die.
                self._blame.crashes.note(account_id, Crash(at, run_id))
            case Beat(process_id, memory, lanes, counted):
                worker.lanes = lanes
                if process_id is not None and worker.joined.is_set():
                    worker.process_id = process_id
                self._observer.add(counted)
                self._tell()
                self._weigh(worker, memory)

    def _weigh(self, worker: Worker, memory: int) -> None:
        limit = self._options.memory_limit
        if not limit or memory <= limit or worker.leaving:
            return
        fault = f"its worker took {print_size(memory)} of memory, more than {print_size(limit)}"
        log.error("worker takes too much memory, replacing it", worker=worker.name, memory=memory)
        worker.fault = fault
        self._ask_to_end(worker)

    def _ask_to_end(self, worker: Worker) -> None:
        grace_us = self._options.grace_us + END_WITHIN_US
        worker.end_by_us = self._clock.monotonic_us() + grace_us
        worker.stop()

    async def _listen(self) -> None:
        """End workers that hang, that do not come to work, or do not end when they are told to."""
        now_us = self._clock.monotonic_us()
        # While we stood still ourselves nobody could be heard.
        stood_us = max(0, now_us - self._listened_us - self._options.listen_every_us)
        self._listened_us = now_us
        for worker in self._workers:
            worker.heard_us += stood_us
            worker.started_us += stood_us
            fault = self._patience.fault_of(worker, now_us)
            if worker.process is None or not fault or worker.killed:
                continue
            worker.fault = worker.fault or fault
            log.error("ending a worker", worker=worker.name, pid=worker.process.pid, reason=fault)
            worker.kill()
        await self._recruiting.tell(self._journal)

    # ------------------------------------------------------------------ when one has ended

    async def _bury(self, worker: Worker, code: int | None) -> None:
        """Draw the conclusions from a worker's end, and free what it held: nothing of it is left,
        so nobody has to wait until its lease is over."""
        fault = worker.fault or fault_of(code)
        verdicts: Verdicts = {}
        now, service = self._clock.now(), self._options.name
        if self._stop.is_set() or not (fault or code == AWAY):
            log.info("worker ended", worker=worker.name)
        elif code == AWAY:
            reason = worker.away or "the database is away"
            self._recruiting.failed(worker.name, reason, AWAY_PAUSE_US)
            self._blame.rest(worker.accounts, AWAY_PAUSE_US)
        elif worker.process_id is None:
            self._recruiting.failed(worker.name, fault)
        else:
            log.error("worker crashed", worker=worker.name, reason=fault, accounts=worker.names)
            verdicts = self._blame.judge(worker, now)
            for account_id in verdicts:
                self._observer.lane_crashed(worker.accounts[account_id].name)
        if worker.reserved or fault:
            await self._insist(lambda tx: clear_away(tx, service, worker, verdicts, fault, now))
            worker.reserved.clear()

    async def _let_end(self) -> None:
        ended = set(self._under_way())
        if not ended:
            return
        log.info("stopping", workers=len(ended))
        within_us = self._options.grace_us + END_WITHIN_US
        _, late = await asyncio.wait(ended, timeout=within_us / SECOND)
        if late:
            log.warning("gave up waiting for workers", workers=len(late))
            self.kill_all()
            await asyncio.wait(late, timeout=LEASE_US / SECOND)

    async def _leave(self) -> None:
        await self._recruiting.retire(self._journal)
        await super()._leave()
