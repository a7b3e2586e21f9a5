"""How a run is told when it is over: one or two sentences for people.

A run that its window cut off is told differently from one that failed here and there: the first
wants another account, the second wants its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.core import zones
from paceline.core.address import guess_kind
from paceline.core.hours import Hours
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports import Run, Tx, Undelivered

WINDOW_CLOSED = "delivery window closed"
"""The reason of what was skipped because of it, as the window's gate has it."""

REASONS_TOLD = 5

_ADVICE = "at capacity for this fan-out: consider sending the remainder from another paired account"


def summary(tx: Tx, run: Run, counts: Mapping[DeliveryState, int]) -> str:
    """What was delivered, and what was not and why not."""
    total, sent = sum(counts.values()), counts[DeliveryState.SENT]
    if run.kind != "reminder":
        return f"{sent} of {total} delivered{_by_state(counts)}"
    missing = tx.runs.undelivered(run.id)
    cut_off = [one for one in missing if one.reason == WINDOW_CLOSED]
    rest = [one for one in missing if one.reason != WINDOW_CLOSED]
    senders = _senders(tx, run)
    told = f"{sent} of {total} {_noun(tx, run)} delivered{_from(senders)}."
    why_not = f" Not delivered: {_reasons(rest)}." if rest else ""
    if not cut_off or run.closes_at is None:
        return told + why_not
    closed = f"Delivery window closed at {_wall(run, tx)}."
    if not sent:
        return f"{closed} {told}{why_not}"
    these = "This account is" if len(senders) == 1 else "These accounts are"
    return f"{closed} {told} {these} {_ADVICE}.{why_not}"


def _by_state(counts: Mapping[DeliveryState, int]) -> str:
    rest = [f"{n} {state}" for state, n in counts.items() if n and state is not DeliveryState.SENT]
    return f" ({', '.join(rest)})" if rest else ""


def _senders(tx: Tx, run: Run) -> list[tuple[str, int]]:
    """The accounts that took part, each with what it has sent."""
    found = {number: counts for number, counts in tx.runs.accounts(run.id).items() if number}
    names = tx.accounts.several(sorted(found))
    return [
        (names[number].name, counts[DeliveryState.SENT])
        for number, counts in found.items()
        if number in names and any(counts.values())
    ]


def _from(senders: Sequence[tuple[str, int]]) -> str:
    if len(senders) < 2:
        return "".join(f" from {name}" for name, _ in senders)
    *others, last = [f"{name} ({sent})" for name, sent in senders]
    return f" from {', '.join(others)} and {last}"


def _noun(tx: Tx, run: Run) -> str:
    """Reminders mostly go to groups; where they do not, nobody calls a person one."""
    first = tx.deliveries.page(run_id=run.id, limit=1)
    return "groups" if first and guess_kind(first[0].target) == "group" else "recipients"


def _wall(run: Run, tx: Tx) -> str:
    """When it closed, as its operator reads a clock; midnight is the end of the day."""
    if run.window is not None:
        zone = Hours.parse(run.window).zone  # somebody may have given the reminder another one
    else:
        zone = str(tx.campaigns.get(run.campaign_id).settings.get("zone", "UTC"))
    closes_at: Instant = run.closes_at or 0
    text = f"{zones.wall_at(closes_at, zone):%H:%M}"
    return f"{'24:00' if text == '00:00' else text} ({zone})"


def _reasons(missing: Sequence[Undelivered]) -> str:
    """Grouped and counted over the accounts, the most frequent first."""
    counted: dict[tuple[DeliveryState, str], int] = {}
    for one in missing:
        key = one.state, one.reason
        counted[key] = counted.get(key, 0) + one.deliveries
    ranked = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
    told = [
        f"{count} {state}" + (f" ({reason})" if reason else "")
        for (state, reason), count in ranked[:REASONS_TOLD]
    ]
    more = sum(count for _, count in ranked[REASONS_TOLD:])
    return ", ".join(told) + (f", {more} for other reasons" if more else "")
