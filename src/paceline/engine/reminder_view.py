"""Reminders as people look at them: when they fire, what they have done, what they wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from paceline.core.hours import Hours
from paceline.core.instants import Instant, local_text
from paceline.core.states import DeliveryState, RunState
from paceline.engine.agenda import FAR
from paceline.engine.alerts import OUT_OF_SERVICE
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
    """Why nothing of it is sent now; empty where something is, or it is over."""


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
        targets = tx.reminders.target_count(reminder.id)
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
    latest = tx.runs.latest(reminder.campaign_id, limit)
    return [
        RunView(run, tx.runs.counts(run.id), waits_for(tx, run, reminder.zone, now))
        for run in latest
    ]


def waits_for(tx: Tx, run: Run, zone: str, now: Instant) -> str:
    """What a firing waits for that is not over; empty for one that goes on."""
    if run.state not in (RunState.WAITING, RunState.RUNNING):
        return ""
    left = [number for number, counts in tx.runs.accounts(run.id).items() if _open(counts)]
    if not left:
        return ""
    if (opens_at := _opens_at(run, now)) is not None:
        return f"its window, which opens at {local_text(opens_at, zone)}"
    if away := _out_of_service(tx, run, left):
        return away
    if run.state is RunState.RUNNING:
        return ""
    ahead = _ahead_of(tx, run)
    return f"its turn, behind {ahead}" if ahead else "its account"


def _open(counts: Mapping[DeliveryState, int]) -> int:
    return counts[DeliveryState.READY] + counts[DeliveryState.SENDING]


def _opens_at(run: Run, now: Instant) -> Instant | None:
    if run.opens_at is not None and run.opens_at > now:
        return run.opens_at
    window = Hours.parse(run.window) if run.window else None
    return None if window is None or window.is_open(now) else window.next_open(now)


def _out_of_service(tx: Tx, run: Run, left: Sequence[int]) -> str:
    """All accounts that have something left, where none of them can send it."""
    accounts = list(tx.accounts.several(sorted(left)).values())
    if not all(account.state in OUT_OF_SERVICE for account in accounts):
        return ""
    told = ", ".join(
        f"{account.name}, which is {account.state.replace('_', ' ')}" for account in accounts
    )
    return f"{told}; give it to others with: paceline reminder reassign {quote(run.campaign)}"


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
