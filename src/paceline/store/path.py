"""The message path, as far as both databases agree on it: the order of things, and the rules.

``apply`` settles, then checkpoints, then intends, for a whole group at once. What is asked of a
database is a handful of statements over many rows each; they are spelled in ``path_sqlite`` and
``path_postgresql`` as plain text, because every message passes through here. For
the same reason what is done for each message is written out in a few loops over plain tuples.

A server works while we do: a statement is asked first, and its answer is called for when there is
nothing left to prepare. What such a method returns is the answer yet to come, a function. On SQLite
it is there already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DELIVERY, AccountState, DeliveryState
from paceline.engine.ports.path import Intent, LaneResult, LaneUnit, Settlement
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.records import Lease
from paceline.store.base import Tally, storable
from paceline.store.path_reads import PathReads
from paceline.store.sparing import spared

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

FOLLOWS_A_SENT_ONE = """CASE WHEN d.after_id IS NULL THEN true
ELSE (SELECT p.state = 'sent' OR (d.bidden AND p.state = 'failed' AND p.parts_done > 0)
FROM deliveries p WHERE p.id = d.after_id) END"""
"""What holds for an intent ``d`` of a later step: a message may bounce after its follow-up was
released; and whoever has answered the beginning of one has got that. Not as EXISTS, which may be
planned as a table of all that were ever sent."""

MUST_NOT_START = (AccountState.PAUSED, AccountState.SUSPENDED)
"""Account states in which no delivery may start, whatever revision the lane believes in."""

OUTCOME_NAMES = (
    "delivery_id, part, attempt, account_id, run_id, action, at, intent_at, started_at, slots, "
    "policy_id, generation, outcome, code, reason, provider_id, latency_us"
)
"""What an outcome's row in the ledger says besides its kind, in the order of ``outcome_rows``."""

INTENT_NAMES = "delivery_id, part, attempt, account_id, run_id, action, at, policy_id, generation"
"""What an intent's row in the ledger does not share with all others, as in ``intent_rows``."""

Settling = tuple[int, Lease, Settlement]
"""A settlement with its place among those of the group, and the lease it came with."""

Intending = tuple[int, Lease, Intent]
"""An intent with the place of its unit in the group, and the lease it came with."""

Lanes = Mapping[int, Sequence[Any]]
"""By account: its number again, generation, owner, revision, ``lease_until_at`` of the owner (None
where there is none), and whether the account's own state lets a delivery start."""

Moved = Mapping[int, tuple[int, int, str]]
"""By delivery, those that a settlement has changed: account, run and the state before."""

T = TypeVar("T")
E = TypeVar("E", Settling, Intending)
Answer = Callable[[], T]
"""What was asked of the database, yet to come."""

_READY, _SENDING = READY.value, SENDING.value
_SLOTS = {kind: Outcome(kind).slots for kind in OutcomeKind}
# A result is a value like any other: those that nearly every unit gets are made once.
_RESULTS: dict[tuple[bool, tuple[bool, ...], bool], LaneResult] = {
    (held, settled, intended): LaneResult(held, settled, intended)
    for held in (False, True)
    for settled in ((), (False,), (True,))
    for intended in (False, True)
}


class Gate(NamedTuple):
    """What must hold for any intent to pass: read after the fence."""

    now: Instant
    stopped: bool
    running: frozenset[int]
    """Of the runs asked about those that are running, held so until this transaction ends."""


class Judged(NamedTuple):
    """What the guards of the lanes let through."""

    held: list[bool]
    """By unit, whether its lease holds."""
    checkpoints: dict[int, str]
    intents: list[Intending]


class BasePath(PathReads, ABC):
    """The hot path over one transaction."""

    def apply(self, units: Sequence[LaneUnit]) -> list[LaneResult]:
        if not units:
            return []
        units = spared(self._context, units)
        entries = _settlings(units)
        rounds = _one_per_delivery(entries)
        with self._together():
            # First of all: whoever holds the lane holds everything that belongs to its account.
            guards = self._guards(units)
            written = self._written(rounds[0])
            lanes, gate = guards()
            settling = self._settle(rounds[0], written)
            judged = _judge(units, lanes, gate)
            if judged.checkpoints:
                self._checkpoint(judged.checkpoints)
            wishes = _one_per_delivery(judged.intents) if judged.intents else []
            # Intents come after all that is settled. Where they concern other deliveries it cannot
            # be told, and the answers need not be waited for.
            ahead = self._intend(wishes[0]) if _are_apart(rounds, wishes) else None
        tally: Tally = defaultdict(int)
        settled = [False] * len(entries)
        _note_settled(rounds[0], settling(), settled, tally)
        for some in rounds[1:]:
            _note_settled(some, self._settle(some, self._written(some))(), settled, tally)
        intended: set[int] = set()
        for wanted in wishes:
            passed = self._intend(wanted) if ahead is None else ahead
            _note_intended(wanted, passed(), intended, tally)
        self._context.add_counts(tally)
        return _results(units, judged.held, settled, intended)

    def trust(self, units: Sequence[LaneUnit]) -> list[LaneResult] | None:
        """Only where an answer is worth not waiting for."""
        return None

    @abstractmethod
    def _together(self) -> AbstractContextManager[Any]:
        """What is asked inside is on its way at once; at the end all of it has been answered."""

    @abstractmethod
    def _guards(self, units: Sequence[LaneUnit]) -> Answer[tuple[Lanes, Gate | None]]:
        """Pass the fence; hold the lanes against a takeover, and the runs that are to go on.

        The gate is None where nothing is intended.
        """

    @abstractmethod
    def _written(self, entries: list[Settling]) -> Any:
        """What ``_settle`` will write of these, made ready while the guards are awaited."""

    @abstractmethod
    def _settle(self, entries: list[Settling], written: Any) -> Answer[Moved]:
        """Append every outcome, change the deliveries whose attempt and state allow it.

        An outcome that is there already is left as it is; where it is written down as unknown, and
        this one is not, it is appended as its resolution.
        """

    @abstractmethod
    def _checkpoint(self, checkpoints: dict[int, str]) -> None: ...

    @abstractmethod
    def _intend(self, entries: list[Intending]) -> Answer[Iterable[int]]:
        """Take the deliveries that may go, append their intents; the ids of those that did.

        That an intent is there already would be a defect, and is an error.
        """


