"""One group of the journal on its way into the store.

As a whole; and where that fails in pieces, to find out whose fault it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from paceline.core.errors import (
    RowBusy,
    StoreConflict,
    StoreError,
    StoreSurprise,
    StoreUnavailable,
)
from paceline.core.instants import SECOND
from paceline.engine.ports import Clock, Holds, LaneResult, LaneUnit, Store, Together, Tx, Work

REPLAY_US = 2 * SECOND
"""How long those are looked for who wait for a row; whoever has had no turn by then failed too.

With the longest wait for one lock before it (``lock_timeout``) it must fit between a renewal that
falls due and the end of the lease that it renews.
"""


@dataclass(slots=True, eq=False)
class Entry:
    future: asyncio.Future[Any]
    unit: LaneUnit | None = None
    work: Work[Any] | None = None
    alone: bool = False
    together: Together[Any, Any] | None = None
    one: Any = None
    talk: int | None = None
    hurried: bool = False
    goes_on: Callable[[Tx, LaneResult], Any] | None = None
    """What follows from the unit, in the same transaction."""
    holds: Holds = "lanes"
    begins: Callable[[], None] | None = None

    @property
    def kind(self) -> str:
        """What it holds besides lanes: those of two kinds would not hold it in one order."""
        if self.together is not None:
            return "together"
        return "" if self.talk is None else "talk"


class Commit:
    """One group on its way into the store, as a whole or in pieces.

    Pieces are what finds the culprit of a failure. The time they may take is bounded once somebody
    holds a row that one of them needs: the renewal of the lease waits behind all of them.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._trusting = True
        self._away: Exception | None = None
        self._busy: RowBusy | None = None
        self._until_us = 0

    def answers(self, group: list[Entry]) -> list[Any]:
        """One per unit, in order; one that is an exception belongs to that unit alone."""
        failed = self._pointless()
        if failed is None:
            try:
                return self._attempt(group)
            except Exception as error:
                failed = error
                self._remember(error)
        return self._in_pieces(group, failed)

    def answers_after(self, failed: StoreError, group: list[Entry]) -> list[Any]:
        """The same, where somebody has tried all of it already, and in vain."""
        self._trusting = not isinstance(failed, StoreSurprise)
        if isinstance(failed, RowBusy):
            # It was waited for once, which is all that a lease has time for.
            self._remember(failed)
            return self._in_pieces(group, failed)
        return self.answers(group)

    def _in_pieces(self, group: list[Entry], failed: Exception) -> list[Any]:
        if len(group) == 1 or self._pointless() is not None:
            return [failed] * len(group)
        # Whoever waits for a row is found in few steps by halving, since each step takes a while.
        size = (len(group) + 1) // 2 if isinstance(failed, RowBusy) else 1
        pieces = [group[start : start + size] for start in range(0, len(group), size)]
        return [answer for piece in pieces for answer in self.answers(piece)]

    def _attempt(self, group: list[Entry], *, again: bool = True) -> list[Any]:
        try:
            with self._store.write() as tx:
                if self._busy is not None:
                    tx.hurry()
                return apply(tx, group, trusting=self._trusting)
        except StoreSurprise:
            if not self._trusting:
                raise  # somebody's own, then: nothing was insisted upon
            # Nobody knows yet whose. Asked one after the other, everybody gets his own answer.
            self._trusting = False
            return self._attempt(group, again=again)
        except StoreConflict:
            # All of it was undone, and whoever was in the way has what it wanted.
            if not again:
                raise
            return self._attempt(group, again=False)

    def _remember(self, error: Exception) -> None:
        if isinstance(error, RowBusy):
            if self._busy is None:
                self._busy = error
                self._until_us = self._clock.monotonic_us() + REPLAY_US
        elif is_away(error):
            self._away = error

    def _pointless(self) -> Exception | None:
        """Why there is no sense in trying more: it would only wait longer."""
        if self._away is not None:  # nobody's fault, and the same for all
            return self._away
        if self._busy is not None and self._clock.monotonic_us() >= self._until_us:
            return self._busy
        return None


def is_away(error: Exception) -> bool:
    """Whether it is nobody's fault, and the same for all: there is no sense in trying again."""
    in_the_way = isinstance(error, RowBusy | StoreConflict)
    return isinstance(error, StoreUnavailable) and not in_the_way


def apply(tx: Tx, group: list[Entry], *, trusting: bool = False) -> list[Any]:
    """Everybody passes the fence, then holds lanes in the order of their numbers, then
    conversations in that of theirs, then turns, so that no two wait for each other. And whoever
    looks conversations up tells the planner how, until the transaction ends: all else that counts
    or lists has been done by then."""
    if len(group) == 1:  # most of them, and nobody to keep an order with
        return [_alone(tx, group[0], trusting=trusting)]
    answers: list[Any] = [None] * len(group)
    _do_lanes(tx, group, answers, trusting=trusting)
    shared = _done_together(tx, group, "lanes")
    works = [(place, entry) for place, entry in enumerate(group) if entry.work is not None]
    _do(tx, [one for one in works if one[1].talk is None], answers)
    shared |= _done_together(tx, group, "conversations")
    shared |= _done_together(tx, group, "turns")
    talks = [one for one in works if one[1].talk is not None]
    _do(tx, sorted(talks, key=lambda one: one[1].talk or 0), answers)
    for place, entry in enumerate(group):
        if entry.together is not None:
            answers[place] = next(shared[entry.together])
    return answers


def _alone(tx: Tx, entry: Entry, *, trusting: bool) -> Any:
    if entry.work is not None:
        return entry.work(tx)
    if entry.unit is None:
        assert entry.together is not None
        (answer,) = entry.together(tx, [entry.one])
        return answer
    (result,) = _written(tx, [entry.unit], trusting=trusting)
    return result if entry.goes_on is None else entry.goes_on(tx, result)


def _do_lanes(tx: Tx, group: list[Entry], answers: list[Any], *, trusting: bool) -> None:
    lanes = [(place, entry) for place, entry in enumerate(group) if entry.unit is not None]
    if not lanes:
        return
    units = [entry.unit for _, entry in lanes if entry.unit is not None]
    for (place, _), result in zip(lanes, _written(tx, units, trusting=trusting), strict=True):
        answers[place] = result
    going_on = [(place, entry) for place, entry in lanes if entry.goes_on is not None]
    for place, entry in sorted(going_on, key=_account) if going_on else ():
        assert entry.goes_on is not None
        answers[place] = entry.goes_on(tx, answers[place])


def _account(lane: tuple[int, Entry]) -> int:
    unit = lane[1].unit
    assert unit is not None
    return unit.lease.account_id


def _written(tx: Tx, units: list[LaneUnit], *, trusting: bool) -> list[LaneResult]:
    foretold = tx.path.trust(units) if trusting else None
    return tx.path.apply(units) if foretold is None else foretold


def _do(tx: Tx, works: list[tuple[int, Entry]], answers: list[Any]) -> None:
    for place, entry in works:
        assert entry.work is not None
        answers[place] = entry.work(tx)


def _done_together(
    tx: Tx, group: list[Entry], holds: Holds
) -> dict[Together[Any, Any], Iterator[Any]]:
    """The answers to what is done for all who ask for it at once, in their order, where it holds
    this."""
    asked: dict[Together[Any, Any], list[Any]] = {}
    for entry in group:
        if entry.together is not None and entry.holds == holds:
            asked.setdefault(entry.together, []).append(entry.one)
    return {work: iter(work(tx, ones)) for work, ones in asked.items()}
