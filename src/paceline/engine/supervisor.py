"""The supervisor: takes lanes that are due, starts them, and looks after them until they end.

One per process. It renews the process's lease, wakes lanes that others touched, restarts lanes
that crashed with growing pauses, suspends an account whose lane keeps crashing, and on a stop lets
every started message settle before it hands the lanes back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from paceline.core.errors import (
    NotFoundError,
    ProviderError,
    ProviderRefused,
    SchemaMismatch,
    StoreError,
)
from paceline.core.instants import MINUTE, SECOND
from paceline.engine import taking
from paceline.engine.bell import Bell
from paceline.engine.chance import Draws
from paceline.engine.clock import ClockSteps
from paceline.engine.context import LaneContext
from paceline.engine.crashes import (
    AWAY_PAUSE_US,
    Crash,
    CrashBook,
    LaneFailed,
    give_back_crashed,
    suspend,
)
from paceline.engine.drivers import LazyDriver, within_time
from paceline.engine.housekeeping import Housekeeping
from paceline.engine.lane import Lane
from paceline.engine.leases import (
    IDLE_RENEW_EVERY_US,
    LEASE_US,
    RENEW_EVERY_US,
    ProcessLease,
)
from paceline.engine.observe import Observer
from paceline.engine.ports import Account, Clock, Journal, LaneRow, Lease, Providers, Work
from paceline.engine.running import Running
from paceline.engine.starts import FIRE_CONCURRENCY, Starts
from paceline.engine.taking import Taking
from paceline.engine.unsubscribing import ensure_links

log = structlog.get_logger("paceline.supervisor")

WATCH_EVERY_US = 60 * SECOND
CLOSE_WITHIN_US = 10 * SECOND


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """What an operator may tune about a process."""

    name: str = "paceline"
    poll_us: int = SECOND
    """How often other processes' changes are looked for; signals come sooner where they exist."""
    grace_us: int = 60 * SECOND
    """How long a stop waits for messages under way."""
    max_lanes: int = 10_000
    park_after_us: int = 2 * MINUTE
    fire_concurrency: int = FIRE_CONCURRENCY


