"""Sending: from a delivery that may go to an outcome that has landed.

Prepares a part, has its intent committed, and has the provider called (``calls.py``). Calls may run
beside each other; what they come to is kept in ``landings.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from paceline.core import outcome as outcomes
from paceline.core import usage as usages
from paceline.core.durations import Chance
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome
from paceline.core.recounting import uncounted
from paceline.core.states import AccountState
from paceline.core.usage import Usage
from paceline.engine import lane_writes
from paceline.engine.calls import Calls
from paceline.engine.clock import ClockSteps
from paceline.engine.context import LaneContext
from paceline.engine.drivers import LazyDriver
from paceline.engine.landings import Landings
from paceline.engine.lane_names import acting_for, on_whose_behalf
from paceline.engine.late import ASK_AGAIN_US, NOT_ENDED
from paceline.engine.lookahead import Lookahead
from paceline.engine.memory import LaneMemory
from paceline.engine.outbox import Outbox
from paceline.engine.ports import LaneUnit, Lease, Message
from paceline.engine.preparing import Desk
from paceline.engine.settling import Flight

log = structlog.get_logger("paceline.lane")


class Sender:
    """The flights of one lane."""

    def __init__(
        self,
        context: LaneContext,
        memory: LaneMemory,
        outbox: Outbox,
        lease: Lease,
        *,
        driver: LazyDriver,
        rng: Chance,
        landed: Callable[[], None],
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._memory = memory
        self._outbox = outbox
        self._driver = driver
        self._lease = lease
        self._rng = rng
        self._tell_landed = landed
        self._desk = Desk(memory.account, driver, context, lease)
        self._flights: dict[int, Flight] = {}
        self._steps = ClockSteps(context.clock)
        self._times_set = self._times_known = 0
        """How often the clock was set, as far as that was followed; and when the step began."""
        self._moved_us = 0
        """By how much in all."""
        self._at_provider = Calls(
            context,
            memory,
            lease,
            driver,
            follow_the_clock=self.follow_the_clock,
            late_ended=self._late_ended,
        )
        self._landings = Landings(
            memory, outbox, driver, self._flights, forget=self._desk.handles.forget, rng=rng
        )
        self._name = on_whose_behalf()
        self._calls: set[asyncio.Task[None]] = set()
        """Those that are made beside each other."""
        self._lookahead = Lookahead(
            memory,
            context.clock,
            self._at_provider,
            land=self._land,
            beside=self._begin_beside,
            name=self._name,
        )

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def flying(self) -> frozenset[int]:
        return frozenset(self._flights)

    @property
    def unsent_parts(self) -> int:
        """Parts of started deliveries that have no intent yet: room must be kept for them."""
        flights = self._flights
        return sum([flight.unsent_parts for flight in flights.values()]) if flights else 0

    @property
    def under_way(self) -> bool:
        """Whether an answer is awaited, or has to be taken up."""
        return bool(self._calls or self._landings.waiting or self._lookahead.is_out)

    @property
    def out_since_us(self) -> int | None:
        """Since when a call is out for which nobody waits."""
        return self._lookahead.out_since_us

    @property
    def room(self) -> int:
        """For how many deliveries more an intent may be written now."""
        most = self._memory.policy.concurrency + self._lookahead.room
        return most - len(self._flights)

    def writes_to(self, target: str) -> bool:
        return any(flight.delivery.target == target for flight in self._flights.values())

    def serves(self, run_id: int) -> bool:
        return any(flight.delivery.run_id == run_id for flight in self._flights.values())

    @property
    def kept_until_at(self) -> Instant:
        """Until when the lane should not be parked, because a call that was given up may answer."""
        return self._context.late.kept_until_at(self._lease)

    async def clean_up(self) -> None:
        """Nothing is under way any more, and the lane is about to be given back."""
        await self._desk.handles.clean_up()
        context = self._context
        await context.late.hold_back(self._lease, context.journal, context.clock)

    def follow_the_clock(self) -> tuple[Instant, int]:
        """What it says, and the one that nobody sets. Looked at before any instant is noted down:
        those of before may belong to another clock."""
        now, us, by_us = self._steps.look()
        if by_us:
            self._times_set += 1
            self._moved_us += by_us
            self._memory.usage = usages.moved_with_the_clock(self._memory.usage, by_us)
            self._landings.clock_was_set(by_us)
            self._outbox.clock_was_set()
        return now, us

    def begin_step(self) -> tuple[Instant, int]:
        """The same, for whoever is about to ask what may go now."""
        looked = self.follow_the_clock()
        self._times_known = self._times_set
        return looked

    @property
    def clock_was_set(self) -> bool:
        """Whether that was followed since the step began: an instant of then and the usage of now
        belong to two clocks, and what may go is to be asked anew."""
        return self._times_set != self._times_known

    def drop(self) -> None:
        """Let go of every call at once, as a crash would: nothing is settled."""
        self._at_provider.drop()
        self._lookahead.drop()
        for call in self._calls:
            call.cancel()

    # ------------------------------------------------------------------ setting out

    async def start(self, flight: Flight) -> bool:
        """Send the first part of a delivery that may go now; False if it did not set out."""
        message = await self._prepare(flight)
        if message is None:
            return False
        memory, (now, _) = self._memory, self.follow_the_clock()
        if self.clock_was_set:
            self._outbox.stale = True
            return False
        if flight.not_before_at > now:
            # It is a distance that is waited for, whatever becomes of this clock meanwhile.
            ahead_us = flight.not_before_at - now
            flight.not_before_us = self._clock.monotonic_us() + ahead_us
        usage = usages.spend(memory.usage, memory.policy, flight.ask, now, self._rng)
        if not await self._intend(flight, message, usage, now, starts=True):
            return False
        await self._launch(flight, message)
        return True

    async def continue_one(self, now: Instant) -> Instant | None:
        """Send a further part if one may go now; else say when the next one may."""
        waiting = [f for f in self._flights.values() if f.next_part_at is not None]
        if not waiting:
            return None
        flight = min(waiting, key=lambda f: f.next_part_at or 0)
        token_at = self._memory.pacer.token_at(now, self._memory.usage)
        may_at = max(flight.next_part_at or 0, token_at)
        held_us = self._memory.usage.hold_until_at - now
        out_of_service = self._memory.account.state is AccountState.SUSPENDED
        if out_of_service or held_us > self._context.park_after_us:
            # The provider wants nothing for a long time. Nobody stays on the phone that long: the
            # rest of the message waits in the queue, and the lane can be parked or stopped.
            await self._outbox.flush(self.flying)
            await self._break_off(flight, now)
            return now
        if may_at > now:
            return may_at
        message = await self._prepare(flight)
        if message is None:
            return now
        now, _ = self.follow_the_clock()
        if self.clock_was_set:
            return now
        usage = usages.spend_part(self._memory.usage, self._memory.policy, flight.ask, now)
        # Out of the list until the intent has passed: if the store fails now, the delivery is
        # one that nobody holds, and the outbox looks after those.
        del self._flights[flight.delivery.id]
        if await self._intend(flight, message, usage, now, starts=False):
            await self._launch(flight, message)
        else:
            await self._break_off(flight, now)
        return now

    async def _break_off(self, flight: Flight, now: Instant) -> None:
        """Let a message go between two of its parts."""
        delivery, part = flight.delivery, flight.part
        self._flights.pop(delivery.id, None)
        await self._context.journal.write(
            lambda tx: lane_writes.break_off(tx, self._lease, delivery, part, now)
        )
        self._memory.agenda.expect(delivery.run_id, min(delivery.scheduled_at, now))

    async def _intend(
        self, flight: Flight, message: Message, usage: Usage, now: Instant, *, starts: bool
    ) -> bool:
        """Commit the intent, with whatever is unsettled; False if a guard refused it."""
        if self._landings.any_refused:
            # It came while this was prepared, and may ask for time: it is taken up first.
            self._outbox.stale = True
            return False
        # The limits may have changed since the first part: each part is sent under its own.
        flight.policy_id = self._memory.account.policy_id
        intent = flight.intent(self._memory.policy, now, starts=starts)
        before, self._memory.usage = self._memory.usage, usage
        moved_us = self._moved_us
        self._at_provider.watch_usage()
        self._landings.settle_at_once()
        flight.intent_at = now
        begins = partial(self._committing, flight, message)
        passed = False
        asked_us = self._clock.monotonic_us()
        try:
            passed = await self._outbox.submit(intent, begins)
            self._context.lead.learn(self._clock.monotonic_us() - asked_us)
        finally:
            self._landings.settle_in_step()
            if not passed:
                # Somebody paused, stopped, suppressed or changed something, or the store is away.
                # Nothing was sent, so nothing was spent; look again before deciding anything.
                before = usages.moved_with_the_clock(before, self._moved_us - moved_us)
                begun = self._at_provider.counted_since(before)
                self._memory.usage = self._landings.counted_since(begun)
                self._outbox.stale = True
        if passed:
            self._context.observer.intended(self._memory.account.name, flight.delivery.id, now)
        return passed

    def _committing(self, flight: Flight, message: Message) -> None:
        """The turn of an intent has come, and its commit takes a moment."""
        self._context.lease.note_term(flight)
        if self._driver.is_forehanded:
            # Not before the database is at work: it does not wait for us then, but we for it.
            asyncio.get_running_loop().call_soon(acting_for, self._name, self._ready, message)

    def _ready(self, message: Message) -> None:
        """What can be done for this call before it is made; and for the next, where that follows
        at once."""
        self._driver.make_ready(message)
        if self._memory.policy.paced:
            return
        following = self._memory.agenda.next_up
        if following is not None:
            self._desk.foresee(*following)

    async def _launch(self, flight: Flight, message: Message) -> None:
        """The last look before the effect, then the call itself."""
        self._flights[flight.delivery.id] = flight
        flight.next_part_at = None
        flight.started_at = None
        alone = self._memory.policy.concurrency == 1
        landings = self._landings
        if alone and (landings.waiting or self._lookahead.is_out):
            reason = await self._lookahead.turn(lambda: landings.waiting)
            if reason is not None:
                self._land(flight, outcomes.withdrawn(reason))
                return
        us, now = self._clock.monotonic_us(), self._clock.now()
        if us < flight.not_before_us or not self._context.lease.safe_at(us, now):
            await self._context.lease.until_safe(flight.not_before_us)
        if not alone:
            # Nothing is decided before it is known from when this one counts.
            await self._begin_beside(flight, message)
        elif not self._lookahead.set_off(flight, message):
            self._land(flight, await self._at_provider.call(flight, message))

    def _begin_beside(self, flight: Flight, message: Message) -> asyncio.Future[None]:
        """Have the provider called in a task of its own; done when it has begun."""
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()
        beside = self._call_beside(flight, message, begun)
        # One that is begun by an answer is begun by no task, and still on somebody's behalf.
        call = loop.create_task(beside, name=self._name)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return begun

    async def _call_beside(
        self, flight: Flight, message: Message, begun: asyncio.Future[None]
    ) -> None:
        self._land(flight, await self._at_provider.call(flight, message, begun))

    def _late_ended(self) -> None:
        self._outbox.stale = True
        self._tell_landed()

    def _land(self, flight: Flight, outcome: Outcome) -> None:
        # By a clock that has not been followed yet it would be moved along with those of before.
        at, _ = self.follow_the_clock()
        self._landings.add(flight, outcome, at)
        self._lookahead.landed(flight, at)
        self._tell_landed()

    def take_up(self) -> None:
        """Settle what has landed since the last step."""
        self._landings.take_up()

    async def _prepare(self, flight: Flight) -> Message | None:
        """The rendered part with its media uploaded; None if the delivery cannot go now."""
        desk, foreseen = self._desk, self._desk.foreseen(flight)
        key = foreseen.key if foreseen else self._context.key(flight.delivery.id, flight.part)
        if self._context.late.lives(key):
            await self._step_aside(flight)
            return None
        answer: Message | Outcome | None = foreseen or desk.at_once(flight, key)
        if answer is None:
            answer = await desk.prepare(flight, key, self._memory.policy.timeout_us)
        if isinstance(answer, Outcome):
            await self._abandon(flight, answer)
            return None
        return answer

    async def _step_aside(self, flight: Flight) -> None:
        """An earlier call may still deliver the very same: nobody sends it a second time."""
        await self._outbox.flush(self.flying)
        delivery, now = flight.delivery, self._clock.now()
        due_at = now + ASK_AGAIN_US
        self._flights.pop(delivery.id, None)
        work = partial(lane_writes.put_off, delivery_id=delivery.id, due_at=due_at, at=now)
        await self._context.journal.write(
            lane_writes.held(self._lease, partial(work, reason=NOT_ENDED))
        )
        self._memory.agenda.expect(delivery.run_id, due_at)

    async def _abandon(self, flight: Flight, outcome: Outcome) -> None:
        """A delivery that failed before its intent: moved on without a ledger row."""
        await self._outbox.flush(self.flying)
        memory, now = self._memory, self._clock.now()
        settled = self._landings.settled(flight, outcome, now)
        memory.usage = uncounted(settled.usage, memory.usage)
        self._flights.pop(flight.delivery.id, None)
        unit = LaneUnit(self._lease, memory.revision, memory.checkpoint())
        account = memory.account
        await self._context.journal.write(
            lambda tx: lane_writes.abandon(tx, unit, settled, account, now),
            alone=not settled.aftermath.empty,
        )
        log.info(
            "could not prepare",
            account=account.name,
            run=flight.delivery.run_id,
            delivery=flight.delivery.id,
            reason=settled.settlement.reason,
        )
        if settled.settlement.due_at is not None:
            memory.agenda.expect(flight.delivery.run_id, settled.settlement.due_at)
        if not settled.aftermath.empty:
            self._outbox.stale = True
