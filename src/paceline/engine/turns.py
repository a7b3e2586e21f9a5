"""Whose turn it is: in which order the runs of an account may send.

Direct messages (replies, single sends) and follow-ups come first, then the higher priority. Of
equal ones a firing that has begun goes to its end, before those that have not and before campaigns;
then comes the run whose window closes first, and then the older firing. Campaigns of equal rank
share.

A firing has begun on an account when something of it was sent from there, as the store knows: so it
is the same after a restart. While it is paused, or its window is shut, it keeps nobody waiting, and
afterwards it takes its turn again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from paceline.core.hours import HORIZON_DAYS, Hours
from paceline.core.instants import DAY, Instant
from paceline.core.slots import Rank
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import Run, Tx

FAR = 1 << 62

UNTRIED = (
    DeliveryState.PLANNED,
    DeliveryState.READY,
    DeliveryState.SKIPPED,
    DeliveryState.CANCELLED,
)
"""States of a delivery of which nobody has seen anything."""


@lru_cache(maxsize=1024)
def parsed_hours(text: str) -> Hours:
    """Hours as stored with a run or a delivery; they were validated when they were written."""
    return Hours.parse(text)


def rank_of(run: Run, now: Instant, *, begun: bool) -> Rank:
    """The lower, the sooner."""
    fired = run.kind == "reminder"
    turn = run.id if fired else FAR
    return (
        run.kind != "direct" and not run.follow_ups,
        -run.priority,
        not (fired and begun),
        closes_next_at(run, now) if fired else run.closes_at or FAR,
        turn,
    )


def closes_next_at(run: Run, now: Instant) -> Instant:
    """When the window of a run closes next, for good or until the morning; far off if it never
    does."""
    if run.closes_at is not None or run.window is None:
        return run.closes_at or FAR
    window = parsed_hours(run.window)
    opens_at = window.next_open(now)
    if opens_at is None:
        return FAR
    closes_at = window.closes_at(opens_at)
    return closes_at if closes_at - opens_at < HORIZON_DAYS * DAY else FAR


def is_served(run: Run) -> bool:
    """Whether a lane goes through it and sends. A firing waits until its first message is sent; a
    campaign that waits is a draft."""
    return run.state is RunState.RUNNING or (
        run.kind == "reminder" and run.state is RunState.WAITING
    )


def has_begun(counts: Mapping[DeliveryState, int]) -> bool:
    """Whether something was sent of what these counts are about."""
    return any(count for state, count in counts.items() if state not in UNTRIED)


def begun_on(tx: Tx, account_id: int, runs: Iterable[Run]) -> frozenset[int]:
    """The firings of which something was sent from an account. Asked for only where several could
    go on: one alone is in nobody's way."""
    fired = [run for run in runs if run.kind == "reminder" and is_served(run)]
    if len(fired) < 2:
        return frozenset()
    return frozenset(
        run.id
        for run in fired
        if run.started_at is not None and has_begun(tx.runs.accounts(run.id).get(account_id, {}))
    )


def planned_rank(run: Run, now: Instant) -> Rank:
    """The same for a plan, which goes by the run as a whole, whoever has sent something of it."""
    return rank_of(run, now, begun=run.started_at is not None)
