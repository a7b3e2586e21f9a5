"""Never untold: whoever has to look at something hears of it, of that alone, and not again for
nothing.

Judged from the tables as every commit left them, and from what reached the operators' phone. An
alert and its cause belong to one commit, so that no crash can come between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.policy import Policy
from paceline.engine.ports import Alert, LedgerRow
from paceline.sim.checks.care import FAILED
from paceline.sim.checks.evidence import Evidence, Violation
from paceline.sim.checks.signal_records import setbacks_of
from paceline.sim.chronicle import Page
from paceline.sim.phone import Rung

PROMISE = "never untold"

AWAY = "account.away"
"""That an account cannot be opened is nobody's answer: nothing in the tables is its cause."""
STOPPED = ("paused", "suspended", "cooling_down")
"""States of an account that somebody has to know of, when they come by themselves."""
PASSING = ("account.throttled", AWAY)
"""What nobody resumes."""
AGAIN_US = HOUR
ABANDONED_US = 2 * MINUTE
QUIET_US = HOUR
SETBACKS = 3
PATIENCE_US = 20 * MINUTE
"""How long the last notice may take in fair weather: one that failed is tried again by and by."""
SLACK_US = 110 * SECOND
"""From the moment in which somebody sets out to tell until it rings, and is written down: whoever
tells may fall asleep over it."""


def untold(evidence: Evidence) -> Iterator[Violation]:
    if not evidence.pages:
        return
    counts = _Counts(evidence)
    setbacks = setbacks_of(evidence)
    for number, (before, page) in enumerate(pairwise(evidence.pages), start=1):
        counts.take_in(page)
        yield from _raised(counts, before, page)
        yield from _held_back(counts, setbacks.get(number, ()), before, page)
        yield from _ended(evidence, before, page)
    yield from _told(evidence)


def _violation(text: str, at: Instant, alert: Alert | None = None) -> Violation:
    return Violation(PROMISE, text if alert is None else f"{text}: {alert.text}", at)


# ---------------------------------------------------------------------- with its cause


