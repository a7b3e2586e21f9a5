"""Deliveries outside the hot path: creation in bulk, single and bulk moves, paging.

What a lane does for every message is in ``path``. As there, the lanes of the accounts concerned are
held before a run, a counter or a waiting delivery is changed (see ``Context.hold_lanes``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    TextClause,
    and_,
    bindparam,
    case,
    delete,
    insert,
    or_,
    select,
    text,
    update,
)

from paceline.core.errors import IllegalTransition
from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.core.states import DELIVERY, DeliveryState
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.records import Delivery, NewDelivery
from paceline.store import rows
from paceline.store.base import (
    Subject,
    Tally,
    chunks,
    storable,
    tally_move,
)
from paceline.store.contacted import contacted
from paceline.store.doubts import ENDED, IN_DOUBT, IS_IN_DOUBT, MAY_BE_IN_DOUBT, left_open
from paceline.store.moves import known
from paceline.store.new_deliveries import COLUMNS, COPY, INSERT, first_state, values_of
from paceline.store.prepared import Prepared
from paceline.store.schema import IN_FLIGHT, accounts, counters, deliveries, runs

CHUNK = 2_000
"""Rows held in memory and sent to the database at a time by a bulk insert."""

READY, UNKNOWN, SENT = DeliveryState.READY, DeliveryState.UNKNOWN, DeliveryState.SENT


class Deliveries(Subject):
    """One row per message to one target: its plan and its place in the queue."""

    def add(self, rows: Iterable[NewDelivery], at: Instant) -> int:
        self._context.unhurried()
        tally: Tally = {}
        for chunk in chunks(rows, CHUNK):
            self._insert([values_of(new, at) for new in chunk])
            for new in chunk:
                key = (new.account_id or NOBODY, new.run_id, first_state(new).value)
                tally[key] = tally.get(key, 0) + 1
        self._created(tally)
        return sum(tally.values())

    def add_one(self, row: NewDelivery, at: Instant) -> int:
        values = dict(zip(COLUMNS, values_of(row, at), strict=True))
        delivery_id: int = _ADD_ONE.run(self._context, **values).fetchone()[0]
        self._created({(row.account_id or NOBODY, row.run_id, first_state(row).value): 1})
        return delivery_id

    def _created(self, tally: Tally) -> None:
        if not tally:
            return
        # Only now: nobody else sees the new rows, and lanes need not wait for their insertion.
        self._context.hold_lanes(account_id for account_id, _, _ in tally)
        totals: Counter[int] = Counter()
        for (_, run_id, _), count in tally.items():
            totals[run_id] += count
        for run_id, count in sorted(totals.items()):
            _GROW.run(self._context, grown_id=run_id, by=count)
        self._context.open_counters({(account_id, run_id) for account_id, run_id, _ in tally})
        self._context.add_counts(tally)

    def _insert(self, values: list[tuple[Any, ...]]) -> None:
        cursor = self._context.cursor()
        if not self._context.postgresql:
            cursor.executemany(INSERT, values)
            return
        with cursor.copy(COPY) as copy:
            for row in values:
                copy.write_row(row)

    def get(self, delivery_id: int) -> Delivery:
        row = _GET.run(self._context, delivery_id=delivery_id).fetchone()
        return rows.delivery(rows.found(row, "delivery", delivery_id))

    def release(
        self, run_id: int, due_at: Instant, at: Instant, expire_after_us: int | None = None
    ) -> int:
        self._context.unhurried()
        later = case((deliveries.c.scheduled_at > due_at, deliveries.c.scheduled_at), else_=due_at)
        values: dict[str, Any] = {"state": READY.value, "due_at": later, "moved_at": at}
        if expire_after_us is not None:
            values["expires_at"] = later + expire_after_us
        return self._move_rows(
            run_id, DeliveryState.PLANNED, values, account_id=None, only=deliveries.c.step == 1
        )

    def move(
        self,
        delivery_id: int,
        event: str,
        *,
        at: Instant,
        due_at: Instant | None = None,
        reason: str = "",
        retries: int | None = None,
        parts_done: int | None = None,
        provider_id: str | None = None,
    ) -> DeliveryState | None:
        _ours(event)
        self._hold_lane_of(delivery_id)
        row = _LOCK.run(self._context, delivery_id=delivery_id).fetchone()
        before, owner, run_id, attempts = rows.found(row, "delivery", delivery_id)
        source = DeliveryState(before)
        state = DELIVERY.table.get((source, event))
        if source in MAY_BE_IN_DOUBT:
            doubt = bool(attempts) and self._in_doubt(delivery_id)
            if doubt and state in ENDED:
                state, reason = DELIVERY.next(source, "lose"), left_open(reason)
            elif event == "lose" and not doubt:
                return None
        if state is None:
            return None
        values = _changes(state, at, due_at, reason)
        optional = {
            "retries": retries,
            "parts_done": parts_done,
            "provider_id": provider_id and keepable_name(provider_id),
        }
        values |= {key: value for key, value in optional.items() if value is not None}
        if event == "bounce":
            # Whoever was told that it is sent must hear that it is not.
            values["awaited"] = True
        _move(tuple(values)).run(self._context, moved_id=delivery_id, **values)
        tally: Tally = {}
        tally_move(tally, owner or NOBODY, run_id, before, state.value)
        self._context.add_counts(tally)
        return state

    def lose(self, delivery_id: int, at: Instant) -> bool:
        """See the port."""
        failed = self.get(delivery_id)
        if failed.state is not DeliveryState.FAILED:
            return False
        return self.move(delivery_id, "lose", at=at, reason=left_open(failed.reason)) is not None

    def _in_doubt(self, delivery_id: int) -> bool:
        return IS_IN_DOUBT.run(self._context, delivery_id=delivery_id).fetchone() is not None

    def move_all(
        self,
        run_id: int,
        event: str,
        *,
        at: Instant,
        reason: str = "",
        account_id: int | None = None,
        pooled: bool = False,
    ) -> int:
        _ours(event)
        self._context.unhurried()
        concerned = select(counters.c.account_id).where(counters.c.run_id == run_id)
        if account_id is not None:
            concerned = concerned.where(counters.c.account_id == account_id)
        self._context.hold_lanes(self._connection.execute(concerned.distinct()).scalars())
        moved = 0
        # No event leads from one of its sources to another, so no row is moved twice.
        for source in DELIVERY.sources(event):
            state = DELIVERY.next(source, event)
            if source is READY and state in ENDED:
                lost = _changes(DELIVERY.next(source, "lose"), at, None, left_open(reason))
                self._context.by_key()
                self._move_rows(run_id, source, lost, account_id, pooled, only=text(IN_DOUBT))
            values = _changes(state, at, None, reason)
            moved += self._move_rows(run_id, source, values, account_id, pooled)
        return moved

    def _move_rows(
        self,
        run_id: int,
        source: DeliveryState,
        values: dict[str, Any],
        account_id: int | None,
        pooled: bool = False,
        only: ColumnElement[bool] | TextClause | None = None,
    ) -> int:
        statement = update(deliveries).where(
            deliveries.c.run_id == run_id, deliveries.c.state == rows.spelled(source)
        )
        if only is not None:
            statement = statement.where(only)
        if account_id is not None:
            owned = deliveries.c.account_id == account_id
            nobodys = deliveries.c.account_id.is_(None)
            statement = statement.where(or_(owned, nobodys) if pooled else owned)
        result = self._connection.execute(
            statement.values(values).returning(deliveries.c.account_id)
        )
        moved = Counter(account or NOBODY for account in result.scalars())
        # What was planned is nobody's until it is released, so its lanes are held only from here.
        self._context.hold_lanes(moved)
        tally: Tally = {}
        for account, count in moved.items():
            tally_move(tally, account, run_id, source.value, values["state"], count)
        self._context.add_counts(tally)
        return moved.total()

    def drop_planned(self, run_id: int) -> int:
        self._context.unhurried()
        statement = delete(deliveries).where(
            deliveries.c.run_id == run_id,
            deliveries.c.state == rows.spelled(DeliveryState.PLANNED),
        )
        dropped: int = self._connection.execute(statement).rowcount
        planned = (counters.c.run_id == run_id, counters.c.state == DeliveryState.PLANNED.value)
        self._connection.execute(update(counters).where(*planned).values(n=0))
        total = update(runs).where(runs.c.id == run_id)
        self._connection.execute(total.values(total=runs.c.total - dropped))
        return dropped

    def retry_failed(self, run_id: int, at: Instant, expire_after_us: int | None) -> int:
        self._context.unhurried()
        values: dict[str, Any] = {
            **_changes(READY, at, at, "tried again by an operator"),
            "retries": 0,
            "expires_at": None if expire_after_us is None else at + expire_after_us,
        }
        there = select(accounts.c.id).where(accounts.c.removed_at.is_(None))
        may_be_sent = and_(deliveries.c.account_id.in_(there), ~rows.SUPPRESSED)
        return self._move_rows(run_id, DeliveryState.FAILED, values, None, only=may_be_sent)

    def postpone(
        self, delivery_id: int, due_at: Instant | None, reason: str, retries: int | None = None
    ) -> bool:
        self._hold_lane_of(delivery_id)
        waiting = deliveries.c.state == UNKNOWN.value
        if due_at is not None:  # what is ready is always due at some time
            waiting = or_(waiting, deliveries.c.state == READY.value)
        values: dict[str, Any] = {"due_at": due_at, "reason": storable(reason)}
        if retries is not None:
            values["retries"] = retries
        statement = update(deliveries).where(deliveries.c.id == delivery_id, waiting)
        return self._connection.execute(statement.values(values)).rowcount == 1

    def _hold_lane_of(self, delivery_id: int) -> None:
        if self._context.postgresql:
            statement = select(deliveries.c.account_id).where(deliveries.c.id == delivery_id)
            owners = self._connection.execute(statement).scalars()
            self._context.hold_lanes(owner for owner in owners if owner is not None)

    def hold(self, delivery_id: int, account_id: int) -> bool:
        row = _LOCK.run(self._context, delivery_id=delivery_id).fetchone()
        return row is not None and row[1] in (None, account_id)

    def page(
        self,
        *,
        run_id: int | None = None,
        account_id: int | None = None,
        state: DeliveryState | None = None,
        after_id: int = 0,
        limit: int = 1000,
    ) -> list[Delivery]:
        statement = _select().where(deliveries.c.id > after_id)
        if run_id is not None:
            statement = statement.where(deliveries.c.run_id == run_id)
        if account_id is not None:
            statement = statement.where(deliveries.c.account_id == account_id)
        if state is not None:
            statement = statement.where(deliveries.c.state == rows.spelled(state))
        statement = statement.order_by(deliveries.c.id).limit(limit)
        return [rows.delivery(row) for row in self._connection.execute(statement)]

    def sent_to(self, account_id: int, target: str, limit: int) -> list[Delivery]:
        asked = {"account": account_id, "target": target, "most": limit}
        return [rows.delivery(row) for row in SENT_TO.run(self._context, **asked).fetchall()]

    def contacted(
        self,
        targets: Sequence[str],
        since_at: Instant,
        people: Mapping[str, int] | None = None,
    ) -> dict[str, tuple[Instant, ...]]:
        return contacted(self._context, targets, since_at, people or {})

    def knows(self, account_id: int, target: str) -> bool:
        theirs = (deliveries.c.account_id == account_id, deliveries.c.target == target)
        # One after the other: each follows an index of its own, and both together none.
        return any(
            self._connection.execute(select(deliveries.c.id).where(*theirs, which).limit(1)).first()
            for which in (deliveries.c.sent_at.is_not(None), text(IN_FLIGHT))
        )


def _select() -> Select[Any]:
    return select(*rows.DELIVERY)


def sent_to(*whom: Any) -> Select[Any]:
    """The latest that were sent there; ``most`` of them. By the address and then by its time, as
    the index goes: it is asked for with every answer that is made."""
    return (
        _select()
        .where(deliveries.c.sent_at.is_not(None), *whom)
        .order_by(deliveries.c.sent_at.desc(), deliveries.c.id.desc())
        .limit(bindparam("most"))
    )


SENT_TO = Prepared(
    lambda _: sent_to(
        deliveries.c.target == bindparam("target"), deliveries.c.account_id == bindparam("account")
    )
)


@cache
def _move(columns: tuple[str, ...]) -> Prepared:
    """One delivery's new values; which of them are set varies little."""
    return Prepared(
        lambda _: (
            update(deliveries)
            .where(deliveries.c.id == bindparam("moved_id"))
            .values({name: bindparam(name) for name in columns})
        )
    )


