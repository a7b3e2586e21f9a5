"""A group of the message path on PostgreSQL, in one flight.

Nearly always everything is as the lanes believe: they own what they own, nothing was stopped, each
delivery is where they left it. Then every answer is known beforehand, and nobody has to wait for
one to know what to ask next. So the whole group is told at once, its COMMIT included, and waited
for once.

Each statement insists on what is believed. The first that finds anything else is an error to the
server, which undoes all of it and looks at nothing that follows; the journal then asks one thing
after the other (``path.py``), and finds out who was wrong. The guards are the same, in the same
order and with the same locks (``path_postgresql.py``): only who compares is another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from paceline.core.states import DeliveryState
from paceline.engine.ports.path import LaneResult, LaneUnit
from paceline.store.base import Tally
from paceline.store.path import READY, SENDING, Intending, Settling

_READY, _SENDING = READY.value, SENDING.value
_STARTED_RESULTS = [LaneResult(True, (True,) * settled, True) for settled in range(3)]
_OTHER_RESULTS = [LaneResult(True, (True,) * settled, False) for settled in range(3)]


class Believed(NamedTuple):
    """A group, sorted by account, of which everything is known if its lanes are right."""

    units: list[LaneUnit]
    settlings: list[Settling]
    intents: list[Intending]
    process_id: int

    @property
    def runs(self) -> list[int]:
        """Those that must be running."""
        return sorted({intent.run_id for _, _, intent in self.intents})

    @property
    def revisions(self) -> list[int]:
        """By unit; -1 where nothing is started, so that none is believed in."""
        return [-1 if unit.intent is None else unit.revision for unit in self.units]

    @property
    def checkpoints(self) -> tuple[list[int], list[str]] | None:
        """Of which accounts, and what they say."""
        kept = [
            (unit.lease.account_id, unit.usage) for unit in self.units if unit.usage is not None
        ]
        return ([one for one, _ in kept], [text for _, text in kept]) if kept else None

    def tally(self) -> Tally:
        tally: Tally = defaultdict(int)
        for _, lease, settlement in self.settlings:
            tally[lease.account_id, settlement.run_id, _SENDING] -= 1
            tally[lease.account_id, settlement.run_id, settlement.state._value_] += 1
        for _, lease, intent in self.intents:
            tally[lease.account_id, intent.run_id, _READY] -= 1
            tally[lease.account_id, intent.run_id, _SENDING] += 1
        return tally


def believed(units: Sequence[LaneUnit]) -> Believed | None:
    """None where an answer depends on what the database says: of two that concern the same lane or
    delivery the second depends on the first, a message of several parts on what came of the others,
    one of a pool on whoever else wants it, and a person's rest on all who write to him."""
    if not units:
        return None
    process_id = units[0].lease.process_id
    settlings: list[Settling] = []
    intents: list[Intending] = []
    deliveries: set[int] = set()
    for place, (lease, _, _, settlements, intent) in enumerate(units):
        if lease.process_id != process_id:
            return None
        for settlement in settlements:
            if settlement.state is DeliveryState.SENDING:
                return None
            deliveries.add(settlement.delivery_id)
            settlings.append((place, lease, settlement))
        if intent is not None:
            if not intent.starts or intent.pooled or intent.sparing is not None:
                return None
            deliveries.add(intent.delivery_id)
            intents.append((place, lease, intent))
    if len(deliveries) < len(settlings) + len(intents):
        return None
    in_order = sorted(units, key=_account)
    if len({_account(unit) for unit in units}) < len(units):
        return None
    return Believed(in_order, settlings, intents, process_id)


def _account(unit: LaneUnit) -> int:
    return unit.lease.account_id


def foretold(units: Sequence[LaneUnit]) -> list[LaneResult]:
    """What all of them are answered if they are right."""
    results = []
    for unit in units:
        intended, settled = unit.intent is not None, len(unit.settlements)
        known = _STARTED_RESULTS if intended else _OTHER_RESULTS
        results.append(
            known[settled]
            if settled < len(known)
            else LaneResult(True, (True,) * settled, intended)
        )
    return results
