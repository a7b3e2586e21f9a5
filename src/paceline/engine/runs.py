"""When a run is over, and how it is told."""

from __future__ import annotations

from paceline.core.instants import Instant
from paceline.core.states import CAMPAIGN, DeliveryState, RunState
from paceline.engine import events
from paceline.engine.alerts import campaign_goes_on, fell_short, reminder_goes_well
from paceline.engine.ports import Run, Tx
from paceline.engine.summaries import ENDED, WINDOW_CLOSED, summary

WAITING = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)
MOST_LIKELY = 16
"""Accounts that are asked before the others whether something is left; each is asked for each run.
"""


def end_if_done(tx: Tx, run_id: int, now: Instant, *, follow_ups: bool = False) -> RunState | None:
    """End a run of which nothing can move by itself any more; None if it goes on.

    A doubt that only a person can clear does not keep a run open: it is part of the summary, and
    resolving it later changes the counts, not the run. Direct messages' standing run never ends.
    One of ``follow_ups`` ends only where that is said: somebody may bid another one.
    """
    if tx.runs.goes_on(run_id):  # by far the most, and every account of a run asks at its own end
        return None
    counts = tx.runs.counts(run_id)
    if not _is_done(tx, run_id, counts):
        return None
    run = tx.runs.get(run_id)
    if run.kind == "direct" or run.follow_ups != follow_ups:
        return None
    total, sent = sum(counts.values()), counts[DeliveryState.SENT]
    event = "finish_all" if sent == total else "finish_some" if sent else "finish_none"
    told = summary(tx, run, counts)
    if run.kind == "reminder" and run.state is RunState.WAITING:
        # It waited for its turn or its window, and with its account all of it is called off.
        tx.runs.move(run_id, "start", at=now)
    state = tx.runs.move(run_id, event, at=now, summary=told)
    if state is None:
        return None
    campaign = tx.campaigns.get(run.campaign_id)
    # A reminder is not over with one of its firings, nor a campaign while somebody may answer it.
    if (
        run.kind == "campaign"
        and (campaign.state, "finish") in CAMPAIGN.table
        and all(one.state in ENDED for one in tx.runs.of_campaign(run.campaign_id))
    ):
        tx.campaigns.move(run.campaign_id, "finish", at=now)
    if total or not run.follow_ups:
        events.run_finished(tx, run, state, counts, told, now)
    campaign_goes_on(tx, run_id, now)
    if run.kind == "reminder":
        if state is RunState.SUCCESS:
            reminder_goes_well(tx, run, now)
        else:
            fell_short(tx, run.campaign, run, told, now)
    return state


def close(tx: Tx, run_id: int, now: Instant) -> RunState | None:
    """End what its window should have ended: its account was out of service by then, or it was
    paused, and nobody went through what was left of it."""
    tx.settings.fence()
    tx.lanes.touch_run(run_id, now)
    tx.runs.move(run_id, "start", at=now)
    tx.deliveries.move_all(run_id, "skip", at=now, reason=WINDOW_CLOSED)
    return end_if_done(tx, run_id, now)


def reopen_for(tx: Tx, delivery_id: int, at: Instant) -> None:
    """A run that had ended goes on if one of its doubts was cleared and is to be sent after all."""
    delivery = tx.deliveries.get(delivery_id)
    if delivery.due_at is None:
        return
    reopen(tx, tx.runs.get(delivery.run_id), at)


def reopen(tx: Tx, run: Run, at: Instant) -> None:
    """One that had ended goes on: there is something to be sent of it after all."""
    if run.state in ENDED:
        tx.runs.move(run.id, "retry", at=at)
        tx.campaigns.move(run.campaign_id, "retry", at=at)


def standing_run(tx: Tx, name: str, at: Instant, *, priority: int = 0) -> Run:
    """The one run of a standing campaign, which belongs to no campaign file and never ends; made
    when something needs it first. The higher its priority, the sooner it has its turn."""
    campaign = tx.campaigns.find(name)
    if campaign is not None:
        return tx.runs.of_campaign(campaign.id)[0]
    campaign = tx.campaigns.add(name=name, kind="direct", content=[], settings={}, at=at)
    tx.campaigns.move(campaign.id, "launch", at=at)
    return tx.runs.add(campaign_id=campaign.id, state=RunState.RUNNING, priority=priority, at=at)


class LeftOpen:
    """Finds running runs of which nothing can move any more, though nobody has ended them.

    The lane that settles a run's last delivery ends the run in a step of its own. A crash between
    the two leaves no delivery behind that would bring any lane back to it.

    To know that a run is not over takes one account that has something left. It is asked first the
    next time, so that the counters of thousands need not be gone through every minute.
    """

    def __init__(self) -> None:
        self._likely: list[int] = []

    def look(self, tx: Tx) -> list[int]:
        left_on = tx.runs.left_on(self._likely)
        found = {account_id for account_id in left_on.values() if account_id is not None}
        self._likely = sorted(found)[:MOST_LIKELY]
        idle = [run_id for run_id, account_id in left_on.items() if account_id is None]
        return [run_id for run_id in idle if _is_done(tx, run_id, tx.runs.counts(run_id))]


def _is_done(tx: Tx, run_id: int, counts: dict[DeliveryState, int]) -> bool:
    if any(counts[state] for state in WAITING):
        return False
    return not (counts[DeliveryState.UNKNOWN] and tx.runs.awaiting_proof(run_id))
