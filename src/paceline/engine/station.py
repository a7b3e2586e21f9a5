"""A process of the fleet: it joins, renews its lease, looks for lanes that are due, and leaves.

What becomes of a lane that is due is up to what builds on this: the supervisor runs it here, the
orchestrator has it run by a worker. One process in which lanes are looked for also rings the bell
for reminders and keeps the house; workers leave both to whoever started them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import structlog

from paceline.core.errors import SchemaMismatch, StoreError
from paceline.core.instants import SECOND, Instant
from paceline.engine.bell import Bell, Rings
from paceline.engine.clock import ClockSteps
from paceline.engine.hearing import listening, wake
from paceline.engine.housekeeping import Housekeeping
from paceline.engine.leases import LEASE_US, ProcessLease
from paceline.engine.ports import Clock, Journal, LaneRow, Providers, Tx, Work
from paceline.engine.taking import Taking

log = structlog.get_logger("paceline.supervisor")

WATCH_EVERY_US = 60 * SECOND
AMISS_PAUSE_US = SECOND
"""How long what fails in a way that nobody foresaw is left alone: it may fail again at once."""


class Found(NamedTuple):
    """What a look for work has come to."""

    due: list[LaneRow]
    next_wake_at: Instant | None
    rings: Rings
    now: Instant


NO_LEASE = "this process holds no lease under which it may send"


@dataclass(frozen=True, slots=True)
class StationOptions:
    """What an operator may tune about any process."""

    name: str = "paceline"
    poll_us: int = SECOND
    """How often other processes' changes are looked for; signals come sooner where they exist."""
    grace_us: int = 60 * SECOND
    """How long a stop waits for messages under way."""
    max_lanes: int = 10_000
    accounts: Iterable[int] | None = None
    """Whose lanes are looked for; None is everybody's. It is looked at anew each time."""
    leads: bool = True
    """Whether it rings the bell and keeps the house, too."""


