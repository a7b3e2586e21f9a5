"""Sending again to those who did not get it, and to nobody else."""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.errors import ConflictError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.states import CampaignState, DeliveryState
from paceline.engine.campaign_spec import Timing
from paceline.engine.commands.campaigns import find
from paceline.engine.ports import Run, Tx
from paceline.engine.summaries import ENDED

GOING = (CampaignState.RUNNING, CampaignState.PAUSED)


class Retried(NamedTuple):
    again: int
    """How many are sent again."""
    unknown: int
    """How many may have got it: those are left to whoever knows."""
    gone: int
    """How many stay failed: their account was removed, or they have opted out since."""


def retry_failed(tx: Tx, name: str, at: Instant) -> Retried:
    """Let every delivery that failed for good be tried once more, with all its retries.

    Whoever was sent the message, or may have been, is not among them; nor is an address that does
    not exist, or that has opted out since.
    """
    tx.settings.fence()
    campaign = find(tx, name)
    if campaign.state not in (*GOING, CampaignState.FINISHED):
        raise ConflictError(
            f"campaign {name} is {campaign.state}: nothing of it has failed yet"
            if campaign.state is CampaignState.DRAFT
            else f"campaign {name} is {campaign.state}: it stays that way",
        )
    timing = Timing.stored(campaign.settings)
    again = unknown = gone = 0
    for run in tx.runs.of_campaign(campaign.id):
        counts = tx.runs.counts(run.id)
        unknown += counts[DeliveryState.UNKNOWN]
        if not counts[DeliveryState.FAILED]:
            continue
        if run.state in ENDED:
            tx.runs.set_window(run.id, run.opens_at, _closes_at(timing, at))
        tx.lanes.touch_run(run.id, at)
        moved = tx.deliveries.retry_failed(run.id, at, timing.expire_after_us)
        if moved:
            # What was to follow was skipped with it, and is to follow after all.
            tx.steps.revive(run.id, 1 + len(campaign.settings.get("steps", [])), at)
        again += moved
        gone += counts[DeliveryState.FAILED] - moved
        _go_on(tx, run, moved, at)
    if again:
        told = {"campaign": name, "again": again}
        text = f"{name}: {again} sent again"
        tx.events.add(EventKind.CAMPAIGN_RETRIED, text, at=at, data=told)
    return Retried(again, unknown, gone)


def _closes_at(timing: Timing, at: Instant) -> Instant | None:
    """When the window closes in which those can still be sent: today's, or the next one's.

    When it opened the first time stays as it was: what was sent then was sent inside of it.
    """
    _, closes_at = timing.window_on(at)
    if closes_at is None or closes_at > at or timing.window is None:
        return closes_at
    opens_at = timing.window.next_open(at)
    return closes_at if opens_at is None else timing.window_on(opens_at)[1]


def _go_on(tx: Tx, run: Run, moved: int, at: Instant) -> None:
    if not moved:
        return
    if run.state in ENDED:
        tx.runs.move(run.id, "retry", at=at)
        tx.campaigns.move(run.campaign_id, "retry", at=at)
    # Once more: until now nothing of theirs was left to be done, and nobody was told.
    tx.lanes.touch_run(run.id, at)
