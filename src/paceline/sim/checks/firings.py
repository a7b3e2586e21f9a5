"""Never misfired: a reminder fires at every one of its times once, or says why it did not.

When it was to fire is found out by walking through the night minute by minute with a clock on the
wall, knowing nothing of how the engine does it. The clock shows a minute; whatever it has not shown
before is new, and so is whatever it has skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from paceline.core.instants import HOUR, MINUTE, Instant, iso, local_text
from paceline.core.states import RunState
from paceline.sim.checks.evidence import Evidence, Violation
from paceline.sim.checks.time import day_of, wall
from paceline.sim.diary import Annals, Entry
from paceline.sim.reminding import Reminding, Terms

PROMISE = "never misfired"

LATE_US = 2 * MINUTE
"""Up to so late somebody counts as having been there in time."""
STARTING_US = 5 * MINUTE
"""How long after the bad weather everybody is back."""

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MISSED = re.compile(r"Missed (?:(more than )?(\d+) times, (.+?) to )?(.+?): (.+)\.", re.DOTALL)


# ---------------------------------------------------------------------- when


def times(reminding: Reminding, after_at: Instant, until_at: Instant) -> list[Instant]:
    """All times of a reminder after the one instant and up to the other."""
    matches = _matcher(reminding.raw)
    # From some hours before, to know what the clock has shown already.
    at = (after_at - 4 * HOUR) // MINUTE * MINUTE
    shown = _minute(at, reminding.zone)
    found = []
    while (at := at + MINUTE) <= until_at:
        now = _minute(at, reminding.zone)
        fires = False
        while shown < now:
            shown += timedelta(minutes=1)
            fires = fires or matches(shown)
        if fires and at > after_at:
            found.append(at)
    return found


def _minute(at: Instant, zone: str) -> datetime:
    return wall(at, zone).replace(tzinfo=None, fold=0, second=0, microsecond=0)


def _matcher(raw: Mapping[str, object]) -> Callable[[datetime], bool]:
    if "at" in raw:
        once = datetime.fromisoformat(str(raw["at"]))
        return lambda shown: shown == once
    minute, hour, day, month, weekday = str(raw["cron"]).split()

    def matches(shown: datetime) -> bool:
        return (
            _names(minute, shown.minute)
            and _names(hour, shown.hour)
            and _names(day, shown.day)
            and _names(month, shown.month)
            and _names(weekday, shown.isoweekday() % 7)
        )

    return matches


def _names(field_text: str, value: int) -> bool:
    """Whether a field of a cron rule names a number: ``*``, ``*/30``, ``1-4``, ``SUN,6``."""
    for part in field_text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            first, last = "0", "59"
        low, high = _number(first), _number(last or first)
        if low <= value <= high and (value - low) % int(step or 1) == 0:
            return True
    return False


def _number(text: str) -> int:
    return _DAYS.index(text) if text in _DAYS else int(text)


def closes_at(reminding: Reminding, at: Instant) -> Instant:
    """When the window closes on the day of an instant: after its last open minute; the instant
    itself on a day on which it never opens."""
    last = _last_open_minute(str(reminding.raw["window"]), reminding.zone, at // MINUTE)
    return at if last is None else (last + 1) * MINUTE


@lru_cache(maxsize=1_000)
def _last_open_minute(window: str, zone: str, minute: int) -> int | None:
    today = day_of(minute * MINUTE, zone)
    far = 26 * HOUR // MINUTE
    for other in range(minute + far, minute - far, -1):
        if day_of(other * MINUTE, zone) == today and _is_open(window, zone, other * MINUTE):
            return other
    return None


def in_window(reminding: Reminding, at: Instant) -> bool:
    return _is_open(str(reminding.raw["window"]), reminding.zone, at)


def before_window(reminding: Reminding, at: Instant) -> bool:
    here = wall(at, reminding.zone)
    return here.hour * 60 + here.minute < _clock(str(reminding.raw["window"]).split("-")[0])


def _is_open(window: str, zone: str, at: Instant) -> bool:
    here = wall(at, zone)
    opens, closes = (_clock(text) for text in window.split("-"))
    return opens <= here.hour * 60 + here.minute < closes


def _clock(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute or 0)


# ---------------------------------------------------------------------- whether


@dataclass
class _Reckoning:
    """One reminder: when it should have fired, and what it has done."""

    name: str
    terms: list[Terms]
    births: list[Entry]
    evidence: Evidence
    allowed: list[Instant] = field(default_factory=list)
    required: set[Instant] = field(default_factory=set)
    covered: Counter[Instant] = field(default_factory=Counter)

    def expect(self) -> None:
        found: set[Instant] = set()
        for terms, later in self._stretches():
            ended_at = self.evidence.ended_at if later is None else max(later.at, later.true_at)
            # Whatever somebody's clock says: times go forward only.
            begun_at = max([terms.at, *self._fired_before(terms.page)])
            stretch = times(terms.reminding, begun_at, ended_at)
            found.update(stretch)
            # By the clock of whoever changed it: what was due by then was to be seen to.
            self.required.update(at for at in stretch if later is None or at <= later.at)
        self.allowed = sorted(found)

    def _stretches(self) -> Iterator[tuple[Terms, Terms | None]]:
        """From when on it had the same times, and what came then; an edit that leaves them alone
        changes nothing about them, whenever it was."""
        first: Terms | None = None
        for terms in self.terms:
            if first is not None and _when(terms) != _when(first):
                yield first, terms
                first = None
            if terms.enabled and first is None:
                first = terms
        if first is not None:
            yield first, None

    def _fired_before(self, page: int) -> list[Instant]:
        return [birth.run.fired_for or 0 for birth in self.births if birth.page <= page]

    def says(self, text: str, at: Instant) -> Violation:
        return Violation(PROMISE, f"{self.name}: {text}", at)


def _when(terms: Terms) -> tuple[object, ...]:
    raw = terms.reminding.raw
    return terms.enabled, raw.get("cron"), raw.get("at"), raw["zone"]


def misfired(evidence: Evidence) -> Iterator[Violation]:
    annals = evidence.annals
    if annals is None:
        return
    for name, terms in annals.book.terms.items():
        births = [entry for entry in annals.entries if entry.new and entry.run.campaign == name]
        reckoning = _Reckoning(name, terms, births, evidence)
        reckoning.expect()
        for birth in births:
            if birth.run.state is RunState.MISSED:
                yield from _missed(reckoning, birth)
            elif birth.run.fired_for is not None:
                yield from _fired(reckoning, birth, birth.run.fired_for)
            yield from _frozen(reckoning, birth)
        yield from _accounted(reckoning)
        yield from _by_hand(annals, reckoning)


def _fired(reckoning: _Reckoning, birth: Entry, fired_for: Instant) -> Iterator[Violation]:
    reckoning.covered[fired_for] += 1
    when = iso(fired_for)
    if fired_for not in reckoning.allowed:
        yield reckoning.says(f"fired for {when}, which is none of its times", birth.at)
    if birth.at < fired_for:
        yield reckoning.says(f"fired for {when} before that time had come", birth.at)
    spread_us = reckoning.evidence.spread_us
    late_us = birth.at - fired_for - spread_us
    reminding = in_force(reckoning.terms, birth.page).reminding
    if late_us > LATE_US and birth.at - spread_us >= closes_at(reminding, fired_for):
        yield reckoning.says(f"fired for {when} though its window had long closed", birth.at)
    elif _closed_since(reminding, fired_for, birth.at - spread_us):
        yield reckoning.says(f"fired for {when} though its window had closed since", birth.at)
    if birth.paused:
        yield reckoning.says(f"fired for {when} though it was paused", birth.at)
    calm_at = reckoning.evidence.calm_at + STARTING_US
    if fired_for > calm_at and birth.at - fired_for > LATE_US:
        yield reckoning.says(f"fired for {when} only at {iso(birth.at)}", birth.at)


def _closed_since(reminding: Reminding, fires_at: Instant, at: Instant) -> bool:
    """Whether a window that was open when it was to fire has closed for good by an instant."""
    ends = reminding.raw["at_close"] == "skip"
    return ends and in_window(reminding, fires_at) and at >= closes_at(reminding, fires_at)


def _missed(reckoning: _Reckoning, birth: Entry) -> Iterator[Violation]:
    """One run for all that were missed in one go, which says which and why."""
    last = birth.run.fired_for
    told = _MISSED.fullmatch(birth.run.summary)
    if last is None or told is None or told[5] != birth.run.reason:
        yield reckoning.says(f"missed, and nobody can tell what: {birth.run.summary!r}", birth.at)
        return
    zone = in_force(reckoning.terms, birth.page).reminding.zone
    due = [at for at in reckoning.allowed if at <= last]
    gone = due[-int(told[2] or 1) :]
    if told[1]:
        gone = [at for at in due if at not in reckoning.covered]
    reckoning.covered.update(gone)
    texts = [local_text(at, zone) for at in (gone[:1] + gone[-1:] if told[2] else gone[-1:])]
    said = [text for text in (told[3], told[4]) if text]
    if (texts != said and not told[1]) or not gone or gone[-1] != last:
        yield reckoning.says(f"told as missed: {said}; it was {texts}", birth.at)
    ordered = any(terms.page == birth.page for terms in reckoning.terms)
    superseded = any(
        other.page == birth.page and (other.run.fired_for or 0) > last for other in reckoning.births
    )
    if birth.paused or superseded or ordered:
        return
    reminding = in_force(reckoning.terms, birth.page).reminding
    if birth.at - last <= LATE_US and not _closed_since(reminding, last, birth.at):
        yield reckoning.says(f"missed {iso(last)}, and somebody was there in time", birth.at)
    elif birth.at < closes_at(reminding, last):
        yield reckoning.says(f"missed {iso(last)}, though its window was open", birth.at)


def _frozen(reckoning: _Reckoning, birth: Entry) -> Iterator[Violation]:
    """All of it is there at once: a delivery for every target, and none for anybody else."""
    if birth.run.state is RunState.MISSED or (not birth.deliveries and birth.run.reason):
        return
    wanted = in_force(reckoning.terms, birth.page).reminding.targets
    there = [delivery.target for delivery in birth.deliveries]
    if sorted(there) != sorted(wanted):
        text = f"run {birth.run.id} has {len(there)} deliveries, for {len(wanted)} targets"
        yield reckoning.says(text, birth.at)


def _accounted(reckoning: _Reckoning) -> Iterator[Violation]:
    ended_at = reckoning.evidence.ended_at
    for at, count in sorted(reckoning.covered.items()):
        if count > 1:
            yield reckoning.says(f"{iso(at)} was fired or missed {count} times", ended_at)
    for at in sorted(reckoning.required - reckoning.covered.keys()):
        yield reckoning.says(f"nothing is known of {iso(at)}: neither fired nor missed", at)


def _by_hand(annals: Annals, reckoning: _Reckoning) -> Iterator[Violation]:
    wished = sorted(run_id for run_id, _ in annals.book.by_hand.get(reckoning.name, {}).values())
    made = [birth.run.id for birth in reckoning.births if birth.run.fired_for is None]
    if made != wished:
        text = f"fired by hand: runs {wished}; there are {made}"
        yield reckoning.says(text, reckoning.evidence.ended_at)


def in_force(terms: list[Terms], page: int) -> Terms:
    """What held for a reminder when a commit began."""
    return [one for one in terms if one.page < page][-1]
