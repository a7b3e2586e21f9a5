"""The supervisor: takes lanes that are due, starts them, and looks after them until they end.

One per process that runs lanes. It wakes lanes that others touched, restarts lanes that crashed
with growing pauses, suspends an account whose lane keeps crashing, and on a stop lets every started
message settle before it hands the lanes back. In a worker it does so for some accounts only, and
ends when there is nothing to do for them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from paceline.core.errors import NotFoundError, ProviderError, ProviderRefused, StoreError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.names import Names
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.engine import taking
from paceline.engine.away import AwayBook, give_back_away
from paceline.engine.chance import Draws
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
from paceline.engine.hearing import Hearing, listens
from paceline.engine.lane import Lane
from paceline.engine.lane_names import lane_name
from paceline.engine.memory import Snapshot
from paceline.engine.naming import seals_of
from paceline.engine.observe import Observer
from paceline.engine.ports import Account, Clock, Journal, LaneRow, Lease, Providers, Tx
from paceline.engine.running import Running
from paceline.engine.starts import FIRE_CONCURRENCY, Starts
from paceline.engine.station import Found, Station, StationOptions
from paceline.engine.taking import Taken
from paceline.engine.unsubscribing import Links, ensure_links

log = structlog.get_logger("paceline.supervisor")

CLOSE_WITHIN_US = 10 * SECOND


@dataclass(frozen=True, slots=True)
class SupervisorOptions(StationOptions):
    """What an operator may tune about a process that runs lanes."""

    park_after_us: int = 2 * MINUTE
    fire_concurrency: int = FIRE_CONCURRENCY
    words: OptOut = DEFAULT
    """Those by which people opt out."""
    rest_us: int | None = None
    """With nothing to do for so long, before and ahead, the process ends; None is never."""


class Supervisor(Station):
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
        crashes: CrashBook | None = None,
    ) -> None:
        super().__init__(journal, clock, providers, options)
        self._observer = observer
        self._seed = rng.getrandbits(64)
        self._options = options
        self._context: LaneContext
        self._names: tuple[str, Links | None, Names | None]
        """What the installation is called, how links are made here, and how keys are sealed."""
        self._running: dict[int, Running] = {}
        self._crashes = CrashBook() if crashes is None else crashes
        self._away = AwayBook()
        self._busy_us = 0
        self._wakes_us: int | None = None
        """When a lane is due next, as far as the last look has shown; before now where some were
        due by then, for then others are soon."""

    @property
    def _held(self) -> Collection[int]:
        return self._running

    def stop(self) -> None:
        """Start nothing more; ``run`` returns when every lane has ended."""
        super().stop()
        for running in self._running.values():
            running.lane.stop()

    def kill(self, account: str) -> bool:
        """End a lane at once, wherever it is, as a crash would: nothing is settled."""
        for running in self._running.values():
            if running.account.name == account:
                return running.kill()
        return False

    def _under_way(self) -> Sequence[asyncio.Future[Any]]:
        return [running.ended for running in self._running.values()]

    def _clock_was_set(self) -> None:
        for running in self._running.values():
            running.lane.touch()

    async def _join(self) -> None:
        await super()._join()
        instance, links, seals = self._names
        self._busy_us = self._clock.monotonic_us()
        self._context = LaneContext(
            journal=self._journal,
            clock=self._clock,
            lease=self._lease,
            observer=self._observer,
            instance=instance,
            park_after_us=self._options.park_after_us,
            starts=Starts(self._options.fire_concurrency),
            links=links,
            seals=seals,
            alone=lambda: len(self._running) == 1,
        )

    def _first_look(self, tx: Tx) -> bool:
        self._names = str(tx.settings.get("instance")), ensure_links(tx), seals_of(tx)
        return super()._first_look(tx)

    # ------------------------------------------------------------------ finding work

    async def _find(self) -> Found:
        """See what is due, and take it at once where something is expected to be, and has room."""
        expects = self._wakes_us is not None and self._clock.monotonic_us() >= self._wakes_us
        if not expects or self._room() <= 0:
            return await super()._find()
        found, taken = await self._taking.look_and_take(
            self._look, self._free_among, self._clock.now
        )
        for one in taken:
            await self._start_or_suspend(one)
        ours = {one.row.account_id for one in taken}
        return found._replace(due=[row for row in found.due if row.account_id not in ours])

    def _free_among(self, found: Found) -> list[int]:
        """Those that may be started here; asked within the transaction, on whatever thread."""
        free = [
            row.account_id
            for row in found.due
            if row.account_id not in self._running and row.owner != self._lease.process_id
        ]
        return free[: max(0, self._room())]

    def _room(self) -> int:
        """How many lanes more may be run here."""
        return self._options.max_lanes - len(self._running)

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
            room = min(self._room(), taking.TAKE_AT_ONCE)
            if room <= 0:
                return
            for taken in await self._taking.take_up(free[:room], self._clock.now):
                await self._start_or_suspend(taken)
            del free[:room]

    async def _start_or_suspend(self, taken: Taken) -> None:
        row, account = taken.row, taken.account
        try:
            self._start(row, account, taken.snapshot)
        except NotFoundError as error:  # a driver that this installation does not have
            reason = str(error)
            lease = Lease(account.id, self._lease.process_id, row.generation)
            await self._insist(lambda tx: suspend(tx, lease, account, reason, self._clock.now()))

    def _start(self, row: LaneRow, account: Account, snapshot: Snapshot | None) -> None:
        # Seeded by what identifies this start, so that a simulated world draws the same gaps
        # whatever order its lanes are started in.
        rng = Draws(f"{self._seed}/{account.id}/{row.generation}")
        driver = LazyDriver(self._providers, account)
        lane = Lane(
            self._context,
            row,
            account.name,
            driver,
            rng,
            partial(listens, self._providers),
            snapshot=snapshot,
        )
        lease = Lease(account.id, self._lease.process_id, row.generation)
        looking_after = self._look_after(lane, driver, lease, account)
        # Whoever finds that nothing moves any more knows by the name whose lane it is.
        ended = asyncio.get_running_loop().create_task(looking_after, name=lane_name(account.name))
        self._running[account.id] = Running(account, lane, ended)
        self._busy_us = self._clock.monotonic_us()
        if len(self._running) == 1:  # whoever has lanes already renews in a moment anyway
            self._took.set()
        self._observer.lanes_running(len(self._running))
        if self._stop.is_set():  # it was being taken when the stop came
            lane.stop()

    # ------------------------------------------------------------------ looking after

    async def _look_after(
        self, lane: Lane, driver: LazyDriver, lease: Lease, account: Account
    ) -> None:
        """A lane from its start to its end, however it ends."""
        running, lost = self._running[account.id], False
        try:
            hearing = self._hear(driver, account)
            try:
                lost = await lane.run() == "lost"
            finally:
                running.over = True
                if driver.is_open:
                    self._away.opened(account.id)
                if hearing is not None:
                    hearing.cancel()
                    await asyncio.gather(hearing, return_exceptions=True)
                await self._close(driver, account)
        except ProviderRefused as error:
            reason = _of(account, error)
            await self._insist(lambda tx: suspend(tx, lease, account, reason, self._clock.now()))
        except ProviderError as error:
            log.warning("lane could not go on", account=account.name, error=str(error))
            reason = _of(account, error)
            away = partial(give_back_away, reason=reason, times=self._away.note(account.id))
            now = self._clock.now()
            await self._insist(lambda tx: away(tx, lease, account, now=now))
        except StoreError as error:
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
            if lost:  # not before: nobody doubts a lane that seems to be run
                self._taking.doubt(account.id)
            self._observer.lanes_running(len(self._running))
            # Whoever rests until after the next look need not be looked for now.
            full = len(self._running) + 1 >= self._options.max_lanes
            if full or lane.parked_us < self._options.poll_us:
                self._nudge.set()

    def _hear(self, driver: LazyDriver, account: Account) -> asyncio.Task[None] | None:
        """Listen beside the lane, where there is something to listen to."""
        if not hasattr(self._providers.get(account.provider), "listens"):
            return None
        hearing = Hearing(
            self._journal, self._clock, self._providers, driver, account, self._options.words
        )
        return asyncio.create_task(hearing.run(), name=f"hearing {account.name}")

    async def _close(self, driver: LazyDriver, account: Account) -> None:
        """Let go of the account at the provider. That this fails does not make the lane fail."""
        if not driver.is_open:
            return
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

    def _look_over(self, now_us: int, stood_us: int) -> None:
        """Restart lanes that are stuck."""
        for running in list(self._running.values()):
            lane = running.lane
            at_it_us = lane.busy_us(now_us) - stood_us
            if at_it_us > lane.patience_us and running.kill():
                log.error("lane is stuck, restarting it", account=running.account.name)

    # ------------------------------------------------------------------ stopping

    async def _let_end(self) -> None:
        """Let what has started settle, within the grace period; then hand everything back."""
        lanes = {running.ended for running in self._running.values()}
        if not lanes:
            return
        log.info("stopping", lanes=len(lanes))
        _, late = await asyncio.wait(lanes, timeout=self._options.grace_us / SECOND)
        for lane in late:
            lane.cancel()
        if late:
            log.warning("gave up waiting for messages under way", lanes=len(late))
            await asyncio.gather(*late, return_exceptions=True)

    def _looked(self, next_wake_at: Instant | None, now: Instant) -> None:
        """A worker with nothing to do ends: an idle account costs nothing then."""
        wakes_us = None if next_wake_at is None else max(0, next_wake_at - now)
        self._wakes_us = None if wakes_us is None else self._clock.monotonic_us() + wakes_us
        rest_us, now_us = self._options.rest_us, self._clock.monotonic_us()
        if self._running:
            self._busy_us = now_us
        if rest_us is None or now_us - self._busy_us < rest_us:
            return
        if next_wake_at is None or next_wake_at - now >= rest_us:
            log.info("nothing to do, ending")
            self.stop()


def _of(account: Account, error: ProviderError) -> str:
    """Why it cannot be opened; whoever is told of it is told of whom."""
    return str(error).removeprefix(f"{account.name}: ")
