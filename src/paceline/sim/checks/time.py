"""Never out of hours: by the wall clock of each zone, minute by minute, knowing no shortcut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from paceline.core.hours import Hours
from paceline.core.instants import MINUTE, Instant, to_datetime
from paceline.sim.checks.evidence import Evidence, Violation, words


def out_of_hours(evidence: Evidence) -> Iterator[Violation]:
    """No delivery starts outside business hours or its run's window.

    Judged by the caller's clock: what the machine believes is all that it can go by. A delivery
    that has started finishes.
    """
    for call in evidence.calls:
        policy, facts = evidence.policy_of(call), call.facts
        if policy is None or facts is None or call.part > 0 or facts.reply:
            continue
        run = evidence.runs[facts.run_id]
        window = None if run.window is None else _hours(run.window)
        delivery = evidence.by_id[call.delivery_id]
        theirs = None if delivery.recipient_hours is None else _hours(delivery.recipient_hours)
        kept = ((policy.hours, call.account), (window, run.campaign), (theirs, call.target))
        for hours, whose in kept:
            if hours is not None and not is_open(hours, call.clock_at):
                here = wall(call.clock_at, hours.zone)
                text = f"{call.key} started {here:%a %H:%M:%S}, out of the hours of {whose}"
                yield Violation("never out of hours", text, call.at, words(call))
        closes_at = run.closes_at
        if closes_at is not None and call.clock_at >= closes_at:
            text = f"{call.key} started at {call.clock_at}, its window closed at {closes_at}"
            yield Violation("never out of hours", text, call.at, words(call))
        expires_at = delivery.expires_at
        if expires_at is not None and call.clock_at >= expires_at:
            text = f"{call.key} started at {call.clock_at}, it had expired at {expires_at}"
            yield Violation("never out of hours", text, call.at, words(call))


def is_open(hours: Hours, at: Instant) -> bool:
    here = wall(at, hours.zone)
    minute = here.hour * 60 + here.minute
    intervals = hours.week[here.weekday()]
    return here.date() not in hours.blackout and any(a <= minute < b for a, b in intervals)


def wall(at: Instant, zone: str) -> datetime:
    return to_datetime(at).astimezone(ZoneInfo(zone))


@lru_cache(maxsize=10_000)
def _day(minute: int, zone: str) -> date:
    at = minute * MINUTE
    here = wall(at, zone)
    if here.hour < 22:
        return here.date()
    # Where a clock goes back over midnight, the new day does not end again.
    return max(here.date(), *(wall(at - m * MINUTE, zone).date() for m in range(1, 121)))


def day_of(at: Instant, zone: str) -> date:
    return _day(at // MINUTE, zone)


def monday_of(at: Instant, zone: str) -> date:
    today = day_of(at, zone)
    return today - timedelta(days=today.weekday())


@lru_cache(maxsize=256)
def _hours(text: str) -> Hours:
    return Hours.parse(text)
