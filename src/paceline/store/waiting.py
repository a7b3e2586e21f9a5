"""What waits to be sent, read in bulk for a plan.

A plan looks at a hundred thousand deliveries at once, so it reads the few columns that gates care
about, a stream at a time, and asks about addresses by the thousand. Nothing is written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, or_, select

from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.records import Run
from paceline.engine.ports.timetable import PUT_OFF_WORDS
from paceline.engine.ports.waiting import WaitingRow
from paceline.store import rows
from paceline.store.base import Subject, array, chunks, dump
from paceline.store.campaigns import select_runs
from paceline.store.schema import accounts, counters, deliveries, run_accounts, runs

FETCHED_AT_ONCE = 5_000
ASKED_AT_ONCE = 20_000
"""Addresses in one question."""
IDS_AT_ONCE = 10_000
"""Numbers in one statement: both databases take more, but not without end."""

WAITING = (DeliveryState.PLANNED.value, DeliveryState.READY.value)
_SOMETHING_WAITS = (counters.c.n > 0, counters.c.state.in_(WAITING))

_COLUMNS = (
    deliveries.c.id,
    deliveries.c.run_id,
    deliveries.c.account_id,
    deliveries.c.after_id,
    deliveries.c.step,
    deliveries.c.position,
    deliveries.c.target,
    deliveries.c.contact_id,
    deliveries.c.content,
    deliveries.c.action,
    deliveries.c.reply,
    deliveries.c.state,
    deliveries.c.scheduled_at,
    deliveries.c.due_at,
    deliveries.c.expires_at,
    deliveries.c.recipient_hours,
    deliveries.c.parts_done,
    deliveries.c.attempts,
    rows.IS_SUPPRESSED,
    or_(*(deliveries.c.reason.startswith(words) for words in PUT_OFF_WORDS)),
)

# A list in one parameter, whatever its length. With CROSS JOIN SQLite begins with the list, as it
# should: the other way round it would go through the whole table.
_SUPPRESSED = {
    on_postgresql: f"SELECT s.address FROM {listed} CROSS JOIN suppressions s "
    "WHERE s.address = w.value"
    for on_postgresql, listed in (
        (True, "unnest(%s::text[]) AS w (value)"),
        (False, "json_each(?) AS w"),
    )
}


class Waiting(Subject):
    """Reads over deliveries that have not been sent."""

    def runs(self, account_ids: Iterable[int]) -> list[Run]:
        found: dict[int, Run] = {}
        for some in chunks(sorted(set(account_ids)), IDS_AT_ONCE):
            own = select(counters.c.run_id).where(
                counters.c.account_id.in_(some), *_SOMETHING_WAITS
            )
            shared = (
                select(counters.c.run_id)
                .join(run_accounts, run_accounts.c.run_id == counters.c.run_id)
                .where(
                    run_accounts.c.account_id.in_(some),
                    counters.c.account_id == NOBODY,
                    *_SOMETHING_WAITS,
                )
            )
            statement = select_runs().where(
                runs.c.state == RunState.RUNNING.value, runs.c.id.in_(own.union_all(shared))
            )
            for row in self._connection.execute(statement):
                run = rows.run(row)
                found[run.id] = run
        return [found[run_id] for run_id in sorted(found)]

    def pools(self, run_ids: Iterable[int]) -> Mapping[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for some in chunks(sorted(set(run_ids)), IDS_AT_ONCE):
            statement = (
                select(run_accounts.c.run_id, run_accounts.c.account_id)
                .join(accounts, accounts.c.id == run_accounts.c.account_id)
                .where(run_accounts.c.run_id.in_(some), accounts.c.removed_at.is_(None))
                .order_by(run_accounts.c.run_id, run_accounts.c.account_id)
            )
            for run_id, account_id in self._connection.execute(statement):
                found.setdefault(run_id, []).append(account_id)
        return {run_id: tuple(pool) for run_id, pool in found.items()}

    def accounts(self, run_ids: Iterable[int]) -> list[int]:
        found: set[int] = set()
        for some in chunks(sorted(set(run_ids)), IDS_AT_ONCE):
            statement = (
                select(counters.c.account_id)
                .where(
                    counters.c.run_id.in_(some),
                    counters.c.account_id != NOBODY,
                    *_SOMETHING_WAITS,
                )
                .distinct()
            )
            found.update(self._connection.execute(statement).scalars())
            for pool in self.pools(some).values():
                found.update(pool)
        return sorted(found)

    def deliveries(self, run_ids: Iterable[int]) -> Iterator[WaitingRow]:
        for run_id in sorted(set(run_ids)):
            for row in self._connection.execute(_of_run(run_id)):
                yield _waiting(row)

    def suppressed(self, addresses: Sequence[str]) -> set[str]:
        found: set[str] = set()
        postgresql, cursor = self._context.postgresql, self._context.cursor()
        for some in chunks(dict.fromkeys(addresses), ASKED_AT_ONCE):
            cursor.execute(_SUPPRESSED[postgresql], (array(some) if postgresql else dump(some),))
            found.update(address for (address,) in cursor.fetchall())
        return found


def _of_run(run_id: int) -> Select[Any]:
    return (
        select(*_COLUMNS)
        .where(deliveries.c.run_id == run_id, deliveries.c.state.in_(WAITING))
        .order_by(deliveries.c.id)
        .execution_options(yield_per=FETCHED_AT_ONCE)
    )


def _waiting(row: Any) -> WaitingRow:
    *head, content, action, reply, state = row[:12]
    parts = None if content is None else len(json.loads(content))
    planned = state == DeliveryState.PLANNED.value
    told = (bool(row[18]), bool(row[19]))
    return WaitingRow._make((*head, parts, action, reply, planned, *row[12:18], *told))