def outcome_rows(entries: list[Settling]) -> list[tuple[Any, ...]]:
    """The ledger's rows, in the order of ``OUTCOME_NAMES``."""
    rows = []
    for _, lease, settlement in entries:
        outcome = settlement.outcome
        kind, code, why, provider_id = (
            outcome.kind,
            outcome.code,
            outcome.reason,
            outcome.provider_id,
        )
        rows.append(
            (
                settlement.delivery_id,
                settlement.part,
                settlement.attempt,
                lease.account_id,
                settlement.run_id,
                settlement.action,
                settlement.settled_at,
                settlement.intent_at,
                settlement.started_at,
                _SLOTS[kind],
                settlement.policy_id,
                lease.generation,
                kind._value_,
                code and storable(code),
                why and storable(why),
                provider_id and keepable_name(provider_id),
                settlement.latency_us,
            )
        )
    return rows


def intent_rows(entries: Iterable[Intending]) -> list[tuple[Any, ...]]:
    """The ledger's rows, in the order of ``INTENT_NAMES``."""
    return [
        (
            delivery_id,
            part,
            attempt,
            lease.account_id,
            run_id,
            action,
            at,
            policy_id,
            lease.generation,
        )
        for _, lease, (delivery_id, run_id, part, attempt, action, at, policy_id, *_) in entries
    ]


def starting_runs(units: Iterable[LaneUnit]) -> list[int]:
    """The runs of which a delivery is to start."""
    intents = (unit.intent for unit in units)
    return sorted({intent.run_id for intent in intents if intent is not None and intent.starts})


def _settlings(units: Iterable[LaneUnit]) -> list[Settling]:
    found = [(unit.lease, settlement) for unit in units for settlement in unit.settlements]
    return [(place, lease, settlement) for place, (lease, settlement) in enumerate(found)]


def _one_per_delivery(entries: list[E]) -> list[list[E]]:
    """The entries in rounds in which no delivery occurs twice; one round at least.

    One statement changes a row once, so what concerns the same delivery comes one after the other.
    """
    if len({entry[2].delivery_id for entry in entries}) == len(entries):
        return [entries]
    rounds: list[list[E]] = []
    seen: dict[int, int] = defaultdict(int)
    for entry in entries:
        number = seen[entry[2].delivery_id]
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(entry)
        seen[entry[2].delivery_id] += 1
    return rounds


def _judge(units: Sequence[LaneUnit], lanes: Lanes, gate: Gate | None) -> Judged:
    """Which units hold their lanes, and which intents the lanes' own guards let pass."""
    judged = Judged([], {}, [])
    for place, (lease, revision, usage, _, intent) in enumerate(units):
        lane = lanes.get(lease.account_id)
        holds = lane is not None and lane[1] == lease.generation and lane[2] == lease.process_id
        judged.held.append(holds)
        if lane is None or not holds:
            continue
        if usage is not None:
            judged.checkpoints[lease.account_id] = usage
        if intent is None or gate is None or gate.stopped:
            continue
        if lane[4] is None or lane[4] <= gate.now:
            continue
        if intent.starts and not (
            lane[3] == revision and lane[5] and intent.run_id in gate.running
        ):
            continue
        judged.intents.append((place, lease, intent))
    return judged


def _are_apart(rounds: list[list[Settling]], wishes: list[list[Intending]]) -> bool:
    """Whether every delivery is spoken of once in the whole group."""
    return len(rounds) == len(wishes) == 1 and {
        intent.delivery_id for _, _, intent in wishes[0]
    }.isdisjoint([settlement.delivery_id for _, _, settlement in rounds[0]])


def _note_settled(entries: list[Settling], moved: Moved, settled: list[bool], tally: Tally) -> None:
    for place, _, settlement in entries:
        found = moved.get(settlement.delivery_id)
        if found is None:
            continue
        settled[place] = True
        if settlement.state is not SENDING:
            account_id, run_id, before = found
            tally[account_id, run_id, before] -= 1
            tally[account_id, run_id, settlement.state._value_] += 1


def _note_intended(
    entries: list[Intending], passed: Iterable[int], intended: set[int], tally: Tally
) -> None:
    ids = set(passed)
    for place, lease, intent in entries:
        if intent.delivery_id in ids:
            intended.add(place)
            if intent.starts:
                before = NOBODY if intent.pooled else lease.account_id
                tally[before, intent.run_id, _READY] -= 1
                tally[lease.account_id, intent.run_id, _SENDING] += 1


def _results(
    units: Sequence[LaneUnit], held: list[bool], settled: list[bool], intended: set[int]
) -> list[LaneResult]:
    results = []
    first = 0
    for place, unit in enumerate(units):
        end = first + len(unit.settlements)
        key = (held[place], tuple(settled[first:end]), place in intended)
        results.append(_RESULTS.get(key) or LaneResult(*key))
        first = end
    return results
