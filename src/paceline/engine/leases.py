"""The process's lease: proof that this process is alive, and its right to send.

One lease covers every lane of the process. It is measured by database time; here only the part
that is safe to use is kept, counted from *before* the renewal was asked for, so that a slow answer
can only make it shorter. It is counted on both clocks: the wall clock may be set back, and the
monotonic one may stand still while the machine sleeps, but hardly both at once.
"""

from __future__ import annotations

import structlog

from paceline.core.errors import LeaseLost, StoreUnavailable
from paceline.core.instants import SECOND, Instant
from paceline.engine.ports import Account, Clock, Journal, LaneRow, Lease, Tx

LEASE_US = 15 * SECOND
RENEW_EVERY_US = 5 * SECOND
UNSAFE_TAIL_US = 5 * SECOND
"""No send starts in the last part of a lease: it must have ended before anybody takes over."""

log = structlog.get_logger("paceline.lease")


class ProcessLease:
    """Joins the fleet, renews, and knows until when a send may start."""

    def __init__(self, journal: Journal, clock: Clock, name: str) -> None:
        self._journal = journal
        self._clock = clock
        self._name = name
        self._process_id: int | None = None
        self._safe_until_us = 0
        self._safe_until_at: Instant = 0

    @property
    def process_id(self) -> int:
        if self._process_id is None:
            raise LeaseLost("this process has not joined the fleet")
        return self._process_id

    @property
    def joined(self) -> bool:
        return self._process_id is not None

    def safe(self) -> bool:
        """Whether a send may start now."""
        if self._clock.monotonic_us() >= self._safe_until_us:
            return False
        return self._clock.now() < self._safe_until_at

    async def join(self) -> None:
        asked_us, asked_at = self._clock.monotonic_us(), self._clock.now()
        row = await self._journal.write(lambda tx: tx.processes.join(self._name, LEASE_US))
        self._process_id = row.id
        self._extend(asked_us, asked_at)
        log.info("joined", process=row.id, name=self._name)

    async def renew(self) -> None:
        """Renew once. A database that is away lets the lease run out: that is what it is for."""
        if self._process_id is None:  # it has just left
            return
        asked_us, asked_at = self._clock.monotonic_us(), self._clock.now()
        process_id = self._process_id
        try:
            until_at = await self._journal.write(
                lambda tx: tx.processes.renew(process_id, LEASE_US), alone=True
            )
        except StoreUnavailable as error:
            log.warning("lease not renewed", process=process_id, error=str(error))
            return
        if process_id != self._process_id:
            return
        if until_at is None:
            # Others found us dead and buried us; what they took over has a newer generation,
            # so joining again under a new number can harm nobody.
            log.warning("process was forgotten, joining again", process=process_id)
            await self.join()
            return
        self._extend(asked_us, asked_at)

    async def leave(self) -> None:
        process_id = self.process_id
        self._process_id = None
        self._safe_until_us = 0
        await self._journal.write(lambda tx: tx.processes.leave(process_id))
        log.info("left", process=process_id)

    def _extend(self, asked_us: int, asked_at: Instant) -> None:
        self._safe_until_us = asked_us + LEASE_US - UNSAFE_TAIL_US
        self._safe_until_at = asked_at + LEASE_US - UNSAFE_TAIL_US


def take(tx: Tx, account_ids: list[int], process_id: int) -> list[tuple[LaneRow, Account]]:
    """Own those of these lanes that nobody else has taken meanwhile; with their accounts."""
    # In one order for everybody, so that no two processes wait for each other.
    rows = [tx.lanes.take(account_id, process_id) for account_id in sorted(account_ids)]
    return [(row, tx.accounts.get(row.account_id)) for row in rows if row is not None]


def let_go(tx: Tx, account_ids: list[int], process_id: int) -> None:
    """Free those of these lanes that are ours."""
    for account_id in sorted(account_ids):
        # Touching waits for a take of ours that is still being committed, so what is read is final.
        tx.lanes.touch(account_id, tx.now)
        row = tx.lanes.get(account_id)
        if row.owner == process_id:
            tx.lanes.release(Lease(account_id, process_id, row.generation))
