"""Never misreported: a run of a reminder that is over is told as it was, in its state, its counts,
its summary and its alert.

Judged by the deliveries as they stood in the very commit that ended it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.core.instants import MINUTE
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState, RunState
from paceline.sim.checks.evidence import OVER, Evidence, Violation
from paceline.sim.checks.fanouts import CLOSED, FAR, STOPPED, Fired, fired
from paceline.sim.checks.firings import in_force
from paceline.sim.checks.time import wall
from paceline.sim.diary import Annals, Entry

PROMISE = "never misreported"
ENDED = (RunState.SUCCESS, RunState.PARTIAL, RunState.FAILED)
REASONS = 5
SILENT_US = 5 * MINUTE
"""Whoever has sent nothing for so long is not sending, unless that is its pace."""
KINDS = {
    RunState.MISSED: "reminder.missed",
    RunState.PARTIAL: "reminder.unfinished",
    RunState.FAILED: "reminder.unfinished",
}
"""What is told of a run that did not reach everybody."""


def misreported(evidence: Evidence) -> Iterator[Violation]:
    annals = evidence.annals
    if annals is None:
        return
    runs = fired(annals)
    for entry in annals.entries:
        for what in _faults(evidence, annals, runs[entry.run.id], entry):
            text = f"run {entry.run.id} of {entry.run.campaign} is {entry.run.state}: {what}"
            yield Violation(PROMISE, text, entry.at)
    over = (*ENDED, RunState.MISSED, RunState.CANCELLED)
    for run in evidence.runs.values():
        if run.kind == "reminder" and evidence.came_to_rest and run.state not in over:
            yield Violation(PROMISE, f"run {run.id} is still {run.state}", evidence.ended_at)


def _faults(evidence: Evidence, annals: Annals, run: Fired, entry: Entry) -> Iterator[str]:
    """What is wrong with how a commit has left a run."""
    states = Counter(delivery.state for delivery in entry.deliveries)
    if any(entry.counted[state] != states[state] for state in DeliveryState):
        yield f"the counters say {dict(entry.counted)}, there are {dict(states)}"
    if entry.run.total != len(entry.deliveries):
        yield f"its total is {entry.run.total}, there are {len(entry.deliveries)}"
    if entry.run.state in ENDED and entry.deliveries:
        yield from _end(_Cut(evidence, annals, run, entry), states, _zone(annals, run, entry))
    if entry.run.state in (*ENDED, RunState.MISSED):
        yield from _alert(annals, entry)


def _zone(annals: Annals, run: Fired, entry: Entry) -> str:
    """By whose clock its end is told: its own window's. One that need not wait for its window to
    open keeps only the instant at which it closes, and is told by the reminder's clock."""
    if run.reminding.raw.get("before_open") != "send":
        return run.reminding.zone
    return in_force(annals.book.terms[entry.run.campaign], entry.page).reminding.zone


@dataclass(frozen=True)
class _Cut:
    """A run in the commit that ended it, and which of its accounts stood still by then."""

    evidence: Evidence
    annals: Annals
    run: Fired
    entry: Entry

    @property
    def was_paused(self) -> bool:
        return self.annals.pages[self.entry.page - 1].runs.get(self.entry.run.id) == "paused"

    def tellings(self) -> Iterator[dict[int, str]]:
        """What may be said of the accounts that were not sending any more when the window closed.
        One that had paused for about as long as may be is told either way."""
        number = [one.account_id or 0 for one in self.entry.deliveries if one.reason == CLOSED]
        sure: dict[int, str] = {}
        doubtful: dict[int, str] = {}
        for account_id in sorted(set(number)):
            name = self.evidence.accounts[account_id]
            still = self._stopped(account_id, name)
            idle = f"the window closed, and nothing was sent from {name}"
            if still:
                sure[account_id] = still
            elif self._is_silent(account_id, SILENT_US + self._pace_us()):
                sure[account_id] = idle
            elif self._is_silent(account_id, SILENT_US):
                doubtful[account_id] = idle
        yield sure
        if doubtful:
            yield sure | doubtful

    def _stopped(self, account_id: int, name: str) -> str:
        entry = self.entry
        if entry.stopped is not None and entry.stopped[1] < self.run.closes_at:
            return f"the window closed while everything was stopped: {entry.stopped[0]}"
        if self.was_paused:
            return f"the window closed while it was paused: {entry.paused_because}"
        state, reason = entry.accounts.get(account_id, ("active", ""))
        stands = state.replace(" ", "_") in STOPPED
        return f"the window closed while {name} was {state}: {reason}" if stands else ""

    def _is_silent(self, account_id: int, for_us: int) -> bool:
        """Whether nothing was about to go from an account so long before the window closed."""
        closes_at = self.run.closes_at
        begun_at = max(self.entry.run.started_at or closes_at, self.entry.run.opens_at or 0)
        return begun_at <= closes_at - for_us and not any(
            closes_at - for_us <= row.intent_at < closes_at
            for page in self.annals.pages[: self.entry.page]
            for row in page.rows
            if row.kind == "intent" and row.account_id == account_id
        )

    def _pace_us(self) -> int:
        """The most that any pace of this world lets pass between two messages."""
        return max((_pause_us(policy) for policy in self.evidence.policies.values()), default=0)


