"""Limits held against what is booked: what of a plan can not go as it is planned.

Pure. Judges the instants at which deliveries of one account are due against the account's calendar
(hours, days, weeks), the runs' windows and the least gap. Pace is no part of it: rate, batches and
error rates are for lanes to keep. Where what offends could go instead is in ``relocating.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, NamedTuple

from paceline.core.calendar import Place, day_of, place_of
from paceline.core.durations import print_duration
from paceline.core.hours import Hours
from paceline.core.instants import DAY, Instant
from paceline.core.model import Ask
from paceline.core.policy import Policy
from paceline.core.slots import Seat

HORIZON_US = 400 * DAY
"""How far ahead an opening or a slot is looked for."""

Rule = Literal["hours", "window", "recipient-hours", "daily", "weekly", "gap"]


class Booked(NamedTuple):
    """A delivery that waits on the account for its minute."""

    key: int
    at: Instant
    ask: Ask
    movable: bool = True
    """A retry has an instant of its own, and what somebody sent by hand is not planned."""
    waits: bool = False
    """Whether it is due already and only waits for its turn: it has no minute that could be wrong,
    but it will take its place in a day."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What is planned against one rule on one day."""

    rule: Rule
    day: date
    """In the account's zone; of a week, its Monday."""
    action: str
    count: int
    """For a cap, all that is used and planned; else those that offend."""
    cap: int | None
    keys: tuple[int, ...]
    """Those that offend, in order of time: of a cap, the later ones beyond it."""

    def text(self, policy: Policy) -> str:
        """As people are told of it."""
        if self.rule == "daily":
            return f"daily cap {self.cap} on {self.day} was planned to {self.count}"
        if self.rule == "weekly":
            return f"weekly cap {self.cap} in the week of {self.day} was planned to {self.count}"
        if self.rule == "gap":
            return f"closer than {print_duration(policy.least_gap_us)} to the one before"
        if self.rule == "hours":
            return f"outside business hours ({policy.hours})"
        if self.rule == "window":
            return "outside its campaign's window"
        return "outside the recipient's hours"


def breaches(seat: Seat, booked: Iterable[Booked], *, slack_us: int = 0) -> list[Breach]:
    """Everything that is planned against a rule, by day.

    A delivery is told of once, for the first rule it offends: whatever can not go at its hour does
    not count in its day, and what is over a cap is too close to nobody. ``slack_us`` is by how much
    a gap may be smaller, where instants are not kept more exactly.
    """
    return Board(seat, booked, slack_us).breaches()


class Room:
    """What days and weeks have been given, and have left, by action."""

    def __init__(self, seat: Seat) -> None:
        self._policy, self._usage = seat.policy, seat.usage
        self._first_day = day_of(seat.standing.warm_since_at, seat.policy.day_zone)
        self._day: dict[tuple[Instant, str], int] = {}
        self._week: dict[tuple[Instant, str], int] = {}
        self._caps: dict[tuple[date, str], int | None] = {}

    def cap_on(self, day: date, action: str) -> int | None:
        key = (day, action)
        if key not in self._caps:
            self._caps[key] = self._policy.cap_on(action, (day - self._first_day).days)
        return self._caps[key]

    def shut_by(self, place: Place, action: str, parts: int) -> Rule | None:
        """Which of the two caps leaves no room in this day, or in its week."""
        cap = self.cap_on(place.day, action)
        if cap is not None and self._used_on(place, action) + parts > cap:
            return "daily"
        cap = self._policy.weekly.get(action)
        if cap is not None and self._used_in_week(place, action) + parts > cap:
            return "weekly"
        return None

    def take(self, place: Place, action: str, parts: int) -> None:
        self._day[place.day_at, action] = self._used_on(place, action) + parts
        self._week[place.week_at, action] = self._used_in_week(place, action) + parts

    def _used_on(self, place: Place, action: str) -> int:
        taken = self._day.get((place.day_at, action))
        return self._usage.used_on(place.day_at, action) if taken is None else taken

    def _used_in_week(self, place: Place, action: str) -> int:
        taken = self._week.get((place.week_at, action))
        return self._usage.used_in_week(place.week_at, action) if taken is None else taken


