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
    moving = [Booked(one.key, 0, one.ask) for one in (*kept, *homeless)]
    tables = {
        place.seat.account_id: _Table(
            Search(Board(place.seat, place.booked, slack_us), moving, rng)
        )
        for place in places
    }
    for one in kept:
        _keep(tables, one)
    found = Relocation()
    for one in homeless:
        slot = _settle(tables, one)
        if isinstance(slot, Never):
            found.nevers.append(slot)
        else:
            found.slots[one.key] = slot
    return found


def _keep(tables: Mapping[int, _Table], one: Shared) -> None:
    """Let it take its room on the first account that has any then. Where none has, it takes none:
    it will be late in its turn."""
    for account_id in one.from_at:
        search, booked = tables[account_id].search, one.booked(account_id)
        if search.has_room(booked):
            search.stay(booked, booked.at)
            return


def _settle(tables: Mapping[int, _Table], one: Shared) -> Instant | Never:
    best: tuple[Instant, _Table, Booked] | None = None
    never: Never | None = None
    for account_id in one.from_at:
        table, booked = tables[account_id], one.booked(account_id)
        slot = table.peek(booked)
        if isinstance(slot, Never):
            never = never or slot
        elif best is None or slot < best[0]:
            best = slot, table, booked
    if best is None:
        assert never is not None, "a pool has accounts"
        return never
    slot, table, booked = best
    table.book(booked, slot)
    return slot


class _Table:
    """An account's slots. What was seen there is remembered until one of them is given away, so
    that each delivery costs one look, however many accounts share it."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self._seen: dict[tuple[object, ...], Instant | Never] = {}

    def peek(self, one: Booked) -> Instant | Never:
        ask, at = one.ask, max(one.at, one.ask.not_before_at)
        hours = (id(ask.window), id(ask.recipient_hours), ask.opens_at, ask.closes_at)
        wanted = (at, hours, ask.expires_at, ask.reply, ask.counted_as, ask.parts)
        slot = self._seen.get(wanted)
        if slot is None:
            slot = self._seen[wanted] = self.search.peek(one)
        return slot._replace(key=one.key, run_id=ask.run_id) if isinstance(slot, Never) else slot

    def book(self, one: Booked, slot: Instant) -> None:
        self.search.book(one, slot)
        self._seen.clear()
