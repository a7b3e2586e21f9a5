"""Later steps of a campaign: released when the message before was sent, skipped when it never is.

They are planned from the beginning, so that the states add up to the total at every instant. What
has become of the message before is looked up in the store and not remembered, so a crash between a
message and its follow-up loses nothing: the next look finds both.
"""

from __future__ import annotations

import structlog

from paceline.core.durations import parse_duration
from paceline.core.instants import Instant
from paceline.engine.ports import Journal, Tx
from paceline.engine.ports.steps import Advanced
from paceline.engine.runs import end_if_done

log = structlog.get_logger("paceline.steps")


class Follower:
    """A process's look at later steps: cheap while nothing is settled."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: dict[int, int] = {}

    async def look(self, now: Instant) -> None:
        """Advance every run of which something was settled since the last look."""
        waiting = await self._journal.read(lambda tx: tx.steps.waiting())
        for run_id, settled in waiting.items():
            if self._seen.get(run_id) == settled:
                continue
            advanced = await self._journal.write(
                lambda tx, run_id=run_id: advance(tx, run_id, now)  # type: ignore[misc]
            )
            if advanced.released or advanced.skipped:
                log.info("steps go on", run=run_id, **advanced._asdict())
        self._seen = waiting


def advance(tx: Tx, run_id: int, now: Instant) -> Advanced:
    """Release and skip what the run's settled deliveries allow, and wake whoever sends it."""
    run = tx.runs.get(run_id)
    waits = tx.campaigns.get(run.campaign_id).settings.get("steps", [])
    # The lanes first, as the message path does it: whoever locks in one order never deadlocks.
    tx.lanes.touch_run(run_id, now)
    after_us = {number: parse_duration(text) for number, text in enumerate(waits, start=2)}
    advanced = tx.steps.advance(run_id, after_us, now)
    if advanced.skipped and not advanced.released:
        end_if_done(tx, run_id, now)
    return advanced