class Supervisor:
    """Runs the lanes of one process."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        providers: Providers,
        *,
        observer: Observer,
        rng: random.Random,
        options: SupervisorOptions,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._providers = providers
        self._observer = observer
        self._seed = rng.getrandbits(64)
        self._options = options
        self._lease = ProcessLease(journal, clock, options.name)
        self._taking = Taking(journal, self._lease)
        self._context: LaneContext
        self._running: dict[int, Running] = {}
        self._crashes = CrashBook()
        self._side: list[asyncio.Future[None]] = []
        self._watched_us = 0
        self._house = Housekeeping(journal)
        self._bell = Bell(journal, providers)
        self._steps = ClockSteps(clock)
        self._nudge = asyncio.Event()
        self._took = asyncio.Event()
        self._stop = asyncio.Event()

    @property
    def healthy(self) -> bool:
        """Whether this process holds a lease under which it may send, or could have one at once."""
        return self._lease.safe() if self._running else self._lease.alive

    def nudge(self) -> None:
        """Look for work now rather than at the next poll."""
        self._nudge.set()

    def stop(self) -> None:
        """Start nothing more; ``run`` returns when every lane has ended."""
        self._stop.set()
        for running in self._running.values():
            running.lane.stop()

    def kill(self, account: str) -> bool:
        """End a lane at once, wherever it is, as a crash would: nothing is settled."""
        for running in self._running.values():
            if running.account.name == account:
                return running.kill()
        return False

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
            await self._wind_down()
            if working.done() and not working.cancelled():
                working.result()
        finally:
            # However this ends, nothing may run on: nobody would renew its lease.
            lanes = [running.ended for running in self._running.values()]
            leftovers: list[asyncio.Future[Any]] = [working, stopped, *self._side, *lanes]
            for leftover in leftovers:
                leftover.cancel()
            await asyncio.gather(*leftovers, return_exceptions=True)

    async def _work(self) -> None:
        """Join, then look for lanes to run for ever. A stop cancels this, wherever it waits."""
        await self._join()
        self._watched_us = self._clock.monotonic_us()
        until_watch = partial(self._clock.sleep, WATCH_EVERY_US)
        self._side = [
            asyncio.ensure_future(self._every(self._until_renewal, self._lease.renew)),
            asyncio.ensure_future(self._every(until_watch, self._watch)),
        ]
        while True:
            self._nudge.clear()
            self._look_at_the_clock()
            await self._wait(await self._poll(), self._nudge)

    async def _join(self) -> None:
        instance, links = await self._journal.write(
            lambda tx: (str(tx.settings.get("instance")), ensure_links(tx))
        )
        await self._lease.join()
        self._context = LaneContext(
            journal=self._journal,
            clock=self._clock,
            lease=self._lease,
            observer=self._observer,
            instance=instance,
            park_after_us=self._options.park_after_us,
            starts=Starts(self._options.fire_concurrency),
            links=links,
        )

    async def _until_renewal(self) -> None:
        """Not long, unless nothing is ours; the first lane that is taken ends a long rest."""
        if not self._running:
            self._took.clear()
            await self._wait(IDLE_RENEW_EVERY_US, self._took)
        if self._running:
            await self._clock.sleep(RENEW_EVERY_US)

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

    def _look_at_the_clock(self) -> None:
        """A lane that sleeps until an instant must hear of it when the clock was set."""
        stepped_us = self._steps.since_last_look_us()
        if stepped_us:
            log.warning("the clock was set", by_s=stepped_us / SECOND)
            for running in self._running.values():
                running.lane.touch()

    async def _wait(self, wait_us: int, signal: asyncio.Event) -> None:
        timer = asyncio.ensure_future(self._clock.sleep(wait_us))
        timer.add_done_callback(lambda done: None if done.cancelled() else signal.set())
        try:
            await signal.wait()
        finally:
            timer.cancel()

    # ------------------------------------------------------------------ finding work

    async def _poll(self) -> int:
        """Start and touch what is due; answer in how long to look again."""
        poll_us = self._options.poll_us
        if self._running and not self._lease.safe():
            return poll_us
        process_id, limit = self._lease.process_id, self._options.max_lanes
        try:
            await self._taking.make_sure(self._running)
            due, next_wake_at, rings, now = await self._journal.read(
                lambda tx: (
                    tx.lanes.due(process_id, limit),
                    tx.lanes.next_wake_at(),
                    self._bell.look(tx),
                    tx.now,
                )
            )
            await self._attend(due)
            if await self._bell.ring(rings.due):
                self.nudge()
        except SchemaMismatch:
            raise
        except StoreError as error:
            # Whatever it is, those who look after the store can mend it while we wait.
            log.warning("store failed", error=str(error))
            return poll_us
        # A wake that lies behind us belongs to a lane we have no room for: it waits its turn.
        wakes_us = [at - now for at in (next_wake_at, rings.next_at) if at is not None and at > now]
        return min([poll_us, *wakes_us])

    async def _attend(self, due: list[LaneRow]) -> None:
        """Wake what runs here, and take the rest: many at once, for each commit takes its time."""
        ours, free = [], []
        for row in due:
            running = self._running.get(row.account_id)
            if running is not None:
                running.lane.touch()
            elif row.owner == self._lease.process_id:
                ours.append(row.account_id)
            else:
                free.append(row.account_id)
        await self._taking.let_go(ours, self._running)
        while free and not self._stop.is_set():
            room = min(self._options.max_lanes - len(self._running), taking.TAKE_AT_ONCE)
            if room <= 0:
                return
            for row, account in await self._taking.take(free[:room]):
                await self._start_or_suspend(row, account)
            del free[:room]

    async def _start_or_suspend(self, row: LaneRow, account: Account) -> None:
        try:
            self._start(row, account)
        except NotFoundError as error:  # a driver that this installation does not have
            reason = str(error)
            lease = Lease(account.id, self._lease.process_id, row.generation)
            await self._insist(lambda tx: suspend(tx, lease, account, reason, self._clock.now()))

    def _start(self, row: LaneRow, account: Account) -> None:
        # Seeded by what identifies this start, so that a simulated world draws the same gaps
        # whatever order its lanes are started in.
        rng = Draws(f"{self._seed}/{account.id}/{row.generation}")
        driver = LazyDriver(self._providers, account)
        lane = Lane(self._context, row, account.name, driver, rng)
        lease = Lease(account.id, self._lease.process_id, row.generation)
        ended = asyncio.ensure_future(self._look_after(lane, driver, lease, account))
        self._running[account.id] = Running(account, lane, ended)
        self._took.set()
        self._observer.lanes_running(len(self._running))
        if self._stop.is_set():  # it was being taken when the stop came
            lane.stop()

    # ------------------------------------------------------------------ looking after

    async def _look_after(
        self, lane: Lane, driver: LazyDriver, lease: Lease, account: Account
    ) -> None:
        """A lane from its start to its end, however it ends."""
        running = self._running[account.id]
        try:
            try:
                await lane.run()
            finally:
                running.over = True
                await self._close(driver, account)
        except ProviderRefused as error:
            reason = str(error)
            await self._insist(lambda tx: suspend(tx, lease, account, reason, self._clock.now()))
        except (ProviderError, StoreError) as error:
            log.warning("lane could not go on", account=account.name, error=str(error))
            await self._give_back(lease, AWAY_PAUSE_US)
        except asyncio.CancelledError:
            if not running.killed:
                raise
            await self._crashed(lease, account, "killed")
        except Exception as error:
            log.exception("lane crashed", account=account.name)
            failed = error if isinstance(error, LaneFailed) else LaneFailed(error)
            await self._crashed(lease, account, str(failed), failed.run_id)
        finally:
            self._running.pop(account.id, None)
            self._observer.lanes_running(len(self._running))
            # Whoever rests until after the next look need not be looked for now.
            full = len(self._running) + 1 >= self._options.max_lanes
            if full or lane.parked_us < self._options.poll_us:
                self._nudge.set()

    async def _close(self, driver: LazyDriver, account: Account) -> None:
        """Let go of the account at the provider. That this fails does not make the lane fail."""
        try:
            await within_time(driver.close(), CLOSE_WITHIN_US)
        except Exception as error:
            log.warning("driver did not close", account=account.name, error=repr(error))

    async def _crashed(
        self, lease: Lease, account: Account, reason: str, run_id: int | None = None
    ) -> None:
        """Pause longer after each crash; after too many, let a person look at what is to blame."""
        self._observer.lane_crashed(account.name)
        now = self._clock.now()
        pause = self._crashes.note(account.id, Crash(now, run_id))
        log.warning("lane is given back", account=account.name, **pause._asdict())
        await self._insist(lambda tx: give_back_crashed(tx, lease, account, pause, reason, now))

    async def _give_back(self, lease: Lease, pause_us: int) -> None:
        await self._insist(lambda tx: tx.lanes.release(lease, tx.now + pause_us))

    async def _insist(self, work: Work[object]) -> None:
        """Write it however long the store is away: a lane nobody runs must not stay ours."""
        while True:
            try:
                await self._journal.write(work, alone=True)
                return
            except StoreError as error:
                log.warning("store failed, trying again", error=str(error))
                await self._clock.sleep(self._options.poll_us)

    async def _watch(self) -> None:
        """Restart lanes that are stuck, and keep the house."""
        now_us = self._clock.monotonic_us()
        # While the whole process stood still no lane could make a step: that is not its fault.
        stood_us = max(0, now_us - self._watched_us - WATCH_EVERY_US)
        self._watched_us = now_us
        for running in list(self._running.values()):
            lane = running.lane
            idle_us = now_us - lane.stepped_us - stood_us
            if not lane.waiting and idle_us > lane.patience_us and running.kill():
                log.error("lane is stuck, restarting it", account=running.account.name)
        await self._house.look(self._clock.now())

    # ------------------------------------------------------------------ stopping

    async def _wind_down(self) -> None:
        """Let what has started settle, within the grace period; then hand everything back."""
        lanes = {running.ended for running in self._running.values()}
        if lanes:
            log.info("stopping", lanes=len(lanes))
            _, late = await asyncio.wait(lanes, timeout=self._options.grace_us / SECOND)
            for lane in late:
                lane.cancel()
            if late:
                log.warning("gave up waiting for messages under way", lanes=len(late))
                await asyncio.gather(*late, return_exceptions=True)
        if self._lease.joined:
            await self._leave()

    async def _leave(self) -> None:
        """Hand the lanes back; a lease's length later others have taken them over anyway."""
        try:
            async with asyncio.timeout(LEASE_US / SECOND):
                await self._lease.leave()
        except (StoreError, TimeoutError) as error:
            log.warning("could not hand back the lanes", error=str(error) or "no answer")
