"""What will follow on an account and is not released yet, in the minutes that were planned for it.

Whoever looks for a free slot leaves it these, or what follows would find its day full.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from paceline.core.instants import Instant
from paceline.core.limits import Booked
from paceline.core.states import DeliveryState
from paceline.engine.booking import has_minutes
from paceline.engine.ports import Run, Tx
from paceline.engine.reading import Distances, Reading
from paceline.engine.recipients import Recipients


def expected_on(
    tx: Tx,
    account_id: int,
    runs: Sequence[Run],
    due: Mapping[int, Instant],
    moving: Container[int],
    *,
    now: Instant,
    most: int,
) -> Iterator[Booked]:
    """What can go in its minute, or so long after the one before it as it has to.

    ``due`` is when what is ready falls due, and ``moving`` what of it has lost its slot: nobody
    knows when something follows that. Of a run in which more than ``most`` follow, nothing is
    looked at.
    """
    reading = Reading(tx, now, Recipients(tx, (), now, {}), ())
    distances = Distances(tx)
    goes = {key: max(at, now) for key, at in due.items() if key not in moving}
    for run in runs:
        if not has_minutes(run) or not 0 < _following(tx, run, account_id) <= most:
            continue
        for row in tx.waiting.following(run.id, account_id):
            before_at = row.before_sent_at
            if before_at is None and row.after_id is not None:
                before_at = goes.get(row.after_id)
            if before_at is None:
                continue
            at = max(row.scheduled_at, before_at + distances.before(row.step, run))
            goes[row.id] = at
            want = reading.want(row, run, (account_id,), at, row.expires_at)
            yield Booked(row.id, max(at, now), want.ask._replace(not_before_at=at), movable=False)


def _following(tx: Tx, run: Run, account_id: int) -> int:
    return tx.runs.counts(run.id, account_id)[DeliveryState.PLANNED]
