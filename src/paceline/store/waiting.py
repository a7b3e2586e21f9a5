"""What waits to be sent, read in bulk for a plan.

A plan looks at a hundred thousand deliveries at once, so it reads the few columns that gates care
about, a stream at a time, and asks about addresses by the thousand. Nothing is written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    TextClause,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    text,
)

from paceline.core.address import entries_for
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.records import Delivery, Run
from paceline.engine.ports.timetable import IN_LINE_WORDS, PUT_OFF_WORDS
from paceline.engine.ports.waiting import Far, WaitingRow
from paceline.store import rows
from paceline.store.base import Subject, array, chunks, dump
from paceline.store.campaigns import select_runs
from paceline.store.prepared import Prepared, among, listed
from paceline.store.schema import (
    IN_FLIGHT,
    accounts,
    campaigns,
    counters,
    deliveries,
    run_accounts,
    runs,
)

FETCHED_AT_ONCE = 5_000
ASKED_AT_ONCE = 20_000
"""Addresses in one question."""
IDS_AT_ONCE = 10_000
"""Numbers in one statement: both databases take more, but not without end."""

_STATES = (DeliveryState.PLANNED, DeliveryState.READY)
WAITING = tuple(state.value for state in _STATES)
_SOMETHING_WAITS = (
    counters.c.n > 0,
    counters.c.state.in_([rows.spelled(state) for state in _STATES]),
)
_DUE_SOME_TIME = (
    deliveries.c.due_at.is_not(None),
    deliveries.c.state == rows.spelled(DeliveryState.READY),
)
_FOLLOWING = "deliveries.state = 'planned' AND deliveries.step > 1"

_COLUMNS: tuple[ColumnElement[Any], ...] = (
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
    and_(
        or_(*(deliveries.c.reason.startswith(words) for words in PUT_OFF_WORDS)),
        deliveries.c.reason.endswith(IN_LINE_WORDS),
    ),
    literal_column(
        "CASE WHEN deliveries.after_id IS NOT NULL "
        "THEN (SELECT p.sent_at FROM deliveries p WHERE p.id = deliveries.after_id) END"
    ),
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
# One after the other: each half follows an index of its own, and both together none.
_KNOWN = {
    on_postgresql: " UNION ".join(
        f"SELECT w.value FROM {listed} CROSS JOIN deliveries "
        f"WHERE deliveries.target = w.value AND deliveries.account_id = {place} AND {which}"
        for which in ("deliveries.sent_at IS NOT NULL", IN_FLIGHT)
    )
    for on_postgresql, listed, place in (
        (True, "unnest(%s::text[]) AS w (value)", "%s"),
        (False, "json_each(?) AS w", "?"),
    )
}
# The lists are looked into once for every delivery, and made into tables for it only once.
_TO_PEOPLE = {
    on_postgresql: text(
        f"(deliveries.target IN ({addresses}) OR deliveries.contact_id IN ({people}) OR "
        f"deliveries.target IN (SELECT address FROM addresses WHERE contact_id IN ({people})))"
    )
    for on_postgresql, addresses, people in (
        (
            True,
            "SELECT unnest(CAST(:addresses AS text[]))",
            "SELECT unnest(CAST(:people AS bigint[]))",
        ),
        (False, "SELECT value FROM json_each(:addresses)", "SELECT value FROM json_each(:people)"),
    )
}


_UNDER_WAY = or_(
    runs.c.state == RunState.RUNNING.value,
    # A firing waits until its first message is sent; a campaign that waits is a draft.
    and_(campaigns.c.kind == "reminder", runs.c.state == RunState.WAITING.value),
)


# Spelled as the index has it, on either database: SQLite would not see that it is the same.
_OF_TARGET = Prepared(
    lambda _: (
        select(*rows.DELIVERY)
        .where(
            deliveries.c.target == bindparam("target"),
            text("deliveries.state IN ('planned', 'ready') AND deliveries.scheduled_at >= 0"),
        )
        .order_by(deliveries.c.id)
    )
)


class Waiting(Subject):
    """Reads over deliveries that have not been sent."""

    def of_target(self, target: str) -> list[Delivery]:
        found = _OF_TARGET.run(self._context, target=target)
        return [rows.delivery(row) for row in found.fetchall()]

    def runs(self, account_ids: Iterable[int]) -> list[Run]:
        asked = listed(self._context, account_ids)
        return [rows.run(row) for row in _RUNS.run(self._context, asked=asked).fetchall()]

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

    def deliveries(
        self, run_ids: Iterable[int], until_at: Instant | None = None
    ) -> Iterator[WaitingRow]:
        for run_id in sorted(set(run_ids)):
            if until_at is None:
                yield from map(_waiting, self._connection.execute(_of_run(run_id)))
            else:
                yield from self._near(run_id, until_at)

    def _near(self, run_id: int, until_at: Instant) -> Iterator[WaitingRow]:
        due = _of_run(run_id).where(deliveries.c.due_at <= until_at)
        found = [_waiting(row) for row in self._connection.execute(due)]
        while found:
            yield from found
            before = [row.id for row in found]
            found = []
            for some in chunks(before, IDS_AT_ONCE):
                # In the words of the index of what follows.
                after = and_(deliveries.c.after_id.in_(some), text(_FOLLOWING))
                found += map(_waiting, self._connection.execute(_of_run(run_id).where(after)))

    def nth_due_at(self, run_ids: Iterable[int], number: int) -> Instant | None:
        wanted = sorted(set(run_ids))
        waits = select(func.coalesce(func.sum(counters.c.n), 0)).where(*_SOMETHING_WAITS)
        total = sum(
            self._connection.execute(waits.where(counters.c.run_id.in_(some))).scalar_one()
            for some in chunks(wanted, IDS_AT_ONCE)
        )
        if total <= number or len(wanted) > IDS_AT_ONCE:
            # So many runs are small ones, and no order over all of them is worth looking for.
            return None
        due = select(deliveries.c.due_at).where(deliveries.c.run_id.in_(wanted), *_DUE_SOME_TIME)
        statement = due.order_by(deliveries.c.due_at).limit(1).offset(number)
        found: Instant | None = self._connection.execute(statement).scalar()
        return found

    def beyond(self, run_ids: Iterable[int], until_at: Instant) -> list[Far]:
        found: list[Far] = []
        key = (deliveries.c.run_id, deliveries.c.account_id)
        due_at = deliveries.c.due_at
        for some in chunks(sorted(set(run_ids)), IDS_AT_ONCE):
            statement = (
                select(*key, func.count(), func.min(due_at), func.max(due_at))
                .where(deliveries.c.run_id.in_(some), *_DUE_SOME_TIME, due_at > until_at)
                .group_by(*key)
                .order_by(*key)
            )
            found += map(Far._make, self._connection.execute(statement))
        return found

    def due_between(self, lot: Far, after_at: Instant, until_at: Instant) -> int:
        owner, due_at = deliveries.c.account_id, deliveries.c.due_at
        whose = owner.is_(None) if lot.account_id is None else owner == lot.account_id
        run = deliveries.c.run_id == lot.run_id
        statement = select(func.count()).where(whose, run, due_at > after_at, due_at <= until_at)
        found: int = self._connection.execute(statement).scalar_one()
        return found

    def due(self, run_ids: Iterable[int], account_id: int | None, limit: int) -> list[WaitingRow]:
        found: list[WaitingRow] = []
        statement, whose = _NOBODYS, dict[str, int]()
        if account_id is not None:
            statement, whose = _DUE_ON, {"account_id": account_id}
        for run_id in sorted(set(run_ids)):
            most = limit - len(found)
            asked = statement.run(self._context, run_id=run_id, most=most, **whose)
            found += map(_waiting, asked.fetchall())
        return found

    def following(self, run_id: int, account_id: int) -> list[WaitingRow]:
        whose = (deliveries.c.account_id == account_id, text(_FOLLOWING))
        return [_waiting(row) for row in self._connection.execute(_of_run(run_id).where(*whose))]

    def suppressed(self, addresses: Sequence[str]) -> set[str]:
        asked = dict.fromkeys(entry for address in addresses for entry in entries_for(address))
        noted = self._noted(list(asked))
        if not noted:
            return noted
        return {address for address in addresses if not noted.isdisjoint(entries_for(address))}

    def _noted(self, entries: Sequence[str]) -> set[str]:
        found: set[str] = set()
        postgresql, ask = self._context.postgresql, self._context.ask
        for some in chunks(entries, ASKED_AT_ONCE):
            asked = ask(_SUPPRESSED[postgresql], (array(some) if postgresql else dump(some),))
            found.update(address for (address,) in asked.fetchall())
        return found

    def known(self, account_id: int, addresses: Sequence[str]) -> set[str]:
        found: set[str] = set()
        postgresql, ask = self._context.postgresql, self._context.ask
        for some in chunks(dict.fromkeys(addresses), ASKED_AT_ONCE):
            half = (array(some) if postgresql else dump(some), account_id)
            asked = ask(_KNOWN[postgresql], (*half, *half))
            found.update(address for (address,) in asked.fetchall())
        return found

    def places(self) -> set[tuple[int, int | None]]:
        statement = (
            select(counters.c.run_id, counters.c.account_id)
            .join(runs, runs.c.id == counters.c.run_id)
            .join(campaigns, campaigns.c.id == runs.c.campaign_id)
            .where(_UNDER_WAY, *_SOMETHING_WAITS)
        )
        found = self._connection.execute(statement)
        return {(run_id, None if owner == NOBODY else owner) for run_id, owner in found}

    def to_people(
        self, run_ids: Iterable[int], addresses: Iterable[str], contact_ids: Iterable[int]
    ) -> Iterator[WaitingRow]:
        wanted = sorted(set(run_ids))
        none_left: list[Any] = []
        lists = zip_longest(
            chunks(dict.fromkeys(addresses), ASKED_AT_ONCE),
            chunks(dict.fromkeys(contact_ids), ASKED_AT_ONCE),
            fillvalue=none_left,
        )
        found: dict[int, WaitingRow] = {}
        for some, people in lists if wanted else ():
            of_them = self._to_them(some, people)
            for ids in chunks(wanted, IDS_AT_ONCE):
                statement = select(*_COLUMNS).where(
                    deliveries.c.run_id.in_(ids), deliveries.c.state.in_(WAITING), of_them
                )
                found |= {row[0]: _waiting(row) for row in self._connection.execute(statement)}
        yield from (found[number] for number in sorted(found))

    def _to_them(self, addresses: list[str], people: list[int]) -> TextClause:
        postgresql = self._context.postgresql
        spelled = array if postgresql else dump
        return _TO_PEOPLE[postgresql].bindparams(
            addresses=spelled(addresses), people=spelled(people)
        )


def _of_run(run_id: int) -> Select[Any]:
    return (
        select(*_COLUMNS)
        .where(deliveries.c.run_id == run_id, deliveries.c.state.in_(WAITING))
        .order_by(deliveries.c.id)
        .execution_options(yield_per=FETCHED_AT_ONCE)
    )


def _due_on(owned: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*_COLUMNS)
        .where(
            owned,
            deliveries.c.run_id == bindparam("run_id"),
            deliveries.c.due_at.is_not(None),
            deliveries.c.state == rows.spelled(DeliveryState.READY),
        )
        .order_by(deliveries.c.due_at, deliveries.c.id)
        .limit(bindparam("most", type_=Integer))
    )


_DUE_ON = Prepared(lambda _: _due_on(deliveries.c.account_id == bindparam("account_id")))
_NOBODYS = Prepared(lambda _: _due_on(deliveries.c.account_id.is_(None)))


def _runs_on(on_postgresql: bool) -> Select[Any]:
    """Runs under way of which something waits on these accounts, or in a pool of theirs."""
    own = select(counters.c.run_id).where(
        among(counters.c.account_id, "asked", on_postgresql=on_postgresql), *_SOMETHING_WAITS
    )
    shared = (
        select(counters.c.run_id)
        .join(run_accounts, run_accounts.c.run_id == counters.c.run_id)
        .where(
            among(run_accounts.c.account_id, "asked", on_postgresql=on_postgresql),
            counters.c.account_id == NOBODY,
            *_SOMETHING_WAITS,
        )
    )
    statement = select_runs().where(_UNDER_WAY, runs.c.id.in_(own.union_all(shared)))
    return statement.order_by(runs.c.id)


_RUNS = Prepared(_runs_on)


def _waiting(row: Any) -> WaitingRow:
    *head, content, action, reply, state = row[:12]
    parts = None if content is None else len(json.loads(content))
    planned = state == DeliveryState.PLANNED.value
    told = (bool(row[18]), bool(row[19]), row[20])
    return WaitingRow._make((*head, parts, action, reply, planned, *row[12:18], *told))