def _pause_us(policy: Policy) -> int:
    rate, batch = policy.rate, policy.batch
    between_us = policy.longest_gap_us + (batch.pause_us if batch is not None else 0)
    return between_us + (rate.per_us // rate.count if rate is not None else 0)


def _end(cut: _Cut, states: Counter[DeliveryState], zone: str) -> Iterator[str]:
    entry = cut.entry
    for delivery in entry.deliveries:
        doubt = delivery.state is DeliveryState.UNKNOWN and delivery.due_at is None
        if delivery.state not in OVER and not doubt:
            yield f"delivery {delivery.id} is {delivery.state}"
    sent, total = states[DeliveryState.SENT], len(entry.deliveries)
    state = RunState.SUCCESS if sent == total else RunState.PARTIAL if sent else RunState.FAILED
    if entry.run.state is not state:
        yield f"{sent} of {total} were sent"
    told = [_summary(cut, still, sent, zone) for still in cut.tellings()]
    if entry.run.summary not in told:
        yield f"it says {entry.run.summary!r}, not {told[0]!r}"


def _summary(cut: _Cut, still: Mapping[int, str], sent: int, zone: str) -> str:
    """What there is to say of it; ``still`` are the accounts that stood still by then, and why."""
    evidence, run, entry = cut.evidence, cut.run, cut.entry
    cut_off = [delivery for delivery in entry.deliveries if delivery.reason == CLOSED]
    busy = {one.account_id or 0 for one in cut_off} - still.keys()
    whom = "groups" if entry.deliveries[0].target.endswith("@g.us") else "recipients"
    told = [f"{sent} of {len(entry.deliveries)} {whom} delivered{_hands(evidence, entry)}."]
    if cut_off and run.closes_at != FAR:
        here = f"{wall(run.closes_at, zone):%H:%M}"
        here = "24:00" if here == "00:00" else here
        told.insert(0, f"Delivery window closed at {here} ({zone}).")
        if sent and busy:
            names = [evidence.accounts[number] for number in sorted(busy)]
            told.append(
                f"{_those(names, len(_accounts(entry)))} at capacity for this fan-out: consider "
                "sending the remainder from another paired account (paceline reminder fire "
                f"{entry.run.campaign} --rest --run {entry.run.id} --from ACCOUNT)."
            )
    reasons = Counter(
        (str(one.state), still.get(one.account_id or 0, "") if one.reason == CLOSED else one.reason)
        for one in entry.deliveries
        if one.state is not DeliveryState.SENT
        if one.reason != CLOSED or one.account_id in still
    )
    if reasons:
        told.append(f"Not delivered: {_grouped(reasons)}.")
    return " ".join(told)


def _those(names: list[str], among: int) -> str:
    if len(names) == among:
        return "This account is" if among == 1 else "These accounts are"
    several = f"{', '.join(names[:-1])} and {names[-1]} are"
    return several if len(names) > 1 else f"{names[0]} is"


def _accounts(entry: Entry) -> Counter[int]:
    """Who took part, and what each has sent."""
    found: Counter[int] = Counter()
    for delivery in entry.deliveries:
        assert delivery.account_id is not None, "a reminder deals everything out"
        found[delivery.account_id] += delivery.state is DeliveryState.SENT
    return found


def _hands(evidence: Evidence, entry: Entry) -> str:
    found = sorted(_accounts(entry).items())
    names = [f"{evidence.accounts[number]} ({sent})" for number, sent in found]
    if len(names) == 1:
        return f" from {evidence.accounts[found[0][0]]}"
    return f" from {', '.join(names[:-1])} and {names[-1]}"


def _grouped(reasons: Counter[tuple[str, str]]) -> str:
    ranked = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    told = [
        f"{count} {state} ({reason})" if reason else f"{count} {state}"
        for (state, reason), count in ranked[:REASONS]
    ]
    more = sum(count for _, count in ranked[REASONS:])
    return ", ".join([*told, f"{more} for other reasons"] if more else told)


def _alert(annals: Annals, entry: Entry) -> Iterator[str]:
    """Whoever missed or fell short is told of, and whoever reached everybody ends that. Of several
    at once the last is told, and the others are counted."""
    opened = {
        alert.kind: alert
        for alert in annals.pages[entry.page].alerts.values()
        if alert.cleared_at is None and alert.text.startswith(f"reminder {entry.run.campaign}: ")
    }
    others = [
        other
        for other in annals.entries
        if other.page == entry.page and other.run.campaign == entry.run.campaign
    ]
    kinds = Counter(KINDS.get(other.run.state) for other in others)
    kind = KINDS.get(entry.run.state)
    if kind is None:
        for left in opened.values() if len(others) == 1 else ():
            yield f"an alert is open yet: {left.text}"
        return
    alert = opened.get(kind)
    before = 0 if alert is None else _count_before(annals, entry.page, alert.id)
    if alert is None or alert.count - before != kinds[kind]:
        yield f"nobody is told of it: {entry.run.summary!r}"
    elif not any(alert.text.endswith(other.run.summary) for other in others):
        yield f"something else is told of it: {alert.text!r}"


def _count_before(annals: Annals, page: int, alert_id: int) -> int:
    known = annals.pages[page - 1].alerts.get(alert_id)
    return 0 if known is None else known.count
