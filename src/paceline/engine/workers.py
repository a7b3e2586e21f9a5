"""A worker as the orchestrator knows it, what its end means, and freeing what it held."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.core.instants import SECOND, Instant
from paceline.core.reports import Standstill
from paceline.engine.crashes import OneTooMany, Restart, give_back_crashed
from paceline.engine.ports import Account, Lease, Tx
from paceline.engine.ports.workers import AWAY, WorkerProcess


@dataclass(slots=True, eq=False)
class Worker:
    """A worker as the orchestrator knows it."""

    name: str
    accounts: dict[int, Account]
    reserved: list[Lease]
    """Lanes that are held for it until it can take them."""
    heard_us: int
    started_us: int
    """When it was started, and from when on it has its lanes, once it has joined."""
    process: WorkerProcess | None = None
    process_id: int | None = None
    """Its number in the fleet."""
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    lanes: int = 0
    leaving: bool = False
    killed: bool = False
    end_by_us: int | None = None
    fault: str = ""
    """Why we put an end to it."""
    standstill: Standstill | None = None
    """What keeps its loop from turning, as it said itself, if it does not turn."""
    away: str = ""
    """Why it could not reach the database, if that was so."""
    ended: asyncio.Future[None] | None = None

    def stop(self) -> None:
        self.leaving = True
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        self.leaving = self.killed = True
        if self.process is not None:
            self.process.kill()

    @property
    def names(self) -> list[str]:
        return sorted(account.name for account in self.accounts.values())

    @property
    def is_ready(self) -> bool:
        """Whether it can take lanes."""
        return self.process_id is not None and not self.leaving

    @property
    def excused(self) -> bool:
        """Whether it is known that none of its accounts is to blame for its end."""
        return self.standstill is not None and self.standstill.excused

    @property
    def culprit(self) -> int | None:
        """Whose fault its end was, if that is known."""
        if self.excused:
            return None
        if len(self.accounts) == 1:
            # Nothing runs there but this one's lane and driver. A driver may block where nobody
            # knows on whose behalf, or so that not even the watchdog has a turn.
            return next(iter(self.accounts))
        named = None if self.standstill is None else self.standstill.account
        blamed = [a.id for a in self.accounts.values() if a.name == named]
        return blamed[0] if blamed else None

    @property
    def suspects(self) -> Collection[int]:
        """Who may have been to blame."""
        culprit = self.culprit
        if culprit is not None:
            return [culprit]
        return () if self.excused else self.accounts


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a worker may take for what."""

    silent_us: int
    start_within_us: int

    def fault_of(self, worker: Worker, now_us: int) -> str:
        """Why it has to be ended now; empty if it need not be."""
        silent_us, took_us = now_us - worker.heard_us, now_us - worker.started_us
        if worker.process_id is None:
            # It may well say that it lives all the while, and get nowhere.
            late = took_us > self.start_within_us
            return f"it did not join within {took_us // SECOND} s" if late else ""
        if silent_us > self.silent_us:
            return _fault_of_silence(worker, silent_us)
        overdue = worker.end_by_us is not None and now_us > worker.end_by_us
        return "its worker did not end when it was told to" if overdue else ""


def _fault_of_silence(worker: Worker, silent_us: int) -> str:
    seconds = silent_us // SECOND
    standstill = worker.standstill
    if standstill is not None and standstill.account is not None:
        return f"its driver blocked its worker for {seconds} s"
    return f"its worker did not answer for {seconds} s"


TURN_US = 60 * SECOND
"""How long a worker may keep its place while others wait for one and it has something to do."""
PAUSE_US = 15 * SECOND
"""The same where it has nothing to do. It says every few seconds how much that is."""


def make_room(workers: Sequence[Worker], wanted: int, now_us: int) -> list[Worker]:
    """Whose turn is over, where so many others wait for a place: first those with nothing to do,
    then those that have had theirs for longest. Each has a turn before it, so all get on."""
    wanted -= sum(worker.leaving for worker in workers)
    over = [
        worker
        for worker in workers
        if worker.is_ready and now_us - worker.started_us >= (TURN_US if worker.lanes else PAUSE_US)
    ]
    over.sort(key=lambda worker: (worker.lanes > 0, worker.started_us))
    return over[: max(0, wanted)]


def fault_of(code: int | None) -> str:
    """What is wrong about an end with this exit code; empty if that is nothing."""
    if code is None or code in (0, AWAY):
        return ""
    if code > 0:
        return f"its worker ended with exit code {code}"
    known = -code in list(signal.Signals)
    name = signal.Signals(-code).name if known else f"signal {-code}"
    hint = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
    return f"its worker was ended by {name}{hint}"


def release(tx: Tx, leases: Iterable[Lease]) -> None:
    """Give lanes back that are due."""
    for lease in leases:
        tx.lanes.release(lease)


def free_lanes_of(
    tx: Tx,
    worker: Worker,
    verdicts: Mapping[int, Restart | OneTooMany],
    fault: str,
    now: Instant,
) -> None:
    """Free whatever a worker that is gone has held. Whoever is to blame comes first: to suspend an
    account one has to have the fence before anything else."""
    for account_id, verdict in verdicts.items():
        generation = tx.lanes.get(account_id).generation
        lease = Lease(account_id, worker.process_id or 0, generation)
        give_back_crashed(tx, lease, tx.accounts.get(account_id), verdict, fault, now)
    release(tx, worker.reserved)
    if worker.process_id is not None:
        tx.processes.leave(worker.process_id)
