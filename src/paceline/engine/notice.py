"""What a notice says: one alert, or all that were raised of a kind within a short while.

Only the words are made here. Whom they reach, when and how often is the teller's affair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paceline.core.durations import print_duration
from paceline.core.instants import SECOND
from paceline.engine.alerts import (
    AWAY,
    BOUNCES,
    BREAKER,
    SIGNALLED,
    THROTTLED,
    grouped,
    reasons_text,
)
from paceline.engine.ports import Alert, Tx

NAMED = 3
"""Accounts and campaigns that are named one by one; the others are counted."""

_HAPPENED = {
    BREAKER: "breaker open on {}",
    SIGNALLED: "campaigns paused by a signal on {}",
    BOUNCES: "{} paused for too many bounces",
    THROTTLED: "{} held back time and again",
    AWAY: "{} cannot be opened",
}
"""What has happened to several accounts, by its kind; else the kind's own words are used."""


class Notice(NamedTuple):
    title: str
    text: str


def notice_of(alert: Alert) -> Notice:
    return Notice(title_of(alert), text_of(alert))


def title_of(alert: Alert) -> str:
    return f"Paceline: {_subject(alert.kind)} {_in_words(alert.kind)}"


def text_of(alert: Alert) -> str:
    """All that is known, for whoever reads it on a phone."""
    lines = [alert.text]
    if alert.reasons:
        lines.append(f"Why: {reasons_text(alert.reasons)}")
    if alert.count > 1:
        lasting = print_duration((alert.last_at - alert.first_at) // SECOND * SECOND)
        lines.append(f"It has happened {alert.count} times within {lasting}.")
    lines.append(f"See: paceline alerts; when it is seen to: paceline alert clear {alert.id}")
    return "\n".join(lines)


def notice_of_many(tx: Tx, alerts: Sequence[Alert]) -> Notice:
    """Several of one kind in one notice: to whom it has happened, and why, all taken together."""
    accounts = list(dict.fromkeys(a.account_id for a in alerts if a.account_id is not None))
    runs = list(dict.fromkeys(a.run_id for a in alerts if a.run_id is not None))
    kind, times = alerts[0].kind, sum(alert.count for alert in alerts)
    if not accounts:
        lines = _one_by_one(alerts)
    else:
        happened = _HAPPENED.get(kind, f"{{}} {_in_words(kind)}")
        told = happened.format(_several(len(accounts), "account"))
        names = _named([tx.accounts.get(one).name for one in accounts[:NAMED]], accounts)
        lines = [f"{told}: {names}"]
        if runs:
            names = _named([tx.runs.get(one).campaign for one in runs[:NAMED]], runs)
            lines.append(f"{_several(len(runs), 'campaign')} paused: {names}")
        lines.append(f"Why: {reasons_text(_reasons(alerts))}")
    if times > len(alerts):
        lines.append(f"It has happened {times} times.")
    numbers = spans(alert.id for alert in alerts)
    seen = "See: paceline alerts; when one is seen to: paceline alert clear ID"
    lines.append(f"Alerts {numbers}. {seen}")
    return Notice(f"{title_of(alerts[0])} ({len(alerts)} alerts)", "\n".join(lines))


def _one_by_one(alerts: Sequence[Alert]) -> list[str]:
    """Of what is about no account, such as reminders: each has its own story, so it is told."""
    kind, rest = alerts[0].kind, len(alerts) - NAMED
    lines = [f"{_several(len(alerts), _subject(kind))} {_in_words(kind)}:"]
    lines += [alert.text for alert in alerts[:NAMED]]
    return [*lines, f"and {rest} more"] if rest > 0 else lines


def _subject(kind: str) -> str:
    return kind.partition(".")[0]


def _in_words(kind: str) -> str:
    return kind.partition(".")[2].replace("_", " ")


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _named(names: Sequence[str], among: Sequence[int]) -> str:
    """The first few by name: ``ann, bob, eve and 34 more``."""
    rest = len(among) - len(names)
    return f"{', '.join(names)} and {rest} more" if rest else ", ".join(names)


def _reasons(alerts: Iterable[Alert]) -> tuple[tuple[str, int], ...]:
    """What was said about all of them. Where an alert counts no reasons of its own, its text ends
    with the one there is."""
    counted: Counter[str] = Counter()
    for alert in alerts:
        for reason, count in alert.reasons:
            counted[reason] += count
        if not alert.reasons:
            counted[alert.text.partition(": ")[2] or alert.text] += 1
    return grouped(sorted(counted.items(), key=lambda said: (-said[1], said[0])))


def spans(numbers: Iterable[int]) -> str:
    """Numbers in order, those that follow each other as one: ``3, 7-41``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
