"""Events: what happened, in words and values, and how far runs have come since it was last told.

They are numbered in the order they were written. On SQLite that is the order of their commits, for
one writes at a time. On PostgreSQL a transaction is given a number when it writes and others may
commit higher ones before it does, so a missing number may still come, or was rolled back and never
will. Whoever follows the numbers waits before a gap until nobody is left who could fill it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    ScalarSelect,
    Select,
    bindparam,
    case,
    cast,
    func,
    not_,
    select,
)

from paceline.core.events import EventKind, checked
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.events import Progress
from paceline.engine.ports.records import Event
from paceline.store import rows
from paceline.store.base import Subject, dump, storable
from paceline.store.prepared import Prepared, among, listed
from paceline.store.schema import campaigns, counters, events, runs

LONGEST_LIST = 100
"""Of a list among an event's values; nothing that is told has more worth telling."""

_UNDER_WAY = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)

# Whoever writes an event has this lock from before its number is drawn until after its commit can
# be seen by everybody. What the server says of its locks is as of now, whatever the snapshot.
_PG_WRITING = """
SELECT 1 FROM pg_locks
WHERE locktype = 'relation' AND relation = 'events'::regclass AND mode = 'RowExclusiveLock'
    AND granted AND pid IS DISTINCT FROM pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
LIMIT 1
"""


class Events(Subject):
    """What happened, newest first for people, oldest first for whoever follows."""

    def add(
        self,
        kind: EventKind,
        text: str,
        *,
        at: Instant,
        data: Mapping[str, Any] | None = None,
        account_id: int | None = None,
        run_id: int | None = None,
        delivery_id: int | None = None,
    ) -> None:
        told = data or {}
        _ADD.run(
            self._context,
            at=at,
            kind=checked(kind, told).value,
            text=storable(text),
            data=dump(_fit(told)),
            account_id=account_id,
            run_id=run_id,
            delivery_id=delivery_id,
        )

    def latest(
        self,
        *,
        account_id: int | None = None,
        run_id: int | None = None,
        kinds: Sequence[str] = (),
        limit: int = 20,
    ) -> list[Event]:
        statement = select(*rows.EVENT).order_by(events.c.id.desc()).limit(limit)
        if account_id is not None:
            statement = statement.where(events.c.account_id == account_id)
        if run_id is not None:
            statement = statement.where(events.c.run_id == run_id)
        if kinds:
            statement = statement.where(events.c.kind.in_(kinds))
        return [rows.event(row) for row in self._connection.execute(statement)]

    def after(self, event_id: int, limit: int, settled: int = 0) -> list[Event]:
        found = [
            rows.event(row)
            for row in _AFTER.run(self._context, last_seen=event_id, most=limit).fetchall()
        ]
        if not self._context.postgresql:
            return found
        expected = max(event_id, settled) + 1
        for place, event in enumerate(found):
            if event.id > expected:
                return found[:place]
            expected = max(expected, event.id + 1)
        return found

    def settled(self) -> int:
        # The number first: it is one of a transaction that may be over by the second question.
        last: int = _LAST.run(self._context).fetchone()[0]
        if self._context.postgresql:
            writing = self._context.ask(_PG_WRITING).fetchone()
            return 0 if writing else last
        return last

    def told_at(self, *, but: Collection[int] = ()) -> list[tuple[int, Instant]]:
        found = _TOLD_AT.run(self._context, unasked=listed(self._context, but))
        return [(run_id, at) for run_id, at in found.fetchall()]

    def progress(self, run_ids: Collection[int]) -> list[Progress]:
        found = _PROGRESS.run(self._context, asked=listed(self._context, run_ids))
        return [_how_far(row) for row in found.fetchall()]

    def progress_of(self, run_id: int) -> list[Progress]:
        return self.progress([run_id]) if self._held(run_id) else []

    def _held(self, run_id: int) -> bool:
        """Whether the run is ours to tell of. On SQLite a writer is alone."""
        statement = select(runs.c.id).where(runs.c.id == run_id)
        locked = statement.with_for_update(key_share=True, skip_locked=True)
        return self._connection.execute(locked).first() is not None


