"""Shut out: what a lane does about deliveries that an account-wide gate keeps from going.

Only for what the calendar forbids: an account's own pace lets them go one by one. Where they go
instead is worked out in ``putting_off.py``, and for what is nobody's in ``pool_putting_off.py``.
"""

from __future__ import annotations

from paceline.core.instants import SECOND, Instant
from paceline.core.model import Wait
from paceline.engine.context import LaneContext
from paceline.engine.memory import LaneMemory
from paceline.engine.outbox import Outbox
from paceline.engine.pool_putting_off import put_off_pools
from paceline.engine.pooling import LOOK_AGAIN_US
from paceline.engine.ports import Lease
from paceline.engine.putting_off import by_calendar, put_off
from paceline.engine.run_queue import RunQueue
from paceline.engine.sender import Sender

BUSY_US = 10 * SECOND
"""When to look again at a pool of which somebody is sending."""


class ShutOut:
    """One lane's looks at what no longer fits."""

    def __init__(
        self,
        context: LaneContext,
        memory: LaneMemory,
        outbox: Outbox,
        lease: Lease,
        sender: Sender,
    ) -> None:
        self._context = context
        self._memory = memory
        self._outbox = outbox
        self._lease = lease
        self._sender = sender

    async def leave(self, queue: RunQueue, verdict: Wait, until_at: Instant, now: Instant) -> None:
        """The first of a queue can not go from here before ``until_at``, nor can those like it."""
        first = queue.first
        if first is None or first.account_id is not None:
            await self._put_off(queue, verdict, until_at, now)
        else:
            queue.put_back(await self._look_over_pool(queue, verdict, until_at, now))

    async def _put_off(
        self, queue: RunQueue, verdict: Wait, until_at: Instant, now: Instant
    ) -> None:
        """Give what no longer fits slots of its own, and show on it why."""
        if by_calendar(verdict, now) is None:
            return
        if self._sender.flying or queue.shut_until_at == until_at:
            # What is refused now gives its slot back, and then there is room today.
            return
        await self._outbox.flush(frozenset())
        await put_off(self._context.journal, self._lease, self._memory, now)
        queue.shut_until_at = until_at

    async def _look_over_pool(
        self, queue: RunQueue, verdict: Wait, until_at: Instant, now: Instant
    ) -> Instant:
        """The same for what is nobody's, if nobody else can take it; when to look again."""
        if by_calendar(verdict, now) is None or queue.shut_until_at == until_at:
            return until_at
        claims, run_id = self._context.claims, queue.run.id
        if self._sender.flying or not claims.looks_over(run_id, now):
            return now + LOOK_AGAIN_US
        try:
            await self._outbox.flush(frozenset())
            journal = self._context.journal
            if not await put_off_pools(journal, self._lease, self._memory, now):
                return now + BUSY_US
        finally:
            claims.has_looked(run_id)
        queue.shut_until_at = until_at
        return until_at
