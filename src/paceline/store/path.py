"""The message path, as far as both databases agree on it: the order of things, and the rules.

``apply`` settles, then checkpoints, then intends, for a whole group at once. What is asked of a
database is a handful of statements over many rows each; they are spelled in ``path_sqlite`` and
``path_postgresql`` with the drivers' own cursors, because every message passes through here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from paceline.core.instants import Instant
from paceline.core.states import DELIVERY, AccountState, DeliveryState
from paceline.engine.ports.path import Intent, LaneResult, LaneUnit, Settlement
from paceline.engine.ports.records import Lease
from paceline.store.base import (
    Tally,
    storable,
    storable_or_none,
    tally_move,
)
from paceline.store.path_reads import PathReads

READY, SENDING, UNKNOWN = DeliveryState.READY, DeliveryState.SENDING, DeliveryState.UNKNOWN

MAY_SETTLE_FROM = {
    state: tuple(
        source
        for source in (SENDING, UNKNOWN)
        if state is SENDING
        or any(at is source and to is state for (at, _), to in DELIVERY.table.items())
    )
    for state in DeliveryState
}
"""From which of the two states of an unsettled attempt each state may be reached.

Not from unknown to unknown: that an answer is lost is no news, and would undo what was decided.
"""

MUST_NOT_START = (AccountState.PAUSED, AccountState.SUSPENDED)
"""Account states in which no delivery may start, whatever revision the lane believes in."""

LedgerValues = tuple[Any, ...]
"""One row of the ledger, in the order of ``rows.LEDGER_NAMES``."""

E = TypeVar("E", "Settling", "Intending")

_DELIVERY_ID = itemgetter(0)


class LaneState(NamedTuple):
    """A lane row as the guards need it; ``lease_until_at`` is its owner's, if it has one."""

    generation: int
    owner: int | None
    revision: int
    lease_until_at: Instant | None
    may_start: bool
    """Whether the account's own state lets a delivery start."""


class Gate(NamedTuple):
    """What must hold for any intent to pass: read after the fence."""

    now: Instant
    stopped: bool


class Settling(NamedTuple):
    """A settlement and the place of its answer."""

    delivery_id: int
    place: tuple[int, int]
    lease: Lease
    settlement: Settlement


class Intending(NamedTuple):
    """An intent and the place of its answer."""

    delivery_id: int
    place: int
    lease: Lease
    intent: Intent


class Moved(NamedTuple):
    """A delivery that a settlement has changed, with the state it was in before."""

    account_id: int
    run_id: int
    before: str


