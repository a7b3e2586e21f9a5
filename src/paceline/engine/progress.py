"""How far runs have come, told now and then: never by the path a message takes.

Whoever keeps the house looks once a minute, compares the counters with what was told last, and
tells what is worth telling. A run of a million messages is told of twenty times, and one that is
over within a minute not at all: its end is told anyway.
"""

from __future__ import annotations

from functools import partial

from paceline.core.instants import MINUTE, Instant
from paceline.engine import events
from paceline.engine.ports import Journal, Progress, Tx

STEP = 20
"""Told again when it has come a twentieth of itself further."""
AT_MOST_EVERY_US = MINUTE


def is_news(now_is: Progress, now: Instant) -> bool:
    """Whether a run has come far enough, and for long enough nothing was told of it.

    After a retry it has come less far than was told; that is news as well. Its end is told by the
    run itself.
    """
    if now_is.done >= now_is.total or now - now_is.told_at < AT_MOST_EVERY_US:
        return False
    return abs(now_is.done - now_is.told_done) * STEP >= now_is.total


async def tell_progress(journal: Journal, now: Instant) -> int:
    """Tell of every run of which there is news; of how many."""
    found = await journal.read(lambda tx: tx.events.progress())
    news = [now_is.run_id for now_is in found if is_news(now_is, now)]
    # Alone: in a group, whoever comes after us might wait for those who wait for the run.
    told = [
        await journal.write(partial(_tell, run_id=run_id, now=now), alone=True) for run_id in news
    ]
    return sum(told)


def _tell(tx: Tx, run_id: int, now: Instant) -> bool:
    """Another process may have told it meanwhile: then it is no news any more."""
    for now_is in tx.events.progress(run_id):
        if is_news(now_is, now):
            events.run_progress(tx, now_is, now)
            return True
    return False
