"""Choosing: which delivery of an account goes next, and what becomes of those that cannot go.

Goes through the runs in turn and does one thing: starts a delivery, skips one, looks into a doubt.
When to come back is answered to the lane; nothing here waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from paceline.core.errors import PacelineError, ProviderError
from paceline.core.instants import DAY, MILLISECOND, SECOND, Instant, earlier
from paceline.core.model import Ask, Go, Refuse, Wait
from paceline.core.pacer import HORIZON, PACE_GATES
from paceline.core.states import AccountState, DeliveryState, RunState
from paceline.core.stubborn import elsewhere
from paceline.engine import lane_writes, recovery
from paceline.engine.agenda import reserving
from paceline.engine.context import LaneContext
from paceline.engine.crashes import LaneFailed
from paceline.engine.drivers import LazyDriver
from paceline.engine.lookahead import NO_YES
from paceline.engine.memory import LaneMemory
from paceline.engine.outbox import Outbox
from paceline.engine.pacing import HeadStart
from paceline.engine.pooling import bring_forward
from paceline.engine.ports import Account, Delivery, Lease, Tx, Work
from paceline.engine.run_queue import RunQueue
from paceline.engine.sender import Sender
from paceline.engine.settling import Flight
from paceline.engine.shut_out import ShutOut

T = TypeVar("T")

SOON_US = MILLISECOND
"""When a lane looks again that has found nothing to do, at the soonest: longer than a look takes,
so that others have their turn meanwhile."""
REFUSED_PAUSE_US = SECOND

GO = Go()
"""Something was done: come back at once."""

SENT_OR_NONE = (None, DeliveryState.SENT)
"""What the step before may be for the next one to follow it."""

STARTING_US = SECOND // 4
"""When to look again whether there is room to start a firing."""

NEVER_HERE_US = DAY
"""When to look again at a pool of which nothing can ever go from here: limits may change."""

log = structlog.get_logger("paceline.lane")


class Chooser:
    """One lane's choice of what to do next."""

    def __init__(
        self,
        context: LaneContext,
        memory: LaneMemory,
        outbox: Outbox,
        lease: Lease,
        *,
        sender: Sender,
        driver: LazyDriver,
    ) -> None:
        self._context = context
        self._journal = context.journal
        self._clock = context.clock
        self._memory = memory
        self._outbox = outbox
        self._lease = lease
        self._sender = sender
        self._driver = driver
        self._shut_out = ShutOut(context, memory, outbox, lease, sender)
        self._not_before_at: Instant = 0
        self._ahead = HeadStart(context, memory)

    async def start_next(self, now: Instant) -> Instant | None:
        """Start the next delivery that may go; else the earliest instant at which one may."""
        self._memory.waiting_for = None
        if self._memory.stopped:
            return None
        if now < self._not_before_at:
            return self._not_before_at
        queues, wake_at = self._memory.agenda.awake(now, elsewhere(self._memory.usage.holds))
        in_turn = True
        for queue in queues:
            try:
                verdict = await self._serve(queue, now, in_turn=in_turn)
            except (PacelineError, LaneFailed):
                raise
            except Exception as error:
                raise LaneFailed(error, queue.run.id) from error
            if verdict is GO:
                return now
            if isinstance(verdict, Wait):
                self._memory.waiting_for = self._memory.waiting_for or verdict
                # Errors stretch the gap of one run only. Whoever slipped into it would have it
                # begin anew, and the one whose turn it is would never come to send.
                in_turn = in_turn and verdict.gate not in PACE_GATES
                # A doubt or a retry may fall due before the gate opens, and waits for no gate.
                wake_at = earlier(wake_at, queue.expected_at)
                wake_at = earlier(wake_at, self._ahead.wake_for(verdict, now))
                if queue.first is None:
                    # Those that wait for it were put off, and others of the run need not wait.
                    wake_at = earlier(wake_at, queue.next_due_at)
            else:
                wake_at = earlier(wake_at, queue.expected_at)
                wake_at = earlier(wake_at, self._ahead.wake_for_next(queue))
                await self._look_for_end(queue)
        # An instant that is past would be taken for something done, and asked about again at once.
        return None if wake_at is None else max(wake_at, now + SOON_US)

    async def _serve(self, queue: RunQueue, now: Instant, *, in_turn: bool) -> Go | Wait | None:
        """Do one thing for a run, or say what the run waits for; None if nothing is due. Nothing
        is sent of one that is not ``in_turn``.

        One thing only: between two of them the lane looks up, at its lease, at a stop, at whatever
        somebody has changed.
        """
        memory = self._memory
        if queue.must_read(now, left := elsewhere(memory.usage.holds)):
            await self._outbox.flush(self._sender.flying)
            await queue.read(now, memory.nobody_new(now), left)
        delivery = queue.first
        if delivery is None:
            return queue.waits_for(now)
        called_off = queue.run.state is RunState.CANCELLED or delivery.before not in SENT_OR_NONE
        if called_off or delivery.state is DeliveryState.UNKNOWN:
            return await self._see_to(queue, delivery)
        kept = self._kept(delivery, in_turn=in_turn)
        if kept is not None:
            return kept
        content = queue.content_of(delivery)
        ask = queue.ask(delivery, content)
        if memory.usage.holds.newcomers_until_at > now:
            ask = await self._acquainted(delivery, ask)
        needed = reserving(ask, self._sender.unsent_parts)
        verdict = memory.pacer.verdict(now, memory.usage, needed)
        not_before_at = 0
        if isinstance(verdict, Refuse):
            return await self._refuse(queue, delivery, verdict, now)
        if isinstance(verdict, Wait):
            calls_at = self._ahead.calls_at(verdict, needed, now)
            if calls_at is None:
                return await self._let_wait(queue, delivery, needed, verdict, now)
            not_before_at = calls_at
        at_limit = memory.account.state is AccountState.LIMIT_REACHED
        if at_limit or memory.policy.per_recipient is not None:
            first = await self._before(queue, delivery, now)
            if first is not None:
                return first
        attempt, part = delivery.attempts + 1, delivery.parts_done
        policy_id = memory.account.policy_id
        flight = Flight(delivery, content, ask, attempt, part, policy_id, not_before_at)
        if queue.run.kind == "reminder" and not queue.set_out:
            return await self._set_out_first(queue, flight)
        queue.pop()
        memory.agenda.served(queue)
        await self._set_out(flight)
        self._ahead.called(flight.started_at)
        return GO

    def _kept(self, delivery: Delivery, *, in_turn: bool) -> Wait | None:
        """What it waits for that comes first, whatever the pacer says."""
        if not in_turn:
            return Wait(None, "turn", "another run goes first")
        if delivery.account_id is None and self._sender.out_since_us is not None:
            # Its intent would bind it, and if that was taken back others could not have it.
            return Wait(None, "turn", NO_YES)
        return None

    async def _see_to(self, queue: RunQueue, delivery: Delivery) -> Go | Wait:
        """Something other than sending it is to be done about a delivery."""
        if delivery.state is DeliveryState.UNKNOWN:
            if self._memory.account.state is AccountState.SUSPENDED:
                # Nobody logs in anywhere for an account that was taken out of service.
                return Wait(None, "status", "account is suspended")
            await self._resolve(queue, delivery)
        elif queue.run.state is RunState.CANCELLED:
            await self._cancel(queue, delivery)
        else:
            # It had been sent when this one was released, and has bounced since.
            why = f"step {delivery.step - 1} was not delivered: it is {delivery.before}"
            await self._give_up(queue, delivery, Refuse("step", why))
        return GO

    async def _set_out_first(self, queue: RunQueue, flight: Flight) -> Go | Wait:
        """The first message of a firing from here, if there is room for one more to begin."""
        starts, account_id = self._context.starts, self._memory.account.id
        if not starts.enter(account_id):
            return Wait(self._clock.now() + STARTING_US, "start", starts.why)
        try:
            await self._begin(queue)
            queue.pop()
            self._memory.agenda.served(queue)
            await self._set_out(flight)
        finally:
            starts.leave(account_id)
        return GO

    async def _begin(self, queue: RunQueue) -> None:
        """What was waiting is under way now."""
        queue.set_out = True
        if queue.run.state is RunState.WAITING:
            run, now = queue.run, self._clock.now()
            await self._journal.write(partial(lane_writes.start_run, run=run, now=now))
            queue.run = replace(run, state=RunState.RUNNING)

    async def _refuse(
        self, queue: RunQueue, delivery: Delivery, verdict: Refuse, now: Instant
    ) -> Go | Wait:
        await self._begin(queue)
        if delivery.account_id is None and verdict.gate == HORIZON:
            # It can never go from here, which says nothing about the others of the pool.
            until_at = now + NEVER_HERE_US
            queue.put_back(until_at)
            return Wait(until_at, verdict.gate, verdict.why)
        await self._give_up(queue, delivery, verdict)
        return GO

    async def _before(self, queue: RunQueue, delivery: Delivery, now: Instant) -> Go | Wait | None:
        """What is seen to before a message goes that every gate lets go."""
        account = self._memory.account
        if account.state is AccountState.LIMIT_REACHED and not delivery.reply:
            # A cap was used up, and yet there is room for something.
            await self._write(lambda tx: lane_writes.reopen(tx, account.id, now))
            self._outbox.stale = True
            return GO
        if self._memory.policy.per_recipient is None:
            return None
        if self._sender.writes_to(delivery.target):
            return Wait(None, "frequency", "recipient is being written to")
        if delivery.reply:
            return None
        # Another campaign or account may have written to them since we looked.
        await self._outbox.flush(self._sender.flying)
        return GO if await queue.contacted_anew(delivery, now) else None

    async def _let_wait(
        self, queue: RunQueue, delivery: Delivery, needed: Ask, verdict: Wait, now: Instant
    ) -> Go | Wait:
        for_itself = self._memory.pacer.waits_alone(now, self._memory.usage, needed, verdict)
        pooled = delivery.account_id is None
        if for_itself and pooled and not needed.known:
            # A stranger to this account may be none to another one of the pool. It stays where it
            # is, and from now on only those are read whom the account knows.
            queue.pass_by()
            return GO
        if for_itself and not (pooled and verdict.gate == "signal"):
            await self._step_aside(queue, delivery, verdict)
            return GO
        if verdict.until_at is not None:
            await self._shut_out.leave(queue, verdict, verdict.until_at, now)
        return verdict

    async def _set_out(self, flight: Flight) -> None:
        if not self._driver.is_open:
            await self._open()
        await self._sender.start(flight)
        if self._outbox.refusals > 1:
            # Not because of something that has changed, or reading it again would have helped:
            # by the database's clock our lease may be over. It is renewed in a moment.
            self._not_before_at = self._clock.now() + REFUSED_PAUSE_US

    async def _open(self) -> None:
        timeout_us = self._memory.policy.timeout_us
        try:
            async with asyncio.timeout(timeout_us / SECOND):
                await self._driver.open()
        except TimeoutError:
            text = f"{self._memory.account.name} could not be opened in {timeout_us / SECOND:g} s"
            raise ProviderError(text) from None
        except PacelineError:
            raise
        except Exception as error:
            # An account that cannot be opened can send nothing of anybody's.
            raise LaneFailed(error) from error

    async def _give_up(self, queue: RunQueue, delivery: Delivery, verdict: Refuse) -> None:
        """Skip what can never go; a closed window ends the whole rest of the run here."""
        now, run, account = self._clock.now(), queue.run, self._memory.account
        if verdict.gate == "window":
            await self._outbox.flush(self._sender.flying)
            count = await self._write(
                lambda tx: tx.deliveries.move_all(
                    run.id,
                    "skip",
                    at=now,
                    reason=verdict.why,
                    account_id=account.id,
                    pooled=run.pooled,
                )
            )
            queue.forget()
            log.info(
                "skipped the rest",
                account=account.name,
                run=run.id,
                deliveries=count,
                why=verdict.why,
            )
            return
        queue.pop()
        await self._write(
            lambda tx: tx.deliveries.move(delivery.id, "skip", at=now, reason=verdict.why)
        )
        told = {"run": run.id, "delivery": delivery.id, "why": verdict.why}
        log.info("skipped", account=account.name, **told)

    async def _cancel(self, queue: RunQueue, delivery: Delivery) -> None:
        """A delivery that was under way when its campaign was cancelled, and came back unsent."""
        queue.pop()
        now, reason = self._clock.now(), queue.run.reason
        await self._write(
            lambda tx: tx.deliveries.move(delivery.id, "cancel", at=now, reason=reason)
        )

    async def _acquainted(self, delivery: Delivery, ask: Ask) -> Ask:
        """The same ask, knowing whether it is a first contact: asked for only while it matters."""
        if delivery.reply or delivery.parts_done:
            return ask
        account_id, target = self._memory.account.id, delivery.target
        await self._outbox.flush(self._sender.flying)
        known = await self._journal.read(lambda tx: tx.deliveries.knows(account_id, target))
        return ask._replace(known=known)

    async def _step_aside(self, queue: RunQueue, delivery: Delivery, verdict: Wait) -> None:
        """Move a delivery that waits for its own sake out of the way of those that need not."""
        queue.pop()
        until_at, why, account_id = verdict.until_at, verdict.why, self._memory.account.id
        await self._write(
            lambda tx: (
                tx.deliveries.hold(delivery.id, account_id)
                and tx.deliveries.postpone(delivery.id, until_at, why)
            )
        )
        if until_at is not None:
            queue.expect(until_at)

    async def _resolve(self, queue: RunQueue, delivery: Delivery) -> None:
        queue.pop()
        if not self._driver.is_open:
            await self._open()
        resolution = await recovery.resolve(
            self._context, self._memory, self._lease, self._driver, delivery
        )
        if resolution.due_at is not None:
            queue.expect(resolution.due_at)
        elif resolution.slot_returned:
            # It does not take its slot again, so there may be room for one that was put off.
            account, now = self._memory.account, self._clock.now()
            await self._write(partial(_recall, account=account, now=now))
        queue.closing_checked = False
        self._outbox.stale = self._outbox.stale or resolution.slot_returned

    async def _look_for_end(self, queue: RunQueue) -> None:
        """When nothing of a run waits here any more, see whether the whole run is over."""
        run = queue.run
        if queue.closing_checked or queue.next_due_at is not None or run.kind == "direct":
            return
        if self._sender.serves(run.id):
            return
        await self._outbox.flush(self._sender.flying)
        queue.closing_checked = True
        await self.end_runs([run.id])

    async def end_runs(self, run_ids: Iterable[int]) -> None:
        """End those of these runs of which nothing can move by itself any more."""
        for run_id in sorted(run_ids):
            asked = (run_id, self._clock.now())
            ended = await self._journal.write_together(lane_writes.end_runs, asked)
            if ended is not None:
                self._memory.agenda.drop(run_id)
                log.info(
                    "run ended",
                    account=self._memory.account.name,
                    run=run_id,
                    state=str(ended.state),
                    **ended.counts,
                )

    async def _write(self, work: Work[T]) -> T:
        """Change deliveries beside the message path, provided that the lane is still ours."""
        return await self._journal.write(lane_writes.held(self._lease, work))


def _recall(tx: Tx, account: Account, now: Instant) -> None:
    tx.timetable.recall(account.id, now)
    bring_forward(tx, account, now)