_ADD_ONE = Prepared(
    lambda _: (
        insert(deliveries)
        .values({name: bindparam(name) for name in COLUMNS})
        .returning(deliveries.c.id)
    )
)
_GROW = Prepared(
    lambda _: (
        update(runs)
        .where(runs.c.id == bindparam("grown_id"))
        .values(total=runs.c.total + bindparam("by"))
    )
)
_GET = Prepared(lambda _: _select().where(deliveries.c.id == bindparam("delivery_id")))
_LOCK = Prepared(
    lambda _: (
        select(
            deliveries.c.state,
            deliveries.c.account_id,
            deliveries.c.run_id,
            deliveries.c.attempts,
        )
        .where(deliveries.c.id == bindparam("delivery_id"))
        .with_for_update(key_share=True)
    )
)


def _ours(event: str) -> None:
    known(DELIVERY, event)
    if event == "intend":
        raise IllegalTransition("an intent is written by the path, with its ledger row")


def _changes(
    state: DeliveryState, at: Instant, due_at: Instant | None, reason: str
) -> dict[str, Any]:
    """What a move sets: due only while it waits, and sent at the instant it was found sent."""
    values: dict[str, Any] = {
        "state": state.value,
        "due_at": None,
        "reason": storable(reason),
        "moved_at": at,
    }
    if state is READY:
        values["due_at"] = at if due_at is None else due_at
    elif state is UNKNOWN:
        values["due_at"] = due_at
    elif state is SENT:
        values["sent_at"] = at
    return values
