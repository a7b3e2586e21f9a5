"""What every process looks after once in a while, whichever of them comes first.

Dead processes are buried, runs that nobody could end are ended, those whose window has closed too,
later steps of campaigns go on, and how far runs have come is told.
Nothing here is remembered that a crash could lose: the store is asked every time.
"""

from __future__ import annotations

from functools import partial

import structlog

from paceline.core.instants import HOUR, MINUTE, Instant
from paceline.engine import lane_writes, runs
from paceline.engine.bidding import look_after_bids
from paceline.engine.following import follow
from paceline.engine.ports import Journal
from paceline.engine.progress import tell_progress
from paceline.engine.summaries import WINDOW_CLOSED

BURY_AFTER_US = HOUR
CLOSED_US = MINUTE
"""How long after a window lanes have ended by themselves whatever they go through."""

log = structlog.get_logger("paceline.supervisor")


class Housekeeping:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def look(self, now: Instant) -> None:
        dead, left_open, overdue = await self._journal.read(
            lambda tx: (
                tx.processes.dead(BURY_AFTER_US),
                runs.left_open(tx),
                tx.runs.overdue(now - CLOSED_US),
            )
        )
        if dead:
            await self._journal.write(lambda tx: tx.processes.bury(BURY_AFTER_US))
        for run_id in left_open:
            ended = await self._journal.write(partial(lane_writes.end_run, run_id=run_id, now=now))
            if ended is not None:
                log.info("run ended", run=run_id, state=str(ended.state), **ended.counts)
        for run_id in overdue:
            state = await self._journal.write(partial(runs.close, run_id=run_id, now=now))
            if state is not None:
                log.info("run ended", run=run_id, state=str(state), why=WINDOW_CLOSED)
        await follow(self._journal, now)
        await look_after_bids(self._journal, now)
        await tell_progress(self._journal, now)
