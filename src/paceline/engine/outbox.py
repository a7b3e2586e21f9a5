"""The outbox: what a lane has to write, kept until it is durable.

Outcomes gather here and leave with the next intent as one unit. While the database is away nothing
is sent and nothing is forgotten: the outcomes stay, the lane waits, and afterwards an intent of
whose commit we never heard is looked for and withdrawn.
"""

from __future__ import annotations

from contextlib import suppress

import structlog

from paceline.core.errors import LeaseLost, StoreUnavailable
from paceline.core.states import DeliveryState
from paceline.engine import lane_writes, recovery
from paceline.engine.context import LaneContext
from paceline.engine.memory import LaneMemory
from paceline.engine.ports import Intent, LaneUnit, Lease, Settlement
from paceline.engine.settling import Settled

SUMMARY_AFTER = 100
"""Settled attempts after which a summary line is due, where the policy knows no batches."""

log = structlog.get_logger("paceline.lane")


class Outbox:
    """One lane's way into the journal."""

    def __init__(self, context: LaneContext, memory: LaneMemory, lease: Lease) -> None:
        self._context = context
        self._memory = memory
        self._lease = lease
        self._waiting: list[Settled] = []
        self._tally: dict[DeliveryState, int] = {}
        self._doubtful = False
        self.stale = False
        """Whether what the lane remembers may no longer be true."""
        self.refusals = 0
        """Intents refused in a row."""

    @property
    def urgent(self) -> bool:
        """Whether something waits that must be in force before anything else is sent."""
        return self._doubtful or any(not entry.aftermath.empty for entry in self._waiting)

    def add(self, settled: Settled) -> None:
        self._waiting.append(settled)

    def doubt(self) -> None:
        """The store failed us: what it holds may not be what we think."""
        self._doubtful = True
        self.stale = True

    async def flush(self, flying: frozenset[int] = frozenset()) -> None:
        """Write what waits; afterwards clear the doubt about an intent, if there is one."""
        if self._waiting:
            await self.submit(None)
        if self._doubtful:
            await recovery.take_back(self._context, self._memory, self._lease, flying)
            self._doubtful = False

    async def submit(self, intent: Intent | None) -> bool:
        """Write what waits, the usage, and perhaps an intent, as one unit.

        A ``StoreUnavailable`` leaves everything waiting. Whether the intent of a failed commit went
        through cannot be known here, so it is doubted until ``flush`` has looked.
        """
        batch = tuple(self._waiting)
        unit = LaneUnit(
            lease=self._lease,
            revision=self._memory.revision,
            usage=self._memory.checkpoint(),
            settlements=tuple(entry.settlement for entry in batch),
            intent=intent,
        )
        aftermaths = [entry.aftermath for entry in batch if not entry.aftermath.empty]
        journal, account = self._context.journal, self._memory.account
        try:
            if aftermaths:
                now = self._context.clock.now()
                result = await journal.write(
                    lambda tx: lane_writes.with_aftermath(tx, unit, aftermaths, account, now),
                    alone=True,
                )
                self.stale = True
            else:
                result = await journal.submit(unit)
        except StoreUnavailable:
            self.doubt()
            raise
        del self._waiting[: len(batch)]
        for entry in batch:
            self._report(entry)
        if not result.held:
            late = [s for s, moved in zip(unit.settlements, result.settled, strict=True) if moved]
            await self._tell_owner(late)
            raise LeaseLost("another process owns this lane now")
        if intent is not None:
            self.refusals = 0 if result.intended else self.refusals + 1
        return result.intended

    async def _tell_owner(self, late: list[Settlement]) -> None:
        if late:
            account_id, now = self._lease.account_id, self._context.clock.now()
            await self._context.journal.write(
                lambda tx: lane_writes.tell_owner(tx, account_id, late, now)
            )

    async def report_late(self) -> None:
        """Write what waits after the lane was lost: an outcome is true whoever reports it."""
        if self._waiting:
            with suppress(LeaseLost):
                await self.submit(None)

    def summarise(self) -> None:
        """One line for the whole batch that was settled since the last one."""
        if self._tally:
            counts = {str(state): count for state, count in self._tally.items()}
            log.info("batch done", account=self._memory.account.name, **counts)
            self._tally = {}

    def _report(self, entry: Settled) -> None:
        settlement = entry.settlement
        self._context.observer.settled(
            self._memory.account.name, settlement.outcome, settlement.state, settlement.latency_us
        )
        self._tally[settlement.state] = self._tally.get(settlement.state, 0) + 1
        batch = self._memory.policy.batch
        if sum(self._tally.values()) >= (batch.size if batch is not None else SUMMARY_AFTER):
            self.summarise()
        if settlement.outcome.refused:
            log.info(
                "not sent",
                account=self._memory.account.name,
                run=settlement.run_id,
                delivery=settlement.delivery_id,
                outcome=str(settlement.outcome.kind),
                reason=settlement.reason,
                state=str(settlement.state),
            )