def _how_far(row: rows.Row) -> Progress:
    values = list(row)
    values[6] = 0 if row[6] is None else json.loads(row[6])["done"]
    return Progress(*values)


def _fit(value: Any) -> Any:
    """A value made fit to be stored and sent: texts and lists of a length one can live with."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {str(key): _fit(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_fit(entry) for entry in value[:LONGEST_LIST]]
    return value


def _running(chosen: ColumnElement[bool]) -> Select[Any]:
    """Those of campaigns and reminders."""
    return (
        select(runs.c.id)
        .join_from(runs, campaigns, campaigns.c.id == runs.c.campaign_id)
        .where(runs.c.state == rows.spelled(RunState.RUNNING), campaigns.c.kind != "direct", chosen)
    )


def _last_told() -> ScalarSelect[Any]:
    return (
        select(func.max(events.c.id))
        .where(events.c.run_id == runs.c.id, events.c.kind == EventKind.RUN_PROGRESS.value)
        .scalar_subquery()
    )


_told = events.alias("told")
_TOLD_LAST_AT = func.coalesce(_told.c.at, runs.c.started_at, 0)


def _when(on_postgresql: bool) -> Select[Any]:
    """Running runs, and when something was told of each last. No counter is looked at for that."""
    wanted = _running(not_(among(runs.c.id, "unasked", on_postgresql=on_postgresql)))
    return (
        wanted.add_columns(_TOLD_LAST_AT)
        .outerjoin(_told, _told.c.id == _last_told())
        .order_by(runs.c.id)
    )


def _progress(on_postgresql: bool) -> Select[Any]:
    """Running runs, each with what was told of it last."""
    wanted = _running(among(runs.c.id, "asked", on_postgresql=on_postgresql))
    moved = case(
        (counters.c.state.in_([rows.spelled(state) for state in _UNDER_WAY]), 0),
        else_=counters.c.n,
    )
    sent = case((counters.c.state == rows.spelled(DeliveryState.SENT), counters.c.n), else_=0)
    # Added up first: what was told last is to be looked for once, and not for every counter.
    sums = (
        select(
            counters.c.run_id,
            cast(func.sum(sent), BigInteger).label("sent"),
            cast(func.sum(moved), BigInteger).label("moved"),
            cast(func.sum(counters.c.n), BigInteger).label("total"),
        )
        # Most counters of an account are empty: what they would add is not worth reckoning.
        .where(counters.c.run_id.in_(wanted), counters.c.n > 0)
        .group_by(counters.c.run_id)
        .subquery("sums")
    )
    return (
        select(
            runs.c.id,
            campaigns.c.name,
            campaigns.c.kind,
            sums.c.sent,
            sums.c.moved,
            sums.c.total,
            _told.c.data,
            _TOLD_LAST_AT,
        )
        .join_from(sums, runs, runs.c.id == sums.c.run_id)
        .join(campaigns, campaigns.c.id == runs.c.campaign_id)
        .outerjoin(_told, _told.c.id == _last_told())
        .order_by(runs.c.id)
    )


_WRITTEN = ("at", "kind", "text", "data", "account_id", "run_id", "delivery_id")
_ADD = Prepared(lambda _: events.insert().values({name: bindparam(name) for name in _WRITTEN}))
_AFTER = Prepared(
    lambda _: (
        select(*rows.EVENT)
        .where(events.c.id > bindparam("last_seen", type_=BigInteger))
        .order_by(events.c.id)
        .limit(bindparam("most", type_=Integer))
    )
)
_LAST = Prepared(lambda _: select(func.coalesce(func.max(events.c.id), 0)))
_PROGRESS = Prepared(_progress)
_TOLD_AT = Prepared(_when)
