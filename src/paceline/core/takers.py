"""An account of a pool: what it has to itself, and what it could take of what it shares.

Pure. Who is given what is worked out in ``together.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from paceline.core.gates import SENDING_STATES
from paceline.core.instants import Instant
from paceline.core.limits import CAPS, Board, Booked, Pace, Rule, is_paced
from paceline.core.slots import Seat
from paceline.core.states import AccountState


class Common(NamedTuple):
    """A delivery that is nobody's, and the accounts of its pool."""

    one: Booked
    accounts: tuple[int, ...]


class Taker:
    """An account, what it has to itself, and what it is given of what it shares."""

    def __init__(self, board: Board, slack_us: int, parts: int) -> None:
        self.board = board
        self.from_at = works_from(board.seat)
        self._given: dict[int, Common] = {}
        self._days: dict[tuple[Instant, str], dict[int, Common]] = {}
        self._pace = Pace(board.seat.policy, slack_us, parts)
        self.least_us = max(self._pace.least_us, self._pace.interval_us)
        self._sends = [(one.at, one.key, one.ask.parts) for one in board.paced]
        self._tokens = list(board.token_ats)

    def shut_by(self, one: Booked) -> Rule | None:
        """What keeps it from taking this one in its minute."""
        if not one.waits:
            if self.from_at is not None and one.at < self.from_at:
                return "hours"
            rule = self.board.openings.shut_by(one.at, one.ask)
            if rule is not None:
                return rule
        place = self.board.place(one.at)
        rule = self.board.room.shut_by(place, one.ask.counted_as, one.ask.parts)
        return rule or (self._too_close(one) if is_paced(one) else None)

    def room_at(self, at: Instant, rule: Rule) -> Instant:
        """When the cap begins anew that leaves no room at ``at``."""
        place = self.board.place(at)
        return place.next_day_at if rule == "daily" else place.next_week_at

    def has_room(self, one: Booked) -> bool:
        place = self.board.place(one.at)
        return self.board.room.shut_by(place, one.ask.counted_as, one.ask.parts) is None

    def in_the_way(self, one: Booked) -> Iterator[list[Common]]:
        """What it was given that keeps it from taking this one: those together without which it
        might."""
        rule = self.shut_by(one)
        if rule in CAPS:
            place, action = self.board.place(one.at), one.ask.counted_as
            from_at, until_at = place.day_at, place.next_day_at
            if rule == "weekly":
                from_at, until_at = place.week_at, place.next_week_at
            days = [day for day in self._days if day[1] == action and from_at <= day[0] < until_at]
            for day in days:
                yield from ([common] for common in list(self._days[day].values()))
        elif rule == "gap":
            some, whole = self._near(one.at, self._pace.least_us)
            yield from [some] if whole else [[common] for common in some]
        elif rule == "rate":
            # Any of those whose tokens it would need.
            some, _ = self._near(one.at, self._pace.early_us + self._pace.interval_us)
            yield from ([common] for common in some)

    def _near(self, at: Instant, within_us: int) -> tuple[list[Common], bool]:
        """What it was given around an instant, and whether that is all there is."""
        first = bisect_left(self._sends, (at - within_us + 1,))
        last = bisect_left(self._sends, (at + within_us,))
        near = [self._given.get(key) for _, key, _ in self._sends[first:last]]
        some = [common for common in near if common is not None]
        return some, 0 < len(some) == len(near)

    def take(self, common: Common) -> None:
        one = common.one
        self._given[one.key] = common
        self._count(common, one.ask.parts)
        if is_paced(one):
            here = bisect_left(self._sends, (one.at, one.key))
            self._sends.insert(here, (one.at, one.key, one.ask.parts))
            self._tokens.insert(here, -1)
            self._count_tokens(here)

    def leave(self, common: Common) -> None:
        one = common.one
        del self._given[one.key]
        self._count(common, -one.ask.parts)
        if is_paced(one):
            here = bisect_left(self._sends, (one.at, one.key))
            del self._sends[here], self._tokens[here]
            self._count_tokens(here)

    def book(self) -> None:
        """Let what it was given be booked on it, for those who look for slots beside it."""
        known = {one.key: one for one in self.board.paced}
        known |= {key: common.one for key, common in self._given.items()}
        self.board.paced = [known[key] for _, key, _ in self._sends]
        self.board.token_ats = self._tokens

    def _too_close(self, one: Booked) -> Rule | None:
        sends, pace, at = self._sends, self._pace, one.at
        here = bisect_left(sends, (at, one.key))
        if here and at - sends[here - 1][0] < pace.least_us:
            return "gap"
        if here < len(sends) and sends[here][0] - at < pace.least_us:
            return "gap"
        if not pace.interval_us:
            return None
        token_at = self._token_at(here, at)
        if at < token_at - pace.early_us:
            return "rate"
        # And those after it, as far as it takes the tokens that were theirs.
        parts = one.ask.parts
        for number in range(here, len(sends)):
            after_at, _, after_parts = sends[number]
            token_at = max(after_at, token_at + parts * pace.interval_us)
            if token_at == self._tokens[number]:
                return None
            if after_at < token_at - pace.early_us:
                return "rate"
            parts = after_parts
        return None

    def _token_at(self, here: int, at: Instant) -> Instant:
        """When a token is there for one that is sent then."""
        if not here:
            return at
        return max(at, self._tokens[here - 1] + self._sends[here - 1][2] * self._pace.interval_us)

    def _count_tokens(self, here: int) -> None:
        """Reckon anew from there on, until nothing changes."""
        for number in range(here, len(self._sends)):
            token_at = self._token_at(number, self._sends[number][0])
            if token_at == self._tokens[number]:
                return
            self._tokens[number] = token_at

    def _count(self, common: Common, parts: int) -> None:
        one = common.one
        place = self.board.place(one.at)
        self.board.count(one, parts)
        self.board.room.take(place, one.ask.counted_as, parts)
        day = self._days.setdefault((place.day_at, one.ask.counted_as), {})
        if parts > 0:
            day[one.key] = common
        else:
            del day[one.key]


def works_from(seat: Seat) -> Instant | None:
    """From when on an account sends at all, as far as its state is concerned; None if nobody knows:
    then the others of its pool have to do without it."""
    standing = seat.standing
    if standing.state in SENDING_STATES:
        return 0
    return standing.until_at if standing.state is AccountState.COOLING_DOWN else None
