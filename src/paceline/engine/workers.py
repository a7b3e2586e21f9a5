"""A worker as the orchestrator knows it, what its end means, and freeing what it held."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paceline.core.instants import SECOND, Instant
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
    process: WorkerProcess | None = None
    process_id: int | None = None
    """Its number in the fleet."""
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    lanes: int = 0
    leaving: bool = False
    end_by_us: int | None = None
    fault: str = ""
    """Why we put an end to it."""
    blocked_by: str | None = None
    """The account whose lane keeps its loop from turning, as it said itself."""
    ended: asyncio.Future[None] | None = None

    def stop(self) -> None:
        self.leaving = True
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        self.leaving = True
        if self.process is not None:
            self.process.kill()

    @property
    def names(self) -> list[str]:
        return sorted(account.name for account in self.accounts.values())

    @property
    def culprit(self) -> int | None:
        """Whose fault its end was, if that is known."""
        if len(self.accounts) == 1:
            return next(iter(self.accounts))
        blamed = [a.id for a in self.accounts.values() if a.name == self.blocked_by]
        return blamed[0] if blamed else None


def fault_of_silence(worker: Worker, silent_us: int) -> str:
    seconds = silent_us // SECOND
    if worker.blocked_by is not None:
        return f"its driver blocked its worker for {seconds} s"
    return f"its worker did not answer for {seconds} s"


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
