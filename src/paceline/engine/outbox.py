"""The outbox: what a lane has to write, kept until it is durable.

Outcomes gather here and leave with the next intent as one unit. While the database is away nothing
is sent and nothing is forgotten: the outcomes stay, the lane waits, and afterwards an intent of
whose commit we never heard is looked for and withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import structlog

from paceline.core import usage as usages
from paceline.core.errors import LeaseLost, StoreUnavailable
from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine import lane_writes, parking, recovery
from paceline.engine.bouncing import any_came_back
from paceline.engine.context import LaneContext
from paceline.engine.memory import LaneMemory
from paceline.engine.parking import Parked, Rest
from paceline.engine.pooling import hold_to_stop
from paceline.engine.ports import Intent, LaneResult, LaneUnit, Lease, Settlement, Tx
from paceline.engine.settling import ENOUGH_TO_JUDGE, Settled

SUMMARY_AFTER = 100
"""Settled attempts after which a summary line is due, where the policy knows no batches."""

log = structlog.get_logger("paceline.lane")

_SAID = {OutcomeKind.WITHDRAWN: "debug", OutcomeKind.THROTTLED: "warning"}
"""How loudly it is said that something was not sent; of all else it is "info"."""


class Outbox:
    """One lane's way into the journal."""

    def __init__(self, context: LaneContext, memory: LaneMemory, lease: Lease) -> None:
        self._context = context
        self._memory = memory
        self._lease = lease
        self._waiting: list[Settled] = []
        self._grave = False
        """Whether anything that waits has an aftermath."""
        self._late: list[Settlement] = []
        """What was written after the lane was lost, and its owner has not heard of yet."""
        self._tally: dict[DeliveryState, int] = {}
        self._tallied = 0
        self._doubtful = False
        self._moved = False
        """Whether the usage has changed without anything to settle."""
        self.stale = False
        """Whether what the lane remembers may no longer be true."""
        self.refusals = 0
        """Intents refused in a row."""

    @property
    def urgent(self) -> bool:
        """Whether something waits that must be in force before anything else is sent."""
        return self._doubtful or self._grave

    def add(self, settled: Settled) -> None:
        self._waiting.append(settled)
        self._grave = self._grave or not settled.aftermath.empty

    def clock_was_set(self) -> None:
        """The day may be another one, and what is due another lot; and whoever has the lane next
        must find the usage as it is by the new clock."""
        self._moved = True
        self.stale = True

    def doubt(self) -> None:
        """The store failed us: what it holds may not be what we think."""
        self._doubtful = True
        self.stale = True

    async def flush(self, flying: frozenset[int] = frozenset()) -> None:
        """Write what waits; afterwards clear the doubt about an intent, if there is one."""
        await self.hand_over()
        if self._doubtful:
            await recovery.take_back(self._context, self._memory, self._lease, flying)
            self._doubtful = False

    async def hand_over(self) -> None:
        """Write what waits, and leave the doubt to whoever is about to look everything over."""
        if self._waiting or self._moved:
            await self.submit(None)

    def is_certain(self) -> None:
        """Somebody has looked: nothing of ours is in the store of whose commit we never heard."""
        self._doubtful = False

    async def submit(self, intent: Intent | None, begins: Callable[[], None] | None = None) -> bool:
        """Write what waits, the usage, and perhaps an intent, as one unit.

        A ``StoreUnavailable`` leaves everything waiting. Whether the intent of a failed commit went
        through cannot be known here, so it is doubted until ``flush`` has looked.
        """
        batch = self._waiting[:]
        unit = self._unit(batch, intent)
        try:
            enough = self._grave and await self._is_only_enough(batch)
            if self._grave and not enough:
                if begins is not None:  # in a transaction of its own, and never later than now
                    begins()
                result = await self._submit_alone(unit, batch)
            else:
                hurried = not self._memory.policy.paced
                result = await self._context.journal.submit(unit, hurried=hurried, begins=begins)
            if enough and await self._any_came_back():
                # In the very moment between the look and the commit.
                await self._judge()
        except StoreUnavailable:
            self.doubt()
            raise
        await self._written(batch, unit, result)
        if intent is not None:
            self.refusals = 0 if result.intended else self.refusals + 1
        return result.intended

    async def park(self, rest: Rest) -> Parked:
        """Write what waits and give the lane back, as one unit of work. Only where nothing follows
        from an outcome beyond its delivery."""
        batch = self._waiting[:]
        if batch or self._moved:
            unit = self._unit(batch, None)
        else:
            unit = LaneUnit(self._lease, self._memory.revision)
        try:
            done = await self._context.journal.submit_and(
                unit, lambda tx, result: parking.park(tx, result, unit, rest)
            )
        except StoreUnavailable:
            self.doubt()
            raise
        await self._written(batch, unit, done.result)
        return done

    def _unit(self, batch: list[Settled], intent: Intent | None) -> LaneUnit:
        memory = self._memory
        settlements = tuple([entry.settlement for entry in batch])
        usage = usages.to_json(memory.usage)
        return LaneUnit(self._lease, memory.revision, usage, settlements, intent)

    async def _written(self, batch: list[Settled], unit: LaneUnit, result: LaneResult) -> None:
        """What was written waits no longer. Without the lane this is the last that we have to say,
        and its owner hears of it."""
        self._moved = False
        if len(batch) == len(self._waiting):
            self._waiting, self._grave = [], False
        else:  # more has landed meanwhile
            del self._waiting[: len(batch)]
            self._grave = any(not entry.aftermath.empty for entry in self._waiting)
        for entry in batch:
            self._report(entry)
        if not result.held:
            answers = zip(unit.settlements, result.settled, strict=True)
            self._late += [one for one, moved in answers if lane_writes.is_news(one, moved=moved)]
            await self._tell_owner()
            raise LeaseLost("another process owns this lane now")

    async def _submit_alone(self, unit: LaneUnit, batch: list[Settled]) -> LaneResult:
        """The same where something follows from an outcome beyond its delivery: in the same
        transaction, so that no crash can come between."""
        account, now = self._memory.account, self._context.clock.now()
        aftermaths = [(e.settlement, e.aftermath) for e in batch if not e.aftermath.empty]
        result = await self._context.journal.write(
            lambda tx: lane_writes.with_aftermath(tx, unit, aftermaths, account, now), alone=True
        )
        self.stale = True
        return result

    async def _is_only_enough(self, batch: list[Settled]) -> bool:
        """Whether all that follows is that the day has enough letters to judge its bounces by, and
        there are none: as nearly always, and then it is written with everybody else's."""
        if any(not one.aftermath.empty and one.aftermath != ENOUGH_TO_JUDGE for one in batch):
            return False
        return not await self._any_came_back()

    async def _any_came_back(self) -> bool:
        account, now = self._memory.account, self._context.clock.now()
        return await self._context.journal.read(lambda tx: any_came_back(tx, account, now))

    async def _judge(self) -> None:
        """Should we die before: whoever brought back what came back has counted this letter among
        those on their way, and judged them all."""
        account, now = self._memory.account, self._context.clock.now()
        await self._context.journal.write(
            lambda tx: lane_writes.judge(tx, account, now), alone=True
        )
        self.stale = True

    async def _tell_owner(self) -> None:
        if not self._late:
            return
        account_id, now, late = self._lease.account_id, self._context.clock.now(), self._late

        def alone(tx: Tx) -> None:
            hold_to_stop(tx, account_id)
            lane_writes.tell_owner(tx, account_id, late, now)

        told = await self._context.journal.write(
            lambda tx: lane_writes.tell_owner(tx, account_id, late, now, in_company=True)
        )
        if not told:
            await self._context.journal.write(alone, alone=True)
        self._late = []

    async def report_late(self) -> None:
        """Write what waits after the lane was lost: an outcome is true whoever reports it."""
        with suppress(LeaseLost):
            if self._waiting:
                await self.submit(None)
        await self._tell_owner()

    def summarise(self) -> None:
        """One line for the whole batch that was settled since the last one."""
        if self._tally:
            counts = {str(state): count for state, count in self._tally.items()}
            log.info("batch done", account=self._memory.account.name, **counts)
            self._tally, self._tallied = {}, 0

    def _report(self, entry: Settled) -> None:
        settlement, memory = entry.settlement, self._memory
        outcome, state = settlement.outcome, settlement.state
        self._context.observer.settled(memory.account.name, outcome, state, settlement.latency_us)
        if outcome.kind is not OutcomeKind.WITHDRAWN:  # nobody was called, and it goes in a moment
            self._tally[state] = self._tally.get(state, 0) + 1
            self._tallied += 1
        batch = memory.policy.batch
        if self._tallied >= (batch.size if batch is not None else SUMMARY_AFTER):
            self.summarise()
        if entry.slowed:
            log.warning(
                "slowed", account=memory.account.name, run=settlement.run_id, why=entry.slowed
            )
        if outcome.refused:
            say = getattr(log, _SAID.get(outcome.kind, "info"))
            say(
                "not sent",
                account=memory.account.name,
                run=settlement.run_id,
                delivery=settlement.delivery_id,
                outcome=str(outcome.kind),
                reason=settlement.reason,
                state=str(state),
            )
