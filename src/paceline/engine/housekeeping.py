"""What every process looks after once in a while, whichever of them comes first.

Dead processes are buried, runs that nobody could end are ended, those whose window has closed too,
later steps of campaigns go on, and how far runs have come is told.
Nothing here is remembered that a crash could lose: the store is asked every time, and what is
known from the last time only tells where to look first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import structlog

from paceline.core.instants import HOUR, MINUTE, Instant
from paceline.engine import lane_writes, runs
from paceline.engine.bidding import look_after_bids
from paceline.engine.early_receipts import look_after_receipts
from paceline.engine.following import follow
from paceline.engine.ports import Journal, Tx
from paceline.engine.progress import Telling, tell
from paceline.engine.summaries import WINDOW_CLOSED

BURY_AFTER_US = HOUR
CLOSED_US = MINUTE
"""How long after a window lanes have ended by themselves whatever they go through."""

log = structlog.get_logger("paceline.supervisor")


class _ToDo(NamedTuple):
    """What one look has found; mostly nothing."""

    dead: bool
    left_open: Sequence[int]
    overdue: Sequence[int]
    steps: bool
    follow_ups: Sequence[int]
    receipts: bool
    news: Sequence[int]


class Housekeeping:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._telling = Telling()
        self._left_open = runs.LeftOpen()

    async def look(self, now: Instant) -> None:
        """Everything is asked for in one visit, and then done where there is something to do."""
        to_do = await self._journal.read(lambda tx: self._to_do(tx, now))
        if to_do.dead:
            await self._journal.write(lambda tx: tx.processes.bury(BURY_AFTER_US))
        await self._end_runs(to_do.left_open, to_do.overdue, now)
        if to_do.steps:
            await follow(self._journal, now)
        if to_do.follow_ups:
            await look_after_bids(self._journal, to_do.follow_ups, now)
        if to_do.receipts:
            await look_after_receipts(self._journal)
        await tell(self._journal, to_do.news, now)

    def _to_do(self, tx: Tx, now: Instant) -> _ToDo:
        return _ToDo(
            dead=tx.processes.dead(BURY_AFTER_US),
            left_open=self._left_open.look(tx),
            overdue=tx.runs.overdue(now - CLOSED_US),
            steps=bool(tx.steps.waiting()),
            follow_ups=tx.bids.open_runs(),
            receipts=tx.receipts.early(),
            news=self._telling.look(tx, now),
        )

    async def _end_runs(
        self, left_open: Sequence[int], overdue: Sequence[int], now: Instant
    ) -> None:
        for run_id in left_open:
            ended = await self._journal.write(partial(lane_writes.end_run, run_id=run_id, now=now))
            if ended is not None:
                log.info("run ended", run=run_id, state=str(ended.state), **ended.counts)
        for run_id in overdue:
            state = await self._journal.write(partial(runs.close, run_id=run_id, now=now))
            if state is not None:
                log.info("run ended", run=run_id, state=str(state), why=WINDOW_CLOSED)
