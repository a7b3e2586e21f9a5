"""What other accounts are about to send to the people of a plan.

Nobody is to be written to more often than ``per_recipient`` has it, by whomever. So where an
account of the plan minds, the deliveries that wait for the same people anywhere else are played as
well: only those, by the limits of their own accounts, from the instants at which they are due.
Nothing of it is part of the plan.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.core.instants import Instant
from paceline.core.plan import Layout, Queue, Seat, lay_out
from paceline.engine.ground import Ground, as_they_stand, seat_of
from paceline.engine.ports import Run, Tx, WaitingRow
from paceline.engine.reading import Reading
from paceline.engine.recipients import People, Recipients, minds
from paceline.engine.turns import planned_rank


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Accounts that are not of the plan, and what they have for the people who are."""

    now: Instant
    seats: Sequence[Seat] = ()
    queues: Sequence[Queue] = ()

    def promised(self, seed: str) -> Mapping[str, Sequence[Instant]]:
        """When those people will be written to, by their names: what a new plan goes around, so
        that nobody else's is upset by it."""
        layout = lay_out(self.seats, self.queues, self.now, random.Random(seed))
        wants = {want.key: want for queue in self.queues for want in queue.wants}
        found: defaultdict[str, list[Instant]] = defaultdict(list)
        for slot in layout.slots:
            want = wants[slot.key]
            for name in (want.target, *want.also):
                found[name].append(slot.at)
        return found

    def besides(self, layout: Layout) -> Layout:
        """What was laid out together with this, without it."""
        if not self.queues:
            return layout
        return Layout(
            [slot for slot in layout.slots if slot.run_id >= 0],
            [never for never in layout.nevers if never.run_id >= 0],
        )


def look_elsewhere(tx: Tx, ground: Ground, people: People | None = None) -> Elsewhere:
    """What waits elsewhere for those the ground is about, and for ``people``: those of a campaign
    that is not stored yet. Where nobody minds, nothing is asked."""
    nothing = Elsewhere(ground.now)
    if not minds(ground.seats.values()):
        return nothing
    places = {place for place in tx.waiting.places() if not _is_of(ground, *place)}
    if not places:
        return nothing
    everybody = {**ground.people, **(people or {})}
    known = {contact_id for contact_id in everybody.values() if contact_id is not None}
    rows = [
        row
        for row in tx.waiting.to_people({run_id for run_id, _ in places}, everybody, known)
        if (row.run_id, row.account_id) in places
    ]
    return _read(tx, ground, rows, everybody) if rows else nothing


def _is_of(ground: Ground, run_id: int, account_id: int | None) -> bool:
    """Whether what waits there is laid out anyway."""
    return run_id in ground.runs if account_id is None else account_id in ground.seats


def _read(tx: Tx, ground: Ground, rows: list[WaitingRow], people: People) -> Elsewhere:
    runs: dict[int, Run] = {number: tx.runs.get(number) for number in {row.run_id for row in rows}}
    pools = tx.waiting.pools({row.run_id for row in rows if row.account_id is None})
    lines: dict[tuple[int, tuple[int, ...]], list[WaitingRow]] = {}
    for row in rows:
        owners = pools.get(row.run_id, ()) if row.account_id is None else (row.account_id,)
        lines.setdefault((row.run_id, owners), []).append(row)
    ids = sorted({account_id for _, owners in lines for account_id in owners})
    seats = [seat_of(tx, account_id, ground.now)[0] for account_id in ids]
    everybody: dict[str, int | None] = {row.target: None for row in rows}
    everybody |= {row.target: row.contact_id for row in rows if row.contact_id is not None}
    # No delivery knows those who are not stored yet: they are told by their addresses.
    strangers = ((row.target, people.get(row.target)) for row in rows if row.contact_id is None)
    everybody |= {address: owner for address, owner in strangers if owner is not None and owner < 0}
    recipients = Recipients(tx, [*ground.seats.values(), *seats], ground.now, everybody)
    reading = Reading(tx, ground.now, recipients, {row.id: row.target for row in rows})
    queues = []
    for (run_id, owners), some in lines.items():
        run = runs[run_id]
        wants = [
            reading.want(row, run, owners, as_they_stand(row, run), row.expires_at) for row in some
        ]
        # A number of its own, that no run of the plan has.
        queues.append(Queue(-run_id, planned_rank(run, ground.now), wants, owners))
    return Elsewhere(ground.now, seats, queues)
