"""Never misreported: a run of a reminder that is over is told as it was, in its state, its counts,
its summary and its alert.

Judged by the deliveries as they stood in the very commit that ended it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from paceline.core.states import DeliveryState, RunState
from paceline.sim.checks.evidence import OVER, Evidence, Violation
from paceline.sim.checks.fanouts import CLOSED, FAR, Fired, fired
from paceline.sim.checks.firings import in_force
from paceline.sim.checks.time import wall
from paceline.sim.diary import Annals, Entry

PROMISE = "never misreported"
ENDED = (RunState.SUCCESS, RunState.PARTIAL, RunState.FAILED)
REASONS = 5
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
        yield from _end(evidence, run, entry, states, _zone(annals, run, entry))
    if entry.run.state in (*ENDED, RunState.MISSED):
        yield from _alert(annals, entry)


def _zone(annals: Annals, run: Fired, entry: Entry) -> str:
    """By whose clock its end is told: its own window's. One that need not wait for its window to
    open keeps only the instant at which it closes, and is told by the reminder's clock."""
    if run.reminding.raw.get("before_open") != "send":
        return run.reminding.zone
    return in_force(annals.book.terms[entry.run.campaign], entry.page).reminding.zone


def _end(
    evidence: Evidence, run: Fired, entry: Entry, states: Counter[DeliveryState], zone: str
) -> Iterator[str]:
    for delivery in entry.deliveries:
        doubt = delivery.state is DeliveryState.UNKNOWN and delivery.due_at is None
        if delivery.state not in OVER and not doubt:
            yield f"delivery {delivery.id} is {delivery.state}"
    sent, total = states[DeliveryState.SENT], len(entry.deliveries)
    state = RunState.SUCCESS if sent == total else RunState.PARTIAL if sent else RunState.FAILED
    if entry.run.state is not state:
        yield f"{sent} of {total} were sent"
    told = _summary(evidence, run, entry, sent, zone)
    if entry.run.summary != told:
        yield f"it says {entry.run.summary!r}, not {told!r}"


def _summary(evidence: Evidence, run: Fired, entry: Entry, sent: int, zone: str) -> str:
    """What there is to say of it."""
    cut_off = [delivery for delivery in entry.deliveries if delivery.reason == CLOSED]
    whom = "groups" if entry.deliveries[0].target.endswith("@g.us") else "recipients"
    told = [f"{sent} of {len(entry.deliveries)} {whom} delivered{_hands(evidence, entry)}."]
    if cut_off and run.closes_at != FAR:
        here = f"{wall(run.closes_at, zone):%H:%M}"
        here = "24:00" if here == "00:00" else here
        told.insert(0, f"Delivery window closed at {here} ({zone}).")
        if sent:
            these = "This account is" if len(_accounts(entry)) == 1 else "These accounts are"
            told.append(
                f"{these} at capacity for this fan-out: consider sending the remainder from "
                "another paired account."
            )
    reasons = Counter(
        (str(one.state), one.reason)
        for one in entry.deliveries
        if one.state is not DeliveryState.SENT and one.reason != CLOSED
    )
    if reasons:
        told.append(f"Not delivered: {_grouped(reasons)}.")
    return " ".join(told)


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
