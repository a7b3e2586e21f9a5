"""A lease on a real store, for tests of what it is good for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paceline.core.instants import Instant
from paceline.engine.clock import LoopClock
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.leases import ProcessLease
from paceline.engine.ports import Alarm, Store
from paceline.store.database import open_store
from tests.engine.faults import TrippedStore
from tests.engine.world import MONDAY_NINE


class TwoClocks:
    """A wall clock and a monotonic one that a test moves by hand, together or apart."""

    def __init__(self) -> None:
        self.at: Instant = MONDAY_NINE
        self.us = 1_000_000

    def now(self) -> Instant:
        return self.at

    def monotonic_us(self) -> int:
        return self.us

    async def sleep_until(self, at: Instant) -> None:
        self.pass_by(max(0, at - self.at))

    async def sleep(self, us: int) -> None:
        self.pass_by(us)
        await asyncio.sleep(0)

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Alarm:
        return LoopClock(self.at).alarm(at, ring)

    def timer(self, us: int, ring: Callable[[], None]) -> Alarm:
        return LoopClock(self.at).timer(us, ring)

    def pass_by(self, us: int) -> None:
        self.at += us
        self.us += us


class Desk:
    """A lease on a real store, with clocks that only move when told to."""

    def __init__(self, store: Store, clock: TwoClocks) -> None:
        self.clock = clock
        self.store = store
        self.tripped = TrippedStore(store)
        self.journal = GroupJournal(
            self.tripped, clock, writer=InlineRunner(), reader=InlineRunner()
        )
        self.lease = ProcessLease(self.journal, clock, "desk")

    def rows(self) -> list[tuple[int, Instant]]:
        with self.store.read() as tx:
            return [(row.id, row.lease_until_at) for row in tx.processes.list()]


@contextmanager
def open_desk(folder: Path) -> Iterator[Desk]:
    clock = TwoClocks()
    store = open_store(f"sqlite:///{folder / 'leases.db'}", clock=clock.now)
    yield Desk(store, clock)
    store.close()


def run(script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(script())