class Station(ABC):
    """Looks for lanes that are due, from joining the fleet to leaving it."""

    def __init__(
        self, journal: Journal, clock: Clock, providers: Providers, options: StationOptions
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._providers = providers
        self._station = options
        self._lease = ProcessLease(journal, clock, options.name)
        self._taking = Taking(journal, self._lease)
        self._side: list[asyncio.Future[None]] = []
        self._watched_us = 0
        self._house = Housekeeping(journal)
        self._bell = Bell(journal, providers)
        self._steps = ClockSteps(clock)
        self._nudge = asyncio.Event()
        self._took = asyncio.Event()
        self._stop = asyncio.Event()
        self.joined = asyncio.Event()
        """Set when it is a member of the fleet for the first time."""

    # ------------------------------------------------------------------ what others decide

    @property
    @abstractmethod
    def _held(self) -> Collection[int]:
        """The accounts whose lanes are ours and in good hands."""

    @abstractmethod
    async def _attend(self, due: list[LaneRow]) -> None:
        """See to the lanes that are due."""

    @abstractmethod
    def _look_over(self, now_us: int, stood_us: int) -> None:
        """Once in a while: what is stuck? The process itself stood still for ``stood_us``."""

    @abstractmethod
    def _clock_was_set(self) -> None:
        """Whoever sleeps until an instant must hear of it."""

    @abstractmethod
    async def _let_end(self) -> None:
        """The stop has come: let what has started settle, within the grace period."""

    @abstractmethod
    def _under_way(self) -> Sequence[asyncio.Future[Any]]:
        """What must not run on when nobody renews the lease any more."""

    def _looked(self, next_wake_at: Instant | None, now: Instant) -> None:
        """All that was due has been seen to; the next lane wakes then."""
        return

    # ------------------------------------------------------------------ its life

    @property
    def healthy(self) -> bool:
        """Whether this process holds a lease under which it may send, or could have one at once."""
        return self._lease.safe() if self._held else self._lease.alive

    @property
    def problem(self) -> str | None:
        """Why this process cannot work right now; None when it can."""
        return None if self.healthy else NO_LEASE

    @property
    def process_id(self) -> int | None:
        """Its number in the fleet, which may change while it lives; None while it is no member."""
        return self._lease.process_id if self._lease.joined else None

    def nudge(self) -> None:
        """Look for work now rather than at the next poll."""
        self._nudge.set()

    def stop(self) -> None:
        """Start nothing more; ``run`` returns when everything has ended."""
        self._stop.set()

    async def run(self) -> None:
        """Until a stop is complete, or until something fails that no waiting mends."""
        working = asyncio.ensure_future(self._work())
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                # A defect, or a store of another version. What is with a provider is true all the
                # same and gets its chance to be put on record.
                log.error("cannot go on", error=repr(working.exception()))
                self.stop()
            working.cancel()
            await self._let_end()
            if self._lease.joined:
                await self._leave()
            if working.done() and not working.cancelled():
                working.result()
        finally:
            # However this ends, nothing may run on: nobody would renew its lease.
            leftovers: list[asyncio.Future[Any]] = [
                working, stopped, *self._side, *self._under_way()
            ]  # fmt: skip
            for leftover in leftovers:
                leftover.cancel()
            await asyncio.gather(*leftovers, return_exceptions=True)

    async def _work(self) -> None:
        """Join, then look for lanes for ever. A stop cancels this, wherever it waits."""
        await self._join()
        self.joined.set()
        self._watched_us = self._clock.monotonic_us()
        self._side = self._side_lines()
        while True:
            self._nudge.clear()
            self._look_at_the_clock()
            await self._wait(await self._poll(), self._nudge)

    async def _join(self) -> None:
        if await self._lease.join_and(self._first_look):
            # Accounts that are to be open at all times are, from the first moment on.
            now = self._clock.now()
            await self._journal.write(lambda tx: wake(tx, self._providers, now))

    def _first_look(self, tx: Tx) -> bool:
        """What is to be known at the beginning; whether somebody is to be woken at once."""
        return self._station.leads and bool(listening(tx, self._providers))

    def _side_lines(self) -> list[asyncio.Future[None]]:
        """What goes on beside the looking."""
        until_watch = partial(self._clock.sleep, WATCH_EVERY_US)
        return [
            asyncio.ensure_future(self._every(self._until_renewal, self._lease.renew)),
            asyncio.ensure_future(self._every(until_watch, self._watch)),
        ]

    async def _until_renewal(self) -> None:
        """Not long, unless nothing is ours; the first lane that is taken ends a long rest. Whoever
        takes lanes renews the lease with them, and need not do so again at once."""
        left_us = self._lease.renew_in_us(busy=bool(self._held))
        if left_us <= 0:  # it has failed, or took as long as this
            await self._clock.sleep(0)
        while left_us > 0:
            self._took.clear()
            await self._wait(left_us, self._took)
            left_us = self._lease.renew_in_us(busy=bool(self._held))

    async def _every(
        self, rest: Callable[[], Awaitable[None]], act: Callable[[], Awaitable[None]]
    ) -> None:
        while True:
            await rest()
            try:
                await act()
            except StoreError as error:
                log.warning("store failed", error=str(error))
            except Exception:
                # The next turn may go well. Until then the lease runs down and nothing is sent,
                # which is safe; a loop that silently ended would be neither seen nor mended.
                log.exception("could not look after the lanes")
                await self._clock.sleep(AMISS_PAUSE_US)

    def _look_at_the_clock(self) -> None:
        """A lane that sleeps until an instant must hear of it when the clock was set."""
        stepped_us = self._steps.since_last_look_us()
        if stepped_us:
            log.warning("the clock was set", by_s=stepped_us / SECOND)
            self._clock_was_set()

    async def _wait(self, wait_us: int, signal: asyncio.Event) -> None:
        timer = self._clock.timer(wait_us, signal.set)
        try:
            await signal.wait()
        finally:
            timer.cancel()

    async def _watch(self) -> None:
        now_us = self._clock.monotonic_us()
        # While the whole process stood still no lane could make a step: that is not its fault.
        stood_us = max(0, now_us - self._watched_us - WATCH_EVERY_US)
        self._watched_us = now_us
        self._look_over(now_us, stood_us)
        if self._station.leads:
            await self._house.look(self._clock.now())

    # ------------------------------------------------------------------ finding work

    async def _poll(self) -> int:
        """See to what is due; answer in how long to look again."""
        poll_us = self._station.poll_us
        if self._held and not self._lease.safe():
            return poll_us
        try:
            await self._taking.make_sure(self._held)
            due, next_wake_at, rings, now = await self._find()
            await self._attend(due)
            if await self._bell.ring(rings.due):
                self.nudge()
        except SchemaMismatch:
            raise
        except StoreError as error:
            # Whatever it is, those who look after the store can mend it while we wait.
            log.warning("store failed", error=str(error))
            return poll_us
        self._looked(next_wake_at, now)
        # A wake that lies behind us belongs to a lane we have no room for: it waits its turn.
        wakes_us = [at - now for at in (next_wake_at, rings.next_at) if at is not None and at > now]
        return min([poll_us, *wakes_us])

    async def _find(self) -> Found:
        """See what is due."""
        return await self._journal.read(self._look)

    def _look(self, tx: Tx) -> Found:
        options, process_id = self._station, self._lease.process_id
        return Found(
            tx.lanes.due(process_id, options.max_lanes, options.accounts),
            tx.lanes.next_wake_at(options.accounts),
            self._bell.look(tx) if options.leads else Rings([], None),
            tx.now,
        )

    async def _insist(self, work: Work[object]) -> None:
        """Write it however long the store is away: a lane nobody runs must not stay ours."""
        while True:
            try:
                await self._journal.write(work, alone=True)
                return
            except StoreError as error:
                log.warning("store failed, trying again", error=str(error))
                await self._clock.sleep(self._station.poll_us)

    async def _leave(self) -> None:
        """Hand the lanes back; a lease's length later others have taken them over anyway."""
        try:
            async with asyncio.timeout(LEASE_US / SECOND):
                await self._lease.leave()
        except (StoreError, TimeoutError) as error:
            log.warning("could not hand back the lanes", error=str(error) or "no answer")