@dataclass
class _Counts:
    """Failures as they were written down."""

    evidence: Evidence
    failures: dict[tuple[int, int], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """By account and run, how often each reason was given."""
    policies: dict[tuple[int, int], Policy] = field(default_factory=dict)
    """Under which the last of them was sent."""
    refused: Counter[int] = field(default_factory=Counter)
    """By account, what was not accepted since something was."""

    def take_in(self, page: Page) -> None:
        for row in page.rows:
            place = (row.account_id, row.run_id)
            if row.kind == "outcome" and row.outcome != "accepted":
                self.refused[row.account_id] += 1
            elif row.kind == "outcome" and row.generation == page.accounts[row.account_id][1]:
                self.refused[row.account_id] = 0
            if row.kind == "outcome" and row.outcome in FAILED:
                self.failures[place][row.reason or row.outcome] += 1
                self.policies[place] = self.evidence.policies[row.policy_id]


def _raised(counts: _Counts, before: Page, page: Page) -> Iterator[Violation]:
    """Whatever stops by itself raises one alert in the same commit, and nothing else does."""
    if not page.by_engine:
        return
    causes: Counter[str] = Counter()
    for account_id, (state, _, _) in page.accounts.items():
        known = before.accounts.get(account_id, ("", 0, False))[0]
        if state != known and state in STOPPED:
            causes[f"account {account_id}"] += 1
    for run_id, state in page.runs.items():
        if state == "paused" and before.runs.get(run_id) != "paused":
            causes[f"run {run_id}"] += 1
    answered = [row for row in page.rows if row.kind != "intent"]
    for alert in page.alerts.values():
        times = alert.count - (before.alerts[alert.id].count if alert.id in before.alerts else 0)
        if not times or alert.kind == AWAY:
            continue
        whose = f"run {alert.run_id}" if alert.run_id is not None else f"account {alert.account_id}"
        allowed = causes.pop(whose, 0) if alert.kind != "account.throttled" else 0
        if not allowed and _is_repeated(alert, answered):
            allowed = times
        if times != allowed:
            yield _violation(f"raised {times} times, with {allowed} causes", page.at, alert)
        yield from _reasons(counts, alert, page)
    for whose in causes:
        yield _violation(f"{whose} has stopped by itself, and nobody is told", page.at)


def _held_back(
    counts: _Counts, setbacks: Iterable[tuple[int, int]], before: Page, page: Page
) -> Iterator[Violation]:
    """An account that is held back three times in a row or more is told of every time, and one that
    was not is never."""
    times = {
        alert.account_id: alert.count - known.count if known else alert.count
        for alert in page.alerts.values()
        for known in [before.alerts.get(alert.id)]
        if alert.kind == "account.throttled" and (known is None or known.count != alert.count)
    }
    for account_id in times:
        if account_id is not None and counts.refused[account_id] < SETBACKS:
            refused = counts.refused[account_id]
            yield _violation(f"account {account_id} is held back, after {refused} only", page.at)
    for account_id, in_a_row in setbacks:
        if in_a_row >= SETBACKS and account_id not in times:
            text = (
                f"account {account_id} is held back {in_a_row} times in a row, and nobody is told"
            )
            yield _violation(text, page.at)


def _is_repeated(alert: Alert, answered: list[LedgerRow]) -> bool:
    """What may happen any number of times while nothing stops anew: an account is held back, or
    banned once more, by an answer of this very commit."""
    theirs = [row for row in answered if row.account_id == alert.account_id]
    if alert.kind == "account.cooling_down":
        return any(row.outcome == "banned" for row in theirs)
    return alert.kind == "account.throttled" and any(row.outcome != "accepted" for row in theirs)


def _reasons(counts: _Counts, alert: Alert, page: Page) -> Iterator[Violation]:
    """The reasons are those that were given, as often as they were, and enough to trip it."""
    if alert.kind != "campaign.breaker" or alert.run_id is None or alert.account_id is None:
        return
    place = (alert.account_id, alert.run_id)
    given, policy = counts.failures[place], counts.policies.get(place)
    told, breaker = sum(count for _, count in alert.reasons), policy.breaker if policy else None
    if policy is None:
        yield _violation("a breaker has tripped, and nothing has failed", page.at, alert)
    elif breaker is not None and told * 10_000 <= breaker.above.basis_points * breaker.samples:
        yield _violation(f"{told} failures are told, which trip no breaker", page.at, alert)
    for reason, count in alert.reasons:
        if "other reasons" not in reason and count > given[reason]:
            text = f"{reason!r} is told {count} times, and was given {given[reason]} times"
            yield _violation(text, page.at, alert)


# ---------------------------------------------------------------------- until it is gone


def _ended(evidence: Evidence, before: Page, page: Page) -> Iterator[Violation]:
    """An alert is open as long as its cause is there, unless a person has cleared it."""
    for number in before.alerts.keys() - page.alerts.keys():
        yield _violation("gone without a trace", page.at, before.alerts[number])
    for alert in page.alerts.values():
        gone = _cause_is_gone(alert, page)
        if alert.cleared_at is None:
            if gone:
                yield _violation("open, though its cause is gone", page.at, alert)
            continue
        known = before.alerts.get(alert.id)
        newly = known is not None and known.cleared_at is None
        over = gone or _is_over_it(evidence, alert, before, page)
        if newly and page.by_engine and not over:
            yield _violation("ended by itself, though its cause is there", page.at, alert)


def _cause_is_gone(alert: Alert, page: Page) -> bool:
    if alert.run_id is not None:
        return page.runs[alert.run_id] != "paused"
    assert alert.account_id is not None, "an alert is about a run or an account"
    state, _, removed = page.accounts[alert.account_id]
    if alert.kind in PASSING:
        return removed
    return removed or state not in STOPPED


def _is_over_it(evidence: Evidence, alert: Alert, before: Page, page: Page) -> bool:
    """An account that was held back is over it after a quiet hour, or with a cool-down."""
    if alert.kind not in PASSING or alert.cleared_at is None or alert.account_id is None:
        return False
    was, now = (one.accounts[alert.account_id][0] for one in (before, page))
    quiet_us = alert.cleared_at - alert.last_at + evidence.spread_us
    return quiet_us >= QUIET_US or (was in STOPPED and now not in STOPPED)


# ---------------------------------------------------------------------- told


def _told(evidence: Evidence) -> Iterator[Violation]:
    last = evidence.pages[-1].alerts
    rings: Mapping[int, list[Rung]] = defaultdict(list)
    for rung in evidence.rung:
        for number in rung.alerts:
            if number not in last:
                yield _violation(f"there is no alert {number}, of which was told", rung.at)
            rings[number].append(rung)
    for alert in last.values():
        if alert.id not in rings:
            yield from _never_told(evidence, alert)
        elif alert.told_at is not None and not any(rung.well for rung in rings[alert.id]):
            yield _violation(
                "written down as told, and it never rang well", evidence.ended_at, alert
            )
        for first, second in pairwise(rings[alert.id]):
            yield from _told_again(evidence, alert, first, second)


def _never_told(evidence: Evidence, alert: Alert) -> Iterator[Violation]:
    known = [page.at for page in evidence.pages if alert.id in page.alerts]
    opened = [
        page.at
        for page in evidence.pages
        if alert.id in page.alerts and page.alerts[alert.id].cleared_at is None
    ]
    ended_at = next((at for at in known if at > opened[-1]), evidence.ended_at)
    if alert.told_at is not None:
        yield _violation("written down as told, and it never rang", ended_at, alert)
    elif ended_at - max(opened[0], evidence.calm_at) > PATIENCE_US:
        yield _violation("nobody was ever told", ended_at, alert)


def _told_again(evidence: Evidence, alert: Alert, first: Rung, second: Rung) -> Iterator[Violation]:
    """Not for nothing: it has happened again and an hour has passed; or whoever told it before did
    not live to say so, or was told that nobody had answered."""
    if evidence.spread_us >= ABANDONED_US and second.at - first.at < 2 * ABANDONED_US:
        return  # by one of their clocks the other had set out long ago
    known = [page for page in evidence.pages if alert.id in page.alerts and page.at < second.at]
    since = max(
        [number for number, page in enumerate(known) if page.at < first.at - SLACK_US] or [0]
    )
    versions = [page.alerts[alert.id] for page in known[since:]]
    noted = len({version.told_at for version in versions}) > 1 or first.at >= evidence.calm_at
    since_at = versions[-1].told_at or first.at
    if first.well and noted:
        early = second.at - since_at + evidence.spread_us < AGAIN_US
        if early or versions[0].count == versions[-1].count:
            yield _violation("told again, though nothing is new", second.at, alert)
    elif first.well and second.at - first.at + evidence.spread_us + SLACK_US < ABANDONED_US:
        yield _violation("told twice at once", second.at, alert)


__all__ = ["untold"]
