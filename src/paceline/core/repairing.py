"""Repairing: what is planned against a limit is given the next slot at which it may go.

Pure. Everything that offends nobody stays where it is, and what moves only ever moves to later. It
is done for many accounts at once, because what a pool shares takes its room on any of them. Slots
are given away in order of time: who was planned first comes first, but where what is to follow a
message could go as well, both take turns, as in the plan. Else all first messages would go before
anything follows, and what was to come after three days would come after weeks.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from paceline.core.durations import Chance
from paceline.core.instants import Instant
from paceline.core.limits import Booked, Rule, most_parts
from paceline.core.rehousing import Place, Table, first_of
from paceline.core.relocating import NEAREST_US, Relocation, Search
from paceline.core.slots import Never, Seat
from paceline.core.takers import Common
from paceline.core.together import Crowd

NOTHING_TO_FOLLOW = "the message before it has no legal slot"
KEEPS_ITS_OWN = "it was tried before or sent by hand, and keeps its own instant"


def relocated(
    seat: Seat, booked: Iterable[Booked], rng: Chance, *, slack_us: int = 0
) -> Relocation:
    """The same for one account that shares nothing with anybody."""
    crowd = Crowd([Place(seat, list(booked))], (), slack_us, moving=True)
    return repaired(crowd, {seat.account_id}, {seat.account_id: rng})


def repaired(crowd: Crowd, accounts: Container[int], draws: Mapping[int, Chance]) -> Relocation:
    """The next legal slot of each that offends on one of these accounts, or in a pool that one of
    them shares: hours and windows open, room in its day and week beside everything that stays, and
    a gap to both its neighbours. What follows one that moves goes so long after it, and stays where
    it is if it can. ``crowd`` is about to move what offends."""
    return _Repair(crowd, accounts, draws).done()


class _Best(NamedTuple):
    """The next slot for somebody, whose it is, and how many were given away there before."""

    at: Instant
    account_id: int
    given: int


_Turn = tuple[tuple[int, ...], int]
"""Who takes turns: what has its own minute, and what follows, step by step, of each account and of
each pool."""


class _Lot:
    """Those that the same accounts may take, and that wait for as many others to be sent."""

    def __init__(self, turn: _Turn, accounts: tuple[int, ...]) -> None:
        self.turn = turn
        self.accounts = accounts
        self.waiting: list[tuple[Instant, int, Booked]] = []
        self.best: _Best | None = None
        """Of the first of them; None if that is not known."""
        self.entry = 0
        """Which of its places among the lots counts."""


class _Repair:
    def __init__(self, crowd: Crowd, accounts: Container[int], draws: Mapping[int, Chance]) -> None:
        self._crowd = crowd
        self._found = Relocation()
        moving = [
            (Common(one, (number,)), board.offends[one.key])
            for number, board in crowd.boards.items()
            if number in accounts
            for one in board.offending
        ]
        moving += [
            (common, crowd.offends[common.one.key])
            for common in crowd.offending
            if any(number in accounts for number in common.accounts)
        ]
        crowd.book()
        parts = most_parts(common.one for common, _ in moving)
        self._tables = {
            number: Table(Search(board, parts, draws[number]))
            for number, board in crowd.boards.items()
        }
        self._lots: dict[tuple[_Turn, tuple[int, ...]], _Lot] = {}
        self._next: list[tuple[Instant, int, int, _Lot]] = []
        self._entries = 0
        self._served: dict[_Turn, int] = {}
        """When each had its last turn, counted in turns."""
        self._known = {common.one.key: common for common, _ in moving}
        self._followers: dict[int, list[Common]] = {}
        for common, rule in moving:
            self._begin(common, rule)

    def _begin(self, common: Common, rule: Rule) -> None:
        one = common.one
        if not one.movable:
            self._give_up(common, Never(one.ask.run_id, one.key, rule, KEEPS_ITS_OWN))
        elif rule == "step" and one.follows is not None:
            self._followers.setdefault(one.follows, []).append(common)
        else:
            self._put(common, one, 0)

    def done(self) -> Relocation:
        while self._next:
            seen_at, _, entry, lot = heapq.heappop(self._next)
            if entry != lot.entry:
                continue
            best = self._best(lot)
            if not isinstance(best, Never) and best.at > seen_at:
                # Somebody was given the one that it would have had.
                self._queue(lot, best.at)
                continue
            _, key, one = heapq.heappop(lot.waiting)
            lot.best = None
            if isinstance(best, Never):
                self._give_up(self._known[key], best)
            else:
                self._settle(lot, one, best)
            if lot.waiting:
                self._queue(lot, lot.waiting[0][0])
        return self._found

    # ------------------------------------------------------------------ who is next

    def _put(self, common: Common, one: Booked, depth: int) -> None:
        """Let it wait for a slot, from its own minute on or from where it is bound to."""
        turn = (self._known[one.key].accounts, depth)
        lot = self._lots.get((turn, common.accounts))
        if lot is None:
            lot = self._lots[turn, common.accounts] = _Lot(turn, common.accounts)
        from_at = max(one.at, one.ask.not_before_at)
        heapq.heappush(lot.waiting, (from_at, one.key, one))
        if lot.waiting[0][2] is one:
            lot.best = None
            self._queue(lot, from_at)

    def _queue(self, lot: _Lot, at: Instant) -> None:
        """It has its turn no sooner than then; of several, whose last turn was longest ago."""
        self._entries += 1
        lot.entry = self._entries
        heapq.heappush(self._next, (at, self._served.get(lot.turn, 0), lot.entry, lot))

    def _best(self, lot: _Lot) -> _Best | Never:
        best = lot.best
        # Elsewhere slots only come later as they are given away, so the first stays the first.
        if best is not None and self._tables[best.account_id].given == best.given:
            return best
        _, _, one = lot.waiting[0]
        if len(lot.accounts) == 1:
            found = self._own_slot(lot.accounts[0], one)
        else:
            found = first_of(self._tables, self._bookings(lot.accounts, one))
        if isinstance(found, Never):
            return found
        lot.best = _Best(*found, self._tables[found[1]].given)
        return lot.best

    def _own_slot(self, number: int, one: Booked) -> tuple[Instant, int] | Never:
        slot = self._tables[number].search.peek_after(one)
        return slot if isinstance(slot, Never) else (slot, number)

    def _bookings(self, accounts: tuple[int, ...], one: Booked) -> dict[int, Booked]:
        from_at = one.at + NEAREST_US
        wish = one._replace(at=from_at)
        return {
            number: wish if opens_at <= from_at else wish._replace(at=opens_at)
            for number in self._crowd.able(accounts)
            for opens_at in (self._crowd.works_from(number),)
        }

    # ------------------------------------------------------------------ what becomes of them

    def _settle(self, lot: _Lot, one: Booked, best: _Best) -> None:
        slot_at, table = best.at, self._tables[best.account_id]
        if len(lot.accounts) == 1:
            table.search.book_after(one, slot_at)
        else:
            table.search.book(one, slot_at)
        table.forget()
        self._served[lot.turn] = len(self._found.slots) + 1
        self._found.slots[one.key] = slot_at
        done_at = slot_at + table.search.lasting_us(one.ask)
        self._release(one.key, done_at, best.account_id)

    def _release(self, key: int, done_at: Instant, number: int) -> None:
        """What follows this one goes from the same account."""
        for follower in self._followers.pop(key, ()):
            own = follower._replace(accounts=(number,))
            self._follow(own, done_at + follower.one.after_us)

    def _follow(self, common: Common, after_at: Instant) -> None:
        """It may go from then on, as far as the one before it is concerned."""
        one = common.one
        if after_at > one.at:
            ask = one.ask._replace(not_before_at=after_at)
            self._put(common, one._replace(ask=ask), one.depth)
        elif self._stays(common):
            done_at = one.at + self._tables[common.accounts[0]].search.lasting_us(one.ask)
            self._release(one.key, done_at, common.accounts[0])
        else:
            self._put(common, one, 0)

    def _stays(self, common: Common) -> bool:
        """Whether it can go in its own minute after all."""
        table = self._tables[common.accounts[0]]
        if not table.search.has_room(common.one):
            return False
        table.search.stay(common.one, common.one.at)
        table.forget()
        return True

    def _give_up(self, common: Common, never: Never) -> None:
        self._found.nevers.append(never)
        for follower in self._followers.pop(common.one.key, ()):
            one = follower.one
            self._give_up(follower, Never(one.ask.run_id, one.key, "step", NOTHING_TO_FOLLOW))
