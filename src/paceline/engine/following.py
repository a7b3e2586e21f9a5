"""Later steps of a campaign: released when the message before was sent, skipped when it never is.

They are planned from the beginning, so that the states add up to the total at every instant. What
has become of the message before is looked up in the store and not remembered, so a crash between a
message and its follow-up loses nothing: the next look finds both.

That a message was sent may turn out wrong afterwards, when it bounces. What follows it is called
off then even if it was released already, and until that is written down the intent itself asks
what the message before has become (``Path.apply``), so it cannot slip out in between.
"""

from __future__ import annotations

from functools import partial

import structlog

from paceline.core.durations import parse_duration
from paceline.core.instants import Instant
from paceline.engine.campaign_spec import Timing
from paceline.engine.ports import Journal, Tx
from paceline.engine.ports.steps import Advanced
from paceline.engine.runs import end_if_done

log = structlog.get_logger("paceline.steps")


async def follow(journal: Journal, now: Instant) -> None:
    """Advance every run in which something waits for a message that is settled by now."""
    # Some thousands at a time, so that no lane waits long for any of it. What is told of once is
    # not found again, so this comes to an end.
    while run_ids := await journal.read(lambda tx: tx.steps.waiting()):
        for run_id in run_ids:
            advanced = await journal.write(partial(advance, run_id=run_id, now=now))
            if advanced.released or advanced.skipped:
                log.info("steps go on", run=run_id, **advanced._asdict())


def advance(tx: Tx, run_id: int, now: Instant) -> Advanced:
    """Release and skip what the run's settled deliveries allow, and wake whoever sends it."""
    run = tx.runs.get(run_id)
    settings = tx.campaigns.get(run.campaign_id).settings
    # The lanes first, as the message path does it: whoever locks in one order never deadlocks.
    tx.lanes.touch_run(run_id, now)
    waits = enumerate(settings.get("steps", []), start=2)
    after_us = {number: parse_duration(text) for number, text in waits}
    expire_us = Timing.stored(settings).expire_after_us
    advanced = tx.steps.advance(run_id, after_us, now, expire_us)
    if advanced.skipped and not advanced.released:
        end_if_done(tx, run_id, now)
    return advanced