class BasePath(PathReads, ABC):
    """The hot path over one transaction."""

    def apply(self, units: Sequence[LaneUnit]) -> list[LaneResult]:
        if not units:
            return []
        self._pass_fence()
        tally: Tally = {}
        # First of all: whoever holds the lane holds everything that belongs to its account.
        known = self._lanes(sorted({unit.lease.account_id for unit in units}))
        settled = self._settle_all(units, tally)
        held = [_holds(known.get(unit.lease.account_id), unit.lease) for unit in units]
        checkpoints = {
            unit.lease.account_id: unit.usage
            for unit, holds in zip(units, held, strict=True)
            if holds and unit.usage is not None
        }
        if checkpoints:
            self._checkpoint(sorted(checkpoints.items()))
        wishes = [
            (
                Intending(unit.intent.delivery_id, place, unit.lease, unit.intent),
                unit.revision,
            )
            for place, (unit, holds) in enumerate(zip(units, held, strict=True))
            if holds and unit.intent is not None
        ]
        intended = self._intend_all(wishes, known, tally) if wishes else set()
        self._context.add_counts(tally)
        return [
            LaneResult(
                held=holds,
                settled=tuple((place, i) in settled for i in range(len(unit.settlements))),
                intended=place in intended,
            )
            for place, (unit, holds) in enumerate(zip(units, held, strict=True))
        ]

    def _settle_all(self, units: Sequence[LaneUnit], tally: Tally) -> set[tuple[int, int]]:
        """Append every outcome, move what may be moved; the places of those that did move."""
        entries = [
            Settling(settlement.delivery_id, (place, i), unit.lease, settlement)
            for place, unit in enumerate(units)
            for i, settlement in enumerate(unit.settlements)
        ]
        if not entries:
            return set()
        outcomes = [_outcome_row(entry) for entry in entries]
        if self._append_outcomes(outcomes) < len(outcomes):
            # Some were there already: repeated, or declared unknown while the answer was awaited.
            self._append_resolutions([_resolution_row(row) for row in outcomes])
        settled = set()
        for some in _one_per_delivery(entries):
            for place, moved in self._settle(some).items():
                settled.add(some[place].place)
                after = some[place].settlement.state
                if after is not SENDING:
                    tally_move(tally, moved.account_id, moved.run_id, moved.before, after.value)
        return settled

    def _intend_all(
        self,
        wishes: list[tuple[Intending, int]],
        known: dict[int, LaneState],
        tally: Tally,
    ) -> set[int]:
        """Let those intents pass that every guard allows; their places."""
        gate = self._gate()
        if gate.stopped:
            return set()
        entries = [
            entry
            for entry, revision in wishes
            if _may_intend(entry.intent, known[entry.lease.account_id], revision, gate.now)
        ]
        run_ids = {entry.intent.run_id for entry in entries if entry.intent.starts}
        running = self._running(sorted(run_ids)) if run_ids else set()
        entries = [
            entry for entry in entries if not entry.intent.starts or entry.intent.run_id in running
        ]
        intended = set()
        for some in _one_per_delivery(entries):
            passed = [some[place] for place in self._intend(some)]
            self._append_intents([_intent_row(entry) for entry in passed])
            for entry in passed:
                intended.add(entry.place)
                if entry.intent.starts:
                    account_id, run_id = entry.lease.account_id, entry.intent.run_id
                    tally_move(tally, account_id, run_id, READY.value, SENDING.value)
        return intended

    @abstractmethod
    def _pass_fence(self) -> None:
        """Wait for commands that must be in force before the next message."""

    @abstractmethod
    def _append_outcomes(self, values: list[LedgerValues]) -> int:
        """Append what is not there yet; how many that were."""

    @abstractmethod
    def _append_resolutions(self, values: list[LedgerValues]) -> None:
        """Append those of attempts whose outcome is written down as unknown, and is not."""

    @abstractmethod
    def _append_intents(self, values: list[LedgerValues]) -> None:
        """Append; that one is there already would be a defect."""

    @abstractmethod
    def _settle(self, entries: list[Settling]) -> dict[int, Moved]:
        """Change the deliveries whose attempt and state allow it; indexes of those changed."""

    @abstractmethod
    def _lanes(self, account_ids: list[int]) -> dict[int, LaneState]:
        """The lanes, held against a takeover until this transaction ends."""

    @abstractmethod
    def _checkpoint(self, checkpoints: list[tuple[int, str]]) -> None: ...

    @abstractmethod
    def _gate(self) -> Gate: ...

    @abstractmethod
    def _running(self, run_ids: list[int]) -> set[int]:
        """Those runs that are running, held so until this transaction ends."""

    @abstractmethod
    def _intend(self, entries: list[Intending]) -> list[int]:
        """Take the deliveries that may go; the indexes of those that did."""


def _holds(lane: LaneState | None, lease: Lease) -> bool:
    return (
        lane is not None and lane.generation == lease.generation and lane.owner == lease.process_id
    )


def _may_intend(intent: Intent, lane: LaneState, revision: int, now: Instant) -> bool:
    """The lane's own guards; that generation and owner match is known already."""
    if lane.lease_until_at is None or lane.lease_until_at <= now:
        return False
    return not intent.starts or (lane.revision == revision and lane.may_start)


def _one_per_delivery(entries: Iterable[E]) -> Iterator[list[E]]:
    """The entries in rounds in which no delivery occurs twice, each ordered by delivery.

    One statement changes a row once, so what concerns the same delivery comes one after the other.
    """
    waiting = sorted(entries, key=_DELIVERY_ID)
    while waiting:
        ids = {entry.delivery_id for entry in waiting}
        if len(ids) == len(waiting):
            yield waiting
            return
        first = {entry.delivery_id: entry for entry in reversed(waiting)}
        chosen = [entry for entry in waiting if first[entry.delivery_id] is entry]
        waiting = [entry for entry in waiting if first[entry.delivery_id] is not entry]
        yield chosen


def _outcome_row(entry: Settling) -> LedgerValues:
    _, _, lease, settlement = entry
    outcome = settlement.outcome
    return (
        settlement.delivery_id,
        settlement.part,
        settlement.attempt,
        "outcome",
        lease.account_id,
        settlement.run_id,
        settlement.action,
        settlement.settled_at,
        settlement.intent_at,
        settlement.started_at,
        outcome.slots,
        settlement.policy_id,
        lease.generation,
        outcome.kind._value_,
        outcome.code and storable(outcome.code),
        outcome.reason and storable(outcome.reason),
        storable_or_none(outcome.provider_id),
        settlement.latency_us,
    )


def _resolution_row(outcome: LedgerValues) -> LedgerValues:
    return (*outcome[:3], "resolution", *outcome[4:])


def _intent_row(entry: Intending) -> LedgerValues:
    _, _, lease, intent = entry
    return (
        intent.delivery_id,
        intent.part,
        intent.attempt,
        "intent",
        lease.account_id,
        intent.run_id,
        intent.action,
        intent.at,
        intent.at,
        None,
        1,
        intent.policy_id,
        lease.generation,
        None,
        "",
        "",
        None,
        None,
    )
