"""How far runs have come, told now and then: never by the path a message takes.

Whoever keeps the house looks once a minute, compares the counters with what was told last, and
tells what is worth telling. A run of a million messages is told of twenty times, and one that is
over within a minute not at all: its end is told anyway. To add up the counters of thousands of
accounts takes a while, so a slow run is not looked at every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paceline.core.instants import MINUTE, Instant
from paceline.engine import events
from paceline.engine.ports import Journal, Progress, Tx

STEP = 20
"""Told again when it has come a twentieth of itself further."""
AT_MOST_EVERY_US = MINUTE
AT_LEAST_EVERY_US = 10 * MINUTE
"""How long a run is left alone at most, however slow it is."""
PERIODS_US = (10 * MINUTE, 5 * MINUTE, 2 * MINUTE, MINUTE)
"""How often somebody looks at a run of which nobody here remembers anything: the longest of these
that is not longer than half of the time since it was told of."""


def is_news(now_is: Progress, now: Instant) -> bool:
    """Whether a run has come far enough, and for long enough nothing was told of it.

    After a retry it has come less far than was told; that is news as well. Its end is told by the
    run itself.
    """
    if now_is.done >= now_is.total or now - now_is.told_at < AT_MOST_EVERY_US:
        return False
    return abs(now_is.done - now_is.told_done) * STEP >= now_is.total


class Telling:
    """Finds out of which runs there is news, and remembers which need not be looked at yet.

    A run of which nothing was told for an hour is looked at again in a few minutes: its news come
    later by a fraction of what they took anyway. That holds for whoever has just started as well,
    or a service that is started again and again would do hardly anything else.
    """

    def __init__(self) -> None:
        self._again_at: dict[int, Instant] = {}
        self._looked_at: Instant = 0
        self.looked = 0
        """At how many runs, the last time."""

    def look(self, tx: Tx, now: Instant) -> list[int]:
        if now < self._looked_at:  # by a clock that was set back since
            self._again_at.clear()
        self._looked_at = now
        known = self._again_at
        self._again_at = {run_id: at for run_id, at in known.items() if at > now}
        asked = list[int]()
        for run_id, told_at in tx.events.told_at(but=self._again_at):
            wait_us = 0 if run_id in known else _until_its_turn_us(now - told_at)
            if wait_us:
                self._again_at[run_id] = now + wait_us
            else:
                asked.append(run_id)
        found = tx.events.progress(asked) if asked else []
        self.looked = len(found)
        for now_is in found:
            wait_us = min((now - now_is.told_at) // 2, AT_LEAST_EVERY_US)
            if wait_us > 0 and not is_news(now_is, now):
                self._again_at[now_is.run_id] = now + wait_us
        return [now_is.run_id for now_is in found if is_news(now_is, now)]


def _until_its_turn_us(elapsed_us: int) -> int:
    """In how long a run is looked at of which nothing was told for so long; 0 for now, within the
    minute in which its turn is. Reckoned from what everybody can read, not from when we started."""
    period_us = next((every for every in PERIODS_US if 2 * every <= elapsed_us), MINUTE)
    into_us = elapsed_us % period_us
    return 0 if into_us < AT_MOST_EVERY_US else period_us - into_us


async def tell_progress(journal: Journal, now: Instant) -> int:
    """Tell of every run of which there is news; of how many."""
    return await tell(journal, await journal.read(lambda tx: Telling().look(tx, now)), now)


async def tell(journal: Journal, news: Sequence[int], now: Instant) -> int:
    # Alone: in a group, whoever comes after us might wait for those who wait for the run.
    told = [
        await journal.write(partial(_tell, run_id=run_id, now=now), alone=True) for run_id in news
    ]
    return sum(told)


def _tell(tx: Tx, run_id: int, now: Instant) -> bool:
    """Another process may have told it meanwhile: then it is no news any more."""
    for now_is in tx.events.progress_of(run_id):
        if is_news(now_is, now):
            events.run_progress(tx, now_is, now)
            return True
    return False
