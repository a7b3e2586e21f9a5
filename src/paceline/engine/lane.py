"""The lane: the one serial path through which an account sends.

It decides one thing at a time. Ask the pacer; commit the intent; call the provider; settle. Up to
``concurrency`` calls may be under way together, but every decision is made here, in order, after
the one before it is known, so no two sends can spend the same token.

``run`` loops over bounded steps; a step says when to come back, and only the loop waits. A lane
with nothing to do for a while is parked: given back, forgotten, and woken by the store; unless its
account has to be open to hear what comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import structlog

from paceline.core.durations import Chance
from paceline.core.errors import LeaseLost, StoreUnavailable
from paceline.core.gates import NEVER
from paceline.core.instants import MINUTE, SECOND, Instant, earlier
from paceline.core.states import AccountState
from paceline.core.usage import Usage
from paceline.engine import lane_writes, recovery
from paceline.engine.chooser import Chooser
from paceline.engine.context import LaneContext
from paceline.engine.drivers import LazyDriver
from paceline.engine.memory import LaneMemory, Snapshot, Stranded, read_ahead, take_snapshot
from paceline.engine.outbox import Outbox
from paceline.engine.parking import Rest
from paceline.engine.ports import Account, LaneRow, Lease, Tx
from paceline.engine.sender import Sender
from paceline.engine.used_up import used_up
from paceline.engine.wakeup import Wakeup

LaneEnd = Literal["parked", "stopped", "lost"]

STORE_RETRY_US = SECOND
LEASE_RETRY_US = SECOND
PARK_RETRY_US = SECOND
PARKS_AT_ONCE = 3
STUCK_AFTER_US = 5 * MINUTE

PASSING = (AccountState.LIMIT_REACHED, AccountState.COOLING_DOWN)
"""States of an account that end by themselves."""

log = structlog.get_logger("paceline.lane")


class Lane:
    """One account's sending, from taking the lane to giving it back."""

    def __init__(
        self,
        context: LaneContext,
        row: LaneRow,
        name: str,
        driver: LazyDriver,
        rng: Chance,
        stays: Callable[[Account], bool] = lambda account: False,
        *,
        snapshot: Snapshot | None = None,
    ) -> None:
        """``stays``: whether an account is open at all times, so that its lane is not parked.
        ``snapshot`` was taken along with the lane; without it the lane looks by itself."""
        self._stays = stays
        self._given = snapshot
        self._context = context
        self._journal = context.journal
        self._clock = context.clock
        self._rng = rng
        self._driver = driver
        self._lease = Lease(row.account_id, context.lease.process_id, row.generation)
        self._name = name
        self._memory: LaneMemory
        self._outbox: Outbox
        self._sender: Sender | None = None
        self._chooser: Chooser
        self._signal = Wakeup()
        self._touched = False
        self._stopping = False
        self._refused_parks = 0
        self._stepped_us = context.clock.monotonic_us()
        """When the last step began."""
        self._waiting = False
        self.parked_us = 0
        """For how long it was parked; 0 as long as it is not."""
        self._timeout_us = 0

    def busy_us(self, now_us: int) -> int:
        """For how long it has been at one thing, for whoever looks for stuck lanes. A lane that
        waits is at nothing, unless it waits for an answer: for that it has a time of its own."""
        sender = self._sender
        called_us = None if sender is None else sender.out_since_us
        since_us = called_us if self._waiting else earlier(self._stepped_us, called_us)
        return 0 if since_us is None else now_us - since_us

    @property
    def patience_us(self) -> int:
        """How long one step may take, or a call, before the lane counts as stuck."""
        # Opening the account, an upload and a send may all fall into one step.
        return max(STUCK_AFTER_US, 3 * self._timeout_us + MINUTE)

    # ------------------------------------------------------------------ said from outside

    def touch(self) -> None:
        """Something changed in the store: look again before the next message."""
        self._touched = True
        self._signal.set()

    def stop(self) -> None:
        """Finish what has started, then give the lane back."""
        self._stopping = True
        self._signal.set()

    # ------------------------------------------------------------------ the loop

    async def run(self) -> LaneEnd:
        try:
            sender = await self._begin()
            while True:
                self._signal.clear()
                self._stepped_us = self._clock.monotonic_us()
                try:
                    wake_at = await self._step(sender)
                except StoreUnavailable as error:
                    wake_at = self._after_failure(error)
                if isinstance(wake_at, str):
                    return wake_at
                if not self._signal.is_set():
                    await self._wait(wake_at)
        except LeaseLost as error:
            log.warning("lane lost", account=self._name, reason=str(error))
            await self._let_land()
            return "lost"
        finally:
            # Calls still under way belong to deliveries that stay in doubt, as after a crash:
            # whoever takes the lane next finds out what became of them.
            if self._sender is not None:
                self._sender.drop()

    async def _let_land(self) -> None:
        """What is with the provider lands and is told, though the lane is another's by now, and
        however long the store is away."""
        while self._sender is not None:
            self._signal.clear()
            self._sender.take_up()
            wake_at: Instant | None = None
            try:
                await self._outbox.report_late()
            except StoreUnavailable as error:
                if self._stopping:
                    raise
                wake_at = self._after_failure(error)
            if wake_at is None and not self._sender.under_way:
                return
            await self._wait(wake_at)

    async def _begin(self) -> Sender:
        snapshot, self._given = self._given or await self._snapshot(), None
        snapshot = await recovery.take_stock(
            self._context, snapshot, self._lease, self._driver.capabilities
        )
        self._memory = LaneMemory(snapshot, self._journal, self._context.claims)
        self._timeout_us = snapshot.policy.timeout_us
        self._outbox = Outbox(self._context, self._memory, self._lease)
        self._sender = Sender(
            self._context,
            self._memory,
            self._outbox,
            self._lease,
            driver=self._driver,
            rng=self._rng,
            landed=self._signal.set,
        )
        self._chooser = Chooser(
            self._context,
            self._memory,
            self._outbox,
            self._lease,
            sender=self._sender,
            driver=self._driver,
        )
        await self._reopen_account()
        log.debug("lane started", account=self._name, generation=self._lease.generation)
        return self._sender

    async def _wait(self, wake_at: Instant | None) -> None:
        """The one place where a lane sleeps: until an instant, or until somebody signals."""
        if wake_at is not None and wake_at <= self._clock.now():
            return
        self._waiting = True
        alarm = None if wake_at is None else self._clock.alarm(wake_at, self._signal.set)
        try:
            await self._signal.wait()
        finally:
            if alarm is not None:
                alarm.cancel()
            self._waiting = False

    def _after_failure(self, error: StoreUnavailable) -> Instant:
        """Keep every outcome, send nothing, and try again until the database is back."""
        self._outbox.doubt()
        log.warning("store unavailable, waiting", account=self._name, error=str(error))
        return self._clock.now() + STORE_RETRY_US

    async def _step(self, sender: Sender) -> Instant | LaneEnd | None:
        """Do the next thing; answer when to come back, or how the lane ended."""
        now, us = sender.begin_step()
        sender.take_up()
        if self._outbox.urgent and not self._outbox.stale:
            await self._outbox.flush(sender.flying)
            now, us = sender.begin_step()
        if self._touched or self._outbox.stale or now >= self._memory.recount_at:
            await self._refresh(sender)
            now, us = sender.begin_step()
        if not self._context.lease.safe_at(us, now):
            await self._outbox.flush(sender.flying)
            return now + LEASE_RETRY_US
        part_at = await sender.continue_one(now) if len(sender) else None
        if part_at is not None and part_at <= now:
            return now
        start_at: Instant | None = None
        if not self._stopping and sender.room > 0:
            start_at = await self._chooser.start_next(now)
            if start_at is not None and start_at <= now:
                self._refused_parks = 0
                return now
        wake_at = earlier(part_at, start_at)
        if not self._goes(sender, now, wake_at):
            await self._outbox.flush(sender.flying)
        return await self._rest(sender, now, wake_at)

    def _goes(self, sender: Sender, now: Instant, wake_at: Instant | None) -> bool:
        """Whether there is nothing left but to park: then what waits is written along with that."""
        if wake_at is not None and wake_at - now <= self._context.park_after_us:
            return False
        busy = len(sender) or self._stopping or self._touched
        if busy or self._outbox.stale or self._outbox.urgent:
            return False
        # What was given up and lives on is held back once it is written down as in doubt.
        given_up = self._context.late.of(self._lease)
        return not given_up and not self._stays(self._memory.account)

    async def _rest(
        self, sender: Sender, now: Instant, wake_at: Instant | None
    ) -> Instant | LaneEnd | None:
        """Nothing may go now: wait, park, or end."""
        if self._touched or self._outbox.stale or self._outbox.urgent:
            return now
        if len(sender):
            return wake_at
        if self._stopping:
            return await self._end()
        if wake_at is None or wake_at - now > self._context.park_after_us:
            if sender.kept_until_at > now:
                return earlier(wake_at, sender.kept_until_at)
            if self._stays(self._memory.account):
                return self._when_to_look(wake_at)
            return await self._park(wake_at)
        return wake_at

    def _when_to_look(self, wake_at: Instant | None) -> Instant | None:
        """Even if nothing is left to send, somebody must take the label off in time."""
        account = self._memory.account
        return earlier(wake_at, account.state_until_at) if account.state in PASSING else wake_at

    # ------------------------------------------------------------------ coming and going

    async def _snapshot(self) -> Snapshot:
        now = self._clock.now()
        return await self._journal.read(lambda tx: self._seen(tx, now, None))

    def _seen(self, tx: Tx, now: Instant, known: Usage | None) -> Snapshot:
        snapshot = read_ahead(tx, take_snapshot(tx, self._lease.account_id, now, known=known))
        row = snapshot.row
        if (row.generation, row.owner) != (self._lease.generation, self._lease.process_id):
            raise LeaseLost("another process owns this lane now")
        return snapshot

    async def _seen_anew(self, sender: Sender) -> Snapshot:
        """How everything stands, once nothing is left over of which we have not heard.

        Mostly there is nothing, and that is found out in the same visit. What is taken back gives
        its slot back, so where there is something all is read once more after it; and more may have
        come to light by then.
        """
        left_over, snapshot = await self._look_over(sender)
        while left_over:
            await recovery.give_back(self._context, self._memory, self._lease, left_over)
            left_over, snapshot = await self._look_over(sender)
        self._outbox.is_certain()
        return snapshot

    async def _quietly_seen(self, sender: Sender) -> Snapshot:
        """The same, with nothing left that would wake the lane for it."""
        snapshot = await self._seen_anew(sender)
        if snapshot.row.wake_at is not None:
            await self._journal.write(lambda tx: tx.lanes.quiet(self._lease, snapshot.row.revision))
        return snapshot

    async def _look_over(self, sender: Sender) -> tuple[Stranded, Snapshot]:
        # The clock may have been set since the step began. What lies ahead of it then would be
        # taken for the work of a wrong clock and moved back, and once more by the next step.
        now, _ = sender.begin_step()
        lease, flying, known = self._lease, sender.flying, self._memory.usage
        return await self._journal.read(
            lambda tx: (recovery.left_over(tx, lease, flying), self._seen(tx, now, known))
        )

    async def _refresh(self, sender: Sender) -> None:
        """Read the account, its runs and its counts again; what the bucket knows stays."""
        await self._outbox.hand_over()
        self._touched = False
        self._outbox.stale = False
        snapshot = await self._quietly_seen(sender)
        while sender.clock_was_set:  # by a call that began meanwhile: this is of another clock
            snapshot = await self._quietly_seen(sender)
        memory = self._memory
        runs, served = memory.agenda.run_ids, memory.agenda.order()
        memory.refresh(snapshot, self._journal, known=memory.usage, served=served)
        # What was the last of a run is no longer on the agenda that was read just now.
        await self._chooser.end_runs(runs - memory.agenda.run_ids)
        self._timeout_us = snapshot.policy.timeout_us
        if not self._driver.suits(memory.account):
            # Another address or other credentials: a new lane begins with them in a moment.
            self.stop()
        await self._reopen_account()

    async def _reopen_account(self) -> None:
        """A cool-down or a reached limit whose time is over ends here, before the next message."""
        account, now = self._memory.account, self._clock.now()
        until_at = account.state_until_at
        if account.state not in PASSING:
            return
        if until_at is None and account.state is AccountState.COOLING_DOWN:
            return
        if until_at is not None and until_at > now:
            return
        await self._journal.write(lambda tx: lane_writes.reopen(tx, account.id, now))
        self._outbox.stale = True

    async def _end(self) -> LaneEnd:
        await recovery.take_back(self._context, self._memory, self._lease, frozenset())
        if self._sender is not None:
            await self._sender.clean_up()
        await self._journal.write(lambda tx: tx.lanes.release(self._lease))
        self._outbox.summarise()
        return "stopped"

    async def _park(self, wake_at: Instant | None) -> Instant | LaneEnd | None:
        waiting_for, lease = self._memory.waiting_for, self._context.lease
        cap = await used_up(self._journal, self._memory, self._clock.now())
        wake_at = earlier(self._when_to_look(wake_at), None if cap is None else cap.until_at)
        if self._sender is not None:
            await self._sender.clean_up()
        delay_us = None if wake_at is None else max(0, wake_at - self._clock.now())
        asked, renews = lease.ask(), self._context.alone() or lease.aging
        done = await self._outbox.park(Rest(delay_us, self._memory.account, cap, renews))
        if done.renewed is not None:
            lease.renewed_along(asked, done.renewed)
        if not done.parked:
            # Somebody touched the lane, or something of it is stranded: look again, but never in a
            # circle that takes no time.
            self._touched = True
            self._refused_parks += 1
            again = self._refused_parks > PARKS_AT_ONCE
            return self._clock.now() + (PARK_RETRY_US if again else 0)
        self.parked_us = NEVER if delay_us is None else delay_us
        self._outbox.summarise()
        wait = waiting_for or cap
        why = wait.why if wait is not None else "nothing due"
        log.debug("lane parked", account=self._name, wake_at=wake_at, why=why)
        return "parked"