class Openings:
    """When everything is open that goes by the wall clock: hours, window, recipient's hours."""

    def __init__(self, hours: Hours | None) -> None:
        self._hours = hours
        self._never: set[tuple[int, int, int]] = set()
        """Windows and recipients' hours that meet the account's on no day from some day on: that
        takes long to find out, and is true of whole campaigns."""

    def shut_by(self, at: Instant, ask: Ask) -> Rule | None:
        if ask.reply:
            return None
        early = ask.opens_at is not None and at < ask.opens_at
        if early or (ask.closes_at is not None and at >= ask.closes_at):
            return "window"
        for rule, hours in self._of(ask):
            if not hours.is_open(at):
                return rule
        return None

    def next(self, at: Instant, ask: Ask) -> Instant | None:
        """The first instant from ``at`` on at which all are open, if there is one at all."""
        if ask.reply:
            return at
        if ask.opens_at is not None:
            at = max(at, ask.opens_at)
        wanted = (id(ask.window), id(ask.recipient_hours), at // DAY)
        if wanted in self._never:
            return None
        opens_at = _common_opening([hours for _, hours in self._of(ask)], at)
        if opens_at is None:
            self._never.add(wanted)
        return opens_at

    def closes_at(self, at: Instant, ask: Ask) -> Instant:
        """When the first of them closes after ``at``, at which all are open."""
        closings = [hours.closes_at(at) for _, hours in self._of(ask)]
        return min(closings, default=at + HORIZON_US)

    def _of(self, ask: Ask) -> list[tuple[Rule, Hours]]:
        found: list[tuple[Rule, Hours]] = []
        if self._hours is not None:
            found.append(("hours", self._hours))
        if ask.window is not None:
            found.append(("window", ask.window))
        if ask.recipient_hours is not None:
            found.append(("recipient-hours", ask.recipient_hours))
        return found


def _common_opening(gates: Sequence[Hours], at: Instant) -> Instant | None:
    ends_at = at + HORIZON_US
    while at <= ends_at:
        before = at
        for hours in gates:
            opens_at = hours.next_open(at)
            if opens_at is None:
                return None
            at = opens_at
        if at == before:
            return at
    return None


_Group = tuple[Rule, date, str]


class Board:
    """What is booked on an account, told apart into what may stay and what offends."""

    def __init__(self, seat: Seat, booked: Iterable[Booked], slack_us: int = 0) -> None:
        self.seat = seat
        self.room = Room(seat)
        self.openings = Openings(seat.policy.hours)
        self.offends: dict[int, Rule] = {}
        self.offending: list[Booked] = []
        self._zone = seat.policy.day_zone
        self._planned: Counter[_Group] = Counter()
        placed = sorted(map(self._placed, booked), key=_in_time)
        open_then = [one for one in placed if self._may_go(one)]
        # Those that can not be moved have their room before those that can.
        within = [one for one in sorted(open_then, key=_rigid_first) if self._has_room(one)]
        least_us = max(0, seat.policy.least_gap_us - slack_us)
        self.paced = [one for one in sorted(within, key=_in_time) if _is_paced(one)]
        """What may stay and keeps its distance to others, in order of time."""
        if least_us:
            self.paced = self._apart(self.paced, least_us)
        self.offending.sort(key=_in_time)

    def breaches(self) -> list[Breach]:
        groups: dict[_Group, list[int]] = {}
        for one in self.offending:
            rule, place = self.offends[one.key], self.place(one.at)
            day = _monday(place) if rule == "weekly" else place.day
            groups.setdefault((rule, day, one.ask.counted_as), []).append(one.key)
        found = [
            Breach(rule, day, action, *self._counted(rule, day, action, len(keys)), tuple(keys))
            for (rule, day, action), keys in groups.items()
        ]
        return sorted(found, key=lambda one: (one.day, one.rule, one.action))

    def place(self, at: Instant) -> Place:
        return place_of(at, self._zone)

    def _counted(self, rule: Rule, day: date, action: str, number: int) -> tuple[int, int | None]:
        if rule == "daily":
            return self._planned[rule, day, action], self.room.cap_on(day, action)
        if rule == "weekly":
            return self._planned[rule, day, action], self.seat.policy.weekly[action]
        return number, None

    def _placed(self, one: Booked) -> Booked:
        """What is due and waits will go when it may: that is the day it takes its place in."""
        if not one.waits:
            return one
        opens_at = self.openings.next(one.at, one.ask)
        return one if opens_at is None else one._replace(at=opens_at)

    def _may_go(self, one: Booked) -> bool:
        rule = None if one.waits else self.openings.shut_by(one.at, one.ask)
        return rule is None or self._blame(one, rule)

    def _has_room(self, one: Booked) -> bool:
        place, action, parts = self.place(one.at), one.ask.counted_as, one.ask.parts
        self._count("daily", place.day, action, place, parts)
        self._count("weekly", _monday(place), action, place, parts)
        rule = self.room.shut_by(place, action, parts)
        if rule is not None:
            return self._blame(one, rule)
        self.room.take(place, action, parts)
        return True

    def _count(self, rule: Rule, day: date, action: str, place: Place, parts: int) -> None:
        key = (rule, day, action)
        if key not in self._planned:
            usage = self.seat.usage
            self._planned[key] = (
                usage.used_on(place.day_at, action)
                if rule == "daily"
                else usage.used_in_week(place.week_at, action)
            )
        self._planned[key] += parts

    def _apart(self, paced: Sequence[Booked], least_us: int) -> list[Booked]:
        """Those that are far enough from each other; the later of two offends if it can move."""
        kept: list[Booked] = []
        for one in paced:
            while kept and one.at - kept[-1].at < least_us:
                if one.movable or not kept[-1].movable:
                    self._blame(one, "gap")
                    break
                self._blame(kept.pop(), "gap")
            else:
                kept.append(one)
        return kept

    def _blame(self, one: Booked, rule: Rule) -> bool:
        self.offends[one.key] = rule
        self.offending.append(one)
        return False


def _in_time(one: Booked) -> tuple[Instant, int]:
    return one.at, one.key


def _rigid_first(one: Booked) -> tuple[bool, Instant, int]:
    return one.movable, one.at, one.key


def _is_paced(one: Booked) -> bool:
    return not (one.waits or one.ask.reply)


def _monday(place: Place) -> date:
    return place.day - timedelta(days=place.day.weekday())
