"""Limits held against what is booked: what of a plan can not go as it is planned.

Pure. Judges the instants at which deliveries of one account are due against the account's calendar
(hours, days, weeks), the runs' windows, the least gap and the rate. Batches and error rates are no
part of it: those are for lanes to keep. What several accounts share is judged in ``together.py``;
where what offends could go instead is in ``relocating.py``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, NamedTuple, get_args

from paceline.core import zones
from paceline.core.calendar import Place, day_of, day_start, place_of
from paceline.core.durations import print_duration
from paceline.core.hours import Hours
from paceline.core.instants import DAY, Instant
from paceline.core.model import Ask
from paceline.core.policy import Policy
from paceline.core.slots import Seat

HORIZON_US = 400 * DAY
"""How far ahead an opening or a slot is looked for."""

Rule = Literal["step", "hours", "window", "recipient-hours", "daily", "weekly", "gap", "rate"]
"""In the order in which they are asked: a delivery offends the first of them. ``step`` is asked
only where what offends is about to move: what follows it can not stay."""


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
    follows: int | None = None
    """The key of the one before it, if that waits as well: it goes after that one."""
    after_us: int = 0
    """How long after that one."""
    depth: int = 0
    """How many of those it has to wait for are still to be sent."""


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
    span: tuple[Instant, Instant] | None = None
    """Of a rate: from the one before the first that offends to the last that does."""

    def text(self, policy: Policy) -> str:
        """As people are told of it."""
        if self.rule == "daily":
            return f"daily cap {self.cap} on {self.day} was planned to {self.count}"
        if self.rule == "weekly":
            return f"weekly cap {self.cap} in the week of {self.day} was planned to {self.count}"
        if self.rule == "gap":
            return f"closer than {print_duration(policy.least_gap_us)} to the one before"
        if self.rule == "rate" and self.span is not None:
            first, last = (f"{zones.wall_at(at, policy.day_zone):%H:%M}" for at in self.span)
            return f"rate {policy.rate}: {self.count} planned between {first} and {last}"
        if self.rule == "step":
            return "the message before it moves"
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


RULES: tuple[Rule, ...] = get_args(Rule)
CAPS: tuple[Rule, ...] = ("daily", "weekly")
_Group = tuple[Rule, date, str]


class Board:
    """What is booked on an account, told apart into what may stay and what offends."""

    def __init__(
        self, seat: Seat, booked: Iterable[Booked], slack_us: int = 0, *, moving: bool = False
    ) -> None:
        """``moving``: whether what offends is about to move. Then what follows it has to go, too,
        and takes no room."""
        self.seat = seat
        self.room = Room(seat)
        self.openings = Openings(seat.policy.hours)
        self.offends: dict[int, Rule] = {}
        self.offending: list[Booked] = []
        self._leaving: set[int] = set()
        self._zone = seat.policy.day_zone
        self._planned: Counter[_Group] = Counter()
        placed = sorted(map(self.placed, booked), key=in_time)
        self._pace = Pace(seat.policy, slack_us, most_parts(placed))
        self.paced: list[Booked] = []
        """What may stay and keeps its distance to others, in order of time."""
        self.token_ats: list[Instant] = []
        """When the first token of each of those is there, if tokens come one by one."""
        # Those that can not be moved have their room before those that can.
        rigid = {one.key for one in placed if not one.movable and self._fits(one)}
        for one in placed:
            if moving and one.movable and one.follows in self._leaving:
                self.count(one, one.ask.parts)
                self._blame(one, "step")
            elif one.key in rigid if not one.movable else self._fits(one):
                self._add(one)
        self.offending.sort(key=in_time)

    def breaches(self) -> list[Breach]:
        groups: dict[_Group, list[Booked]] = {}
        for one in self.offending:
            rule, place = self.offends[one.key], self.place(one.at)
            day = monday(place) if rule == "weekly" else place.day
            groups.setdefault((rule, day, one.ask.counted_as), []).append(one)
        found = [self._breach(group, some) for group, some in groups.items()]
        return sorted(found, key=lambda one: (one.day, one.rule, one.action))

    def place(self, at: Instant) -> Place:
        return place_of(at, self._zone)

    def placed(self, one: Booked) -> Booked:
        """What is due and waits will go when it may: that is the day it takes its place in."""
        if not one.waits:
            return one
        opens_at = self.openings.next(one.at, one.ask)
        return one if opens_at is None else one._replace(at=opens_at)

    def count(self, one: Booked, parts: int) -> None:
        """So much is planned for its day, whether there is room for it or not."""
        place, action = self.place(one.at), one.ask.counted_as
        self._count("daily", place.day, action, place, parts)
        self._count("weekly", monday(place), action, place, parts)

    def planned(self, rule: Rule, day: date, action: str) -> tuple[int, int | None]:
        """All that is used and planned in a day, or in the week of a Monday, and the cap on it."""
        if (rule, day, action) not in self._planned:
            place = place_of(day_start(day, self._zone), self._zone)
            self._count(rule, day, action, place, 0)
        weekly = self.seat.policy.weekly
        cap = self.room.cap_on(day, action) if rule == "daily" else weekly.get(action)
        return self._planned[rule, day, action], cap

    def _breach(self, group: _Group, some: Sequence[Booked]) -> Breach:
        (rule, day, action), keys = group, tuple(one.key for one in some)
        if rule in CAPS:
            return Breach(rule, day, action, *self.planned(rule, day, action), keys)
        if rule != "rate":
            return Breach(rule, day, action, len(keys), None, keys)
        first_at, last_at = some[0].at, some[-1].at
        first, day_at = bisect_right(self.paced, first_at, key=_at), self.place(first_at).day_at
        # From the one on that began with a full bucket.
        while first and self.paced[first - 1].at >= day_at:
            first, first_at = first - 1, self.paced[first - 1].at
            if self.token_ats[first] == first_at:
                break
        count = len(keys) + bisect_right(self.paced, last_at, key=_at) - first
        return Breach(rule, day, action, count, None, keys, (first_at, last_at))

    def _fits(self, one: Booked) -> bool:
        """Whether it is open then, and its day and week have room, which it takes."""
        rule = None if one.waits else self.openings.shut_by(one.at, one.ask)
        if rule is not None:
            return self._blame(one, rule)
        self.count(one, one.ask.parts)
        place, action, parts = self.place(one.at), one.ask.counted_as, one.ask.parts
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

    def _add(self, one: Booked) -> None:
        """Put it behind those before it, if it is far enough; the later of two offends if it can
        move."""
        if not is_paced(one):
            return
        kept, tokens = self.paced, self.token_ats
        while kept:
            rule = self._pace.shut_by(one.at, kept[-1], tokens[-1])
            if rule is None:
                break
            if one.movable or not kept[-1].movable:
                self._blame(one, rule)
                return
            self._blame(kept.pop(), rule)
            tokens.pop()
        tokens.append(max(one.at, self._pace.next_token_at(kept[-1], tokens[-1]) if kept else 0))
        kept.append(one)

    def _blame(self, one: Booked, rule: Rule) -> bool:
        self.offends[one.key] = rule
        self.offending.append(one)
        if one.movable:
            self._leaving.add(one.key)
        return False


class Pace:
    """How close one may come behind another: the least gap, and the rate's tokens."""

    def __init__(self, policy: Policy, slack_us: int = 0, parts: int = 1) -> None:
        """``parts`` are the most that any of them has."""
        self.least_us = max(0, policy.least_gap_us - slack_us)
        rate = policy.rate
        self.interval_us = rate.interval_us if rate is not None else 0
        ahead = 0 if rate is None else rate.burst - 1
        # Where several are under way, the parts of one may take their tokens after another began.
        ahead += (policy.concurrency - 1) * (parts - 1)
        self.early_us = ahead * self.interval_us + slack_us

    def shut_by(self, at: Instant, before: Booked, token_at: Instant) -> Rule | None:
        """What keeps it from going at ``at``, where ``token_at`` is when the one before has had the
        first of its tokens."""
        if at - before.at < self.least_us:
            return "gap"
        if not self.interval_us:
            return None
        return "rate" if at < self.next_token_at(before, token_at) - self.early_us else None

    def next_token_at(self, before: Booked, token_at: Instant) -> Instant:
        return token_at + before.ask.parts * self.interval_us


def in_time(one: Booked) -> tuple[Instant, int]:
    return one.at, one.key


def _at(one: Booked) -> Instant:
    return one.at


def most_parts(some: Iterable[Booked]) -> int:
    return max((one.ask.parts for one in some), default=1)


def is_paced(one: Booked) -> bool:
    return not (one.waits or one.ask.reply)


def monday(place: Place) -> date:
    return place.day - timedelta(days=place.day.weekday())
