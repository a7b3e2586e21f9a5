"""Reminders as people look at them: when they fire, what they have done, what they wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from paceline.core.hours import Hours
from paceline.core.instants import Instant, local_text
from paceline.core.states import DeliveryState, RunState
from paceline.engine.alerts import OUT_OF_SERVICE
from paceline.engine.commands.reminders import away, find, spec_of
from paceline.engine.ports import Account, Campaign, Reminder, Run, Tx
from paceline.engine.reminder_spec import ReminderSpec
from paceline.engine.summaries import retold
from paceline.engine.turns import begun_on, is_served, rank_of

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
    due: bool
    """Whether the first of them has come, and nobody has fired it yet."""
    runs: Sequence[RunView]
    """The latest ones, the latest first."""
    away: Sequence[str]
    """Which of its accounts cannot send as things stand, each in a sentence."""


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
        # One that is due and has not fired yet fires next, however long ago its time was.
        later = spec.rule.next_few(max(now, reminder.next_at), FIRINGS_SHOWN - 1)
        firings = [reminder.next_at, *later]
    return ReminderView(
        reminder=reminder,
        campaign=tx.campaigns.get(reminder.campaign_id),
        spec=spec,
        targets=targets,
        firings=firings,
        due=bool(firings) and firings[0] <= now,
        runs=runs_of(tx, reminder, runs_shown, now),
        away=away(tx, spec.campaign.accounts),
    )


def runs_of(tx: Tx, reminder: Reminder, limit: int, now: Instant) -> list[RunView]:
    """The latest firings, the latest first."""
    latest = tx.runs.latest(reminder.campaign_id, limit)
    return [_run_view(tx, run, reminder.zone, now) for run in latest]


def _run_view(tx: Tx, run: Run, zone: str, now: Instant) -> RunView:
    counts = tx.runs.counts(run.id)
    return RunView(retold(tx, run, counts), counts, waits_for(tx, run, zone, now))


def waits_for(tx: Tx, run: Run, zone: str, now: Instant) -> str:
    """What a firing waits for that is not over; empty for one of which something is sent."""
    if not is_served(run):
        return ""
    counts = tx.runs.accounts(run.id)
    left = tx.accounts.several(sorted(number for number in counts if _open(counts[number])))
    if not left:
        return ""
    if (opens_at := _opens_at(run, now)) is not None:
        return f"its window, which opens at {local_text(opens_at, zone)}"
    gone = [account for account in left.values() if account.state in OUT_OF_SERVICE]
    ahead = [
        (first, account)
        for account in left.values()
        if account.state not in OUT_OF_SERVICE
        if (first := _ahead_on(tx, run, account.id, now)) is not None
    ]
    if len(gone) + len(ahead) < len(left):
        # Somewhere nothing is in its way.
        return "its account" if run.state is RunState.WAITING else ""
    told = [_its_turn(run, ahead)] if ahead else []
    return "; ".join([*told, _out_of_service(run, gone)] if gone else told)


def _open(counts: Mapping[DeliveryState, int]) -> int:
    return counts[DeliveryState.READY] + counts[DeliveryState.SENDING]


def _opens_at(run: Run, now: Instant) -> Instant | None:
    if run.opens_at is not None and run.opens_at > now:
        return run.opens_at
    window = Hours.parse(run.window) if run.window else None
    return None if window is None or window.is_open(now) else window.next_open(now)


def _out_of_service(run: Run, away: Sequence[Account]) -> str:
    told = ", ".join(
        f"{account.name}, which is {account.state.replace('_', ' ')}" for account in away
    )
    return f"{told}; give it to others with: paceline reminder reassign {quote(run.campaign)}"


def _ahead_on(tx: Tx, run: Run, account_id: int, now: Instant) -> Run | None:
    """The firing that goes first on an account, if it is another one and nothing keeps it."""
    others = [
        other
        for other in tx.waiting.runs([account_id])
        if other.kind == "reminder" and other.id != run.id and _opens_at(other, now) is None
    ]
    begun = begun_on(tx, account_id, [run, *others])
    ranks = {one.id: rank_of(one, now, begun=one.id in begun) for one in (run, *others)}
    first = min((run, *others), key=lambda one: ranks[one.id])
    return None if first.id == run.id else first


def behind(tx: Tx, run: Run, account: Account, now: Instant) -> str:
    """Behind whom a firing waits on one of its accounts; empty where it is its turn."""
    first = _ahead_on(tx, run, account.id, now)
    return "" if first is None else _its_turn(run, [(first, account)])


def _its_turn(run: Run, ahead: Sequence[tuple[Run, Account]]) -> str:
    by_run: dict[int, list[str]] = {}
    for first, account in ahead:
        by_run.setdefault(first.id, []).append(account.name)
    firsts = {first.id: first for first, _ in ahead}
    told = [f"{_named(firsts[number], run)} on {', '.join(on)}" for number, on in by_run.items()]
    return f"its turn, behind {' and '.join(told)}"


def _named(first: Run, run: Run) -> str:
    """One of the same reminder goes by its number."""
    return f"run {first.id}" if first.campaign_id == run.campaign_id else first.campaign
