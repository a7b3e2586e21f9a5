"""A naive judge of what a lane has sent: slow, by the wall clock, and knowing none of our code.

It is given the sends and the plain numbers of a policy, and says what was broken. It shares no
line with the gates it judges: wherever they are clever, it counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Rules:
    """A policy as bare numbers."""

    rate: tuple[int, int, int] | None = None  # count, period in microseconds, burst
    low_us: int = 0
    high_us: int = 0
    min_gap_us: int = 0
    batch: tuple[int, int] | None = None  # size, pause
    week: tuple[Pairs, ...] | None = None  # minutes of the day, Monday first
    zone: str = "UTC"
    blackout: frozenset[date] = frozenset()
    daily: dict[str, int] = field(default_factory=dict)
    weekly: dict[str, int] = field(default_factory=dict)
    warmup: tuple[int, int, int] | None = None  # start, percent a day, limit
    warm_since_at: int = 0
    adaptive: tuple[int, int, int] | None = None  # percent, bounds; always by half as much again


@dataclass
class Sent:
    """One part that a provider was called for.

    What came when is told by how many sends there had been: several things may share an instant.
    """

    asked_at: int
    intent_at: int
    at: int
    action: str
    reply: bool
    starts: bool
    run: int
    drawn_us: int
    refused_after: int | None = None


@dataclass(frozen=True)
class Settled:
    """One answer that counts for the error rate, in the order in which they came."""

    after: int
    run: int
    failed: bool


def wall(at: int, zone: str) -> datetime:
    return (EPOCH + timedelta(microseconds=at)).astimezone(ZoneInfo(zone))


def day(at: int, zone: str) -> date:
    """The date, which never goes back, not even where the clock does so over midnight."""
    here = wall(at, zone)
    if here.hour < 22:
        return here.date()
    minute = 60_000_000
    return max(here.date(), *(wall(at - m * minute, zone).date() for m in range(1, 121)))


def monday(at: int, zone: str) -> date:
    today = day(at, zone)
    return today - timedelta(days=today.weekday())


def problems(
    sends: Sequence[Sent],
    rules: Rules,
    settled: Sequence[Settled] = (),
    holds: Sequence[tuple[int, int]] = (),
) -> list[str]:
    """Everything that was done wrong, one line each.

    A hold is how many sends there had been when it began, and the instant at which it ends.
    """
    return [
        *_too_fast(sends, rules),
        *_over_a_cap(sends, rules),
        *_out_of_hours(sends, rules),
        *_too_close(sends, rules, settled),
        *_without_a_pause(sends, rules),
        *(
            f"sent at {sent.at} although held until {until_at}"
            for after, until_at in holds
            for sent in sends[after:]
            if sent.asked_at < until_at
        ),
    ]


def _too_fast(sends: Sequence[Sent], rules: Rules) -> Iterator[str]:
    """In every interval between two sends: no more than burst + rate x time."""
    if rules.rate is None:
        return
    count, per_us, burst = rules.rate
    instants = sorted(sent.at for sent in sends)
    for first, from_at in enumerate(instants):
        for last in range(first + burst, len(instants)):
            number, lasting_us = last - first + 1, instants[last] - from_at
            if (number - burst) * per_us > lasting_us * count:
                yield f"{number} sends within {lasting_us} us from {from_at}: rate {rules.rate}"


def _over_a_cap(sends: Sequence[Sent], rules: Rules) -> Iterator[str]:
    for number, sent in enumerate(sends):
        for caps, period in ((rules.daily, day), (rules.weekly, monday)):
            cap = caps.get(sent.action)
            if period is day:
                cap = _warming(cap, sent, rules)
            if cap is None:
                continue
            here = period(sent.intent_at, rules.zone)
            used = [
                other
                for other in sends[: number + 1]
                if other.action == sent.action
                and (other.refused_after is None or other.refused_after > number)
                and period(other.intent_at, rules.zone) == here
            ]
            if len(used) > cap:
                yield f"{len(used)} of {cap} {sent.action} in the {period.__name__} of {here}"


def _warming(cap: int | None, sent: Sent, rules: Rules) -> int | None:
    if rules.warmup is None or sent.reply:
        return cap
    start, percent, limit = rules.warmup
    days = (day(sent.intent_at, rules.zone) - day(rules.warm_since_at, rules.zone)).days
    ramp = min(limit, int(start * Fraction(100 + percent, 100) ** max(0, days)))
    return ramp if cap is None else min(cap, ramp)


def _out_of_hours(sends: Sequence[Sent], rules: Rules) -> Iterator[str]:
    for sent in sends:
        if sent.reply or not sent.starts:
            continue
        here = wall(sent.at, rules.zone)
        minute = here.hour * 60 + here.minute
        if here.date() in rules.blackout:
            yield f"sent on {here}, which is blacked out"
        intervals = ((0, 1440),) if rules.week is None else rules.week[here.weekday()]
        if not any(start <= minute < end for start, end in intervals):
            yield f"sent at {here:%a %H:%M:%S}, out of hours"


def _too_close(sends: Sequence[Sent], rules: Rules, settled: Sequence[Settled]) -> Iterator[str]:
    least_us = max(rules.low_us, rules.min_gap_us)
    for before, sent in _paced_starts(sends):
        needed_us = before.drawn_us
        if not least_us <= needed_us <= max(rules.high_us, rules.min_gap_us):
            yield f"a gap of {needed_us} us was drawn"
        if rules.adaptive is not None:
            percent, low_us, high_us = rules.adaptive
            number = next(n for n, one in enumerate(sends) if one is sent)
            seen = [s for s in settled if s.run == sent.run and s.after <= number][-100:]
            if sum(s.failed for s in seen) * 100 > percent * len(seen):
                needed_us = -(-needed_us * 3 // 2)
            needed_us = min(max(needed_us, low_us), high_us)
        if sent.at - before.at < needed_us:
            yield f"only {sent.at - before.at} us after {before.at}, not {needed_us}"


def _without_a_pause(sends: Sequence[Sent], rules: Rules) -> Iterator[str]:
    """Among so many gaps as a batch has sends, one at least is the pause."""
    if rules.batch is None:
        return
    size, pause_us = rules.batch
    gaps_us = [sent.at - before.at for before, sent in _paced_starts(sends)]
    for first in range(len(gaps_us) - size + 1):
        longest_us = max(gaps_us[first : first + size])
        if longest_us < pause_us + max(rules.low_us, rules.min_gap_us):
            yield f"more than {size} sends without a pause, from paced send {first} on"


def _paced_starts(sends: Sequence[Sent]) -> Iterator[tuple[Sent, Sent]]:
    """Every delivery that began, with the paced part before it."""
    paced = sorted((sent for sent in sends if not sent.reply), key=lambda sent: sent.at)
    for before, sent in pairwise(paced):
        if sent.starts:
            yield before, sent
