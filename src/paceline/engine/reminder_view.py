"""Reminders as people look at them: when they fire, what they have done, what they wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.core.instants import Instant, local_text
from paceline.core.states import DeliveryState, RunState
from paceline.engine.agenda import FAR
from paceline.engine.commands.reminders import find, spec_of
from paceline.engine.ports import Campaign, Reminder, Run, Tx
from paceline.engine.reminder_spec import ReminderSpec

FIRINGS_SHOWN = 5
RUNS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class RunView:
    run: Run
    counts: Mapping[DeliveryState, int]
    waits_for: str
    """Why nothing of it has been sent yet; empty where something has, or it is over."""


@dataclass(frozen=True, slots=True)
class ReminderView:
    reminder: Reminder
    campaign: Campaign
    spec: ReminderSpec
    targets: int
    firings: Sequence[Instant]
    """The next few; none where it is disabled, or has fired for good."""
    runs: Sequence[RunView]
    """The latest ones, the latest first."""


def reminder_view(tx: Tx, name: str, now: Instant, *, runs_shown: int = RUNS_SHOWN) -> ReminderView:
    reminder = find(tx, name)
    spec = spec_of(tx, reminder)
    audience = spec.campaign.audience.get("audience")
    if audience is None:
        targets = tx.reminders.target_counts().get(reminder.id, 0)
    else:
        known = tx.audiences.find(str(audience))
        targets = 0 if known is None else known.members
    firings = []
    if reminder.next_at is not None:
        firings = spec.rule.next_few(max(now, reminder.next_at - 1), FIRINGS_SHOWN)
    return ReminderView(
        reminder=reminder,
        campaign=tx.campaigns.get(reminder.campaign_id),
        spec=spec,
        targets=targets,
        firings=firings,
        runs=runs_of(tx, reminder, runs_shown, now),
    )


def runs_of(tx: Tx, reminder: Reminder, limit: int, now: Instant) -> list[RunView]:
    """The latest firings, the latest first."""
    latest = tx.runs.of_campaign(reminder.campaign_id)[-limit:][::-1]
    return [
        RunView(run, tx.runs.counts(run.id), waits_for(tx, run, reminder.zone, now))
        for run in latest
    ]


def waits_for(tx: Tx, run: Run, zone: str, now: Instant) -> str:
    """What a firing waits for that has not begun; empty for one that has."""
    if run.state is not RunState.WAITING:
        return ""
    if run.opens_at is not None and run.opens_at > now:
        return f"its window, which opens at {local_text(run.opens_at, zone)}"
    ahead = _ahead_of(tx, run)
    return f"its turn, behind {ahead}" if ahead else "its account"


def _ahead_of(tx: Tx, run: Run) -> str:
    """The firing that goes first on every account of this one, because its window closes first."""
    accounts = [number for number in tx.runs.accounts(run.id) if number]
    others = {
        other.id: other
        for other in tx.waiting.runs(accounts)
        if other.kind == "reminder" and _rank(other) < _rank(run)
    }
    if not others:
        return ""
    first = min(others.values(), key=_rank)
    names = tx.accounts.several(sorted(accounts))
    shared = [
        names[number].name
        for number in tx.runs.accounts(first.id)
        if number in names and number in accounts
    ]
    return f"{first.campaign} on {', '.join(shared)}"


def _rank(run: Run) -> tuple[int, Instant, int]:
    return -run.priority, run.closes_at or FAR, run.id
