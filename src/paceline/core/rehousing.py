"""Rehousing among several: what a pool can not send now is given the next slot that any of it has.

Pure. The slots of one account are found as in ``relocating.py``; here it is worked out whose comes
first. Nobody is bound by it: whoever can send first still takes the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from paceline.core.durations import Chance
from paceline.core.instants import Instant
from paceline.core.limits import Board, Booked
from paceline.core.model import Ask
from paceline.core.relocating import Relocation, Search
from paceline.core.slots import Never, Seat


class Shared(NamedTuple):
    """A delivery that is nobody's, and from when on each account of its pool may take it."""

    key: int
    ask: Ask
    from_at: Mapping[int, Instant]

    def booked(self, account_id: int) -> Booked:
        return Booked(self.key, self.from_at[account_id], self.ask)


class Place(NamedTuple):
    """An account of a pool, and what is booked on it alone."""

    seat: Seat
    booked: Sequence[Booked]


def rehoused_among(
    places: Sequence[Place],
    staying: Iterable[Shared],
    homeless: Sequence[Shared],
    rng: Chance,
    *,
    slack_us: int = 0,
) -> Relocation:
    """The next legal slot of each that has lost its own, in the order given, beside everything that
    is booked on the accounts or stays where it is in their pools."""
    kept = sorted(staying, key=lambda one: (min(one.from_at.values()), one.key))
    parts = max((one.ask.parts for one in (*kept, *homeless)), default=1)
    tables = {
        place.seat.account_id: Table(Search(Board(place.seat, place.booked, slack_us), parts, rng))
        for place in places
    }
    for one in kept:
        _keep(tables, one)
    found = Relocation()
    for one in homeless:
        bookings = {number: one.booked(number) for number in one.from_at}
        first = first_of(tables, bookings)
        if isinstance(first, Never):
            found.nevers.append(first)
        else:
            slot, account_id = first
            tables[account_id].book(bookings[account_id], slot)
            found.slots[one.key] = slot
    return found


def _keep(tables: Mapping[int, Table], one: Shared) -> None:
    """Let it take its room on the first account that has any then. Where none has, it takes none:
    it will be late in its turn."""
    for account_id in one.from_at:
        search, booked = tables[account_id].search, one.booked(account_id)
        if search.has_room(booked):
            search.stay(booked, booked.at)
            return


def first_of(
    tables: Mapping[int, Table], bookings: Mapping[int, Booked]
) -> tuple[Instant, int] | Never:
    """The first slot that any account has for it, from where it is booked there on, and whose."""
    best: tuple[Instant, int] | None = None
    never: Never | None = None
    for account_id, booked in bookings.items():
        slot = tables[account_id].peek(booked)
        if isinstance(slot, Never):
            never = never or slot
        elif best is None or slot < best[0]:
            best = slot, account_id
    if best is None:
        assert never is not None, "a pool has accounts"
        return never
    return best


class Table:
    """An account's slots. What was seen there is remembered until one of them is given away, so
    that each delivery costs one look, however many accounts share it."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.given = 0
        """How many slots were given away."""
        self._seen: dict[tuple[object, ...], tuple[Instant, Instant | Never]] = {}

    def peek(self, one: Booked) -> Instant | Never:
        ask, at = one.ask, max(one.at, one.ask.not_before_at)
        hours = (id(ask.window), id(ask.recipient_hours), ask.opens_at, ask.closes_at)
        wanted = (hours, ask.expires_at, ask.reply, ask.counted_as, ask.parts)
        from_at, slot = self._seen.get(wanted, (at + 1, at))
        # The first slot from an instant on is the first from every later one as well, up to it.
        if not from_at <= at <= (from_at if isinstance(slot, Never) else slot):
            slot = self.search.peek(one)
            self._seen[wanted] = at, slot
        return slot._replace(key=one.key, run_id=ask.run_id) if isinstance(slot, Never) else slot

    def book(self, one: Booked, slot: Instant) -> None:
        self.search.book(one, slot)
        self.forget()

    def forget(self) -> None:
        """A slot was given away here: the others come later."""
        self._seen.clear()
        self.given += 1
