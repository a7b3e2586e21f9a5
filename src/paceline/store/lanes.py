"""Lanes and the processes that own them: leases, generations, wakes.

A lease belongs to a process and is measured by the database's clock; a lane is held by naming its
owner and its generation. Every write here is one guarded UPDATE, so whoever comes second changes
nothing and is told so. An owner always exists (a foreign key), hence no lane can be lost with it.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ClauseElement,
    ColumnElement,
    Update,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from paceline.core.instants import Instant
from paceline.engine.ports.records import LaneRow, Lease, ProcessRow
from paceline.store import rows
from paceline.store.base import Cursor, Subject
from paceline.store.prepared import Prepared, among, listed
from paceline.store.schema import (
    UNSETTLED,
    accounts,
    counters,
    lanes,
    processes,
    run_accounts,
)

_FREE_AND_WAKING = and_(lanes.c.owner.is_(None), lanes.c.wake_at.is_not(None))


class Lanes(Subject):
    """Who may send for each account, and when somebody should look again."""

    def get(self, account_id: int) -> LaneRow:
        row = _GET.run(self._context, account_id=account_id).fetchone()
        return rows.lane(rows.found(row, "lane", account_id))

    def due(
        self, process_id: int, limit: int, account_ids: Iterable[int] | None = None
    ) -> list_of[LaneRow]:
        asked = {"now": self._context.now, "process_id": process_id, "most": limit}
        found = self._among(_DUE, _DUE_AMONG, account_ids, **asked)
        return [rows.lane(row) for row in found.fetchall()]

    def next_wake_at(self, account_ids: Iterable[int] | None = None) -> Instant | None:
        row = self._among(_NEXT_WAKE, _NEXT_WAKE_AMONG, account_ids).fetchone()
        wake_at: Instant | None = None if row is None else row[0]
        return wake_at

    def _among(
        self, all_lanes: Prepared, some: Prepared, account_ids: Iterable[int] | None, **values: int
    ) -> Cursor:
        if account_ids is None:
            return all_lanes.run(self._context, **values)
        return some.run(self._context, wanted=listed(self._context, account_ids), **values)

    def take(self, account_id: int, process_id: int) -> LaneRow | None:
        # An intent under way holds this row, so a takeover waits for its commit, and an intent
        # that comes later finds another generation.
        now = self._context.now
        taken = _TAKE.run(self._context, account_id=account_id, process_id=process_id, now=now)
        row = taken.fetchone()
        return rows.lane(row) if row else None

    def take_free(self, account_ids: Sequence[int], process_id: int) -> list_of[LaneRow]:
        # An intent under way holds its lane here too: the lane is left for another time. Whatever
        # was committed before the lock is seen, because a row that is locked is judged again.
        wanted, now = listed(self._context, account_ids), self._context.now
        taken = _TAKE_FREE.run(self._context, wanted=wanted, process_id=process_id, now=now)
        return sorted((rows.lane(row) for row in taken.fetchall()), key=_account_id)

    def quiet(self, lease: Lease, revision: int) -> bool:
        return self._changed(_QUIET, lease, seen=revision)

    def park(self, lease: Lease, revision: int, wake_at: Instant | None) -> bool:
        return self._changed(_PARK, lease, seen=revision, wakes_at=wake_at)

    def release(self, lease: Lease, wake_at: Instant | None = None) -> bool:
        due_at = self._context.now if wake_at is None else wake_at
        return self._changed(_RELEASE, lease, wakes_at=due_at)

    def _changed(self, change: Prepared, lease: Lease, **values: Any) -> bool:
        cursor = change.run(
            self._context,
            held_account_id=lease.account_id,
            held_owner=lease.process_id,
            held_generation=lease.generation,
            **values,
        )
        return bool(cursor.rowcount == 1)

    def touch(self, account_id: int, wake_at: Instant) -> None:
        # Whoever calls means now by its own clock, which may be ahead of the one that wakes.
        wake_at = min(wake_at, self._context.now)
        _TOUCH.run(self._context, touched_id=account_id, wakes_at=wake_at)
        self._context.note_held(account_id)

    def touch_run(self, run_id: int, wake_at: Instant) -> None:
        self._touch(_concerned([run_id]), wake_at)

    def touch_all(self, wake_at: Instant) -> None:
        self._touch(select(accounts.c.id).where(accounts.c.removed_at.is_(None)), wake_at)

    def hold(self, account_id: int, run_ids: Iterable[int] = ()) -> None:
        if not self._context.postgresql:
            return
        wanted, others = [*run_ids], list_of[int]()
        if wanted:
            others = list_of(self._connection.execute(_concerned(wanted)).scalars())
        self._context.hold_lanes([account_id, *others])

    def _touch(self, concerned: Any, wake_at: Instant) -> None:
        wake_at = min(wake_at, self._context.now)
        chosen = lanes.c.account_id.in_(concerned)
        if self._context.postgresql:
            # Locked in one order for everybody, so that no two can deadlock.
            self._connection.execute(
                select(lanes.c.account_id)
                .where(chosen)
                .order_by(lanes.c.account_id)
                .with_for_update(key_share=True)
            )
        self._connection.execute(_touched(chosen, wake_at))


def _concerned(run_ids: list_of[int]) -> Any:
    """The accounts that have something left of these runs, or may take something of them."""
    unsettled = select(counters.c.account_id).where(
        counters.c.run_id.in_(run_ids),
        counters.c.n > 0,
        counters.c.state.in_(UNSETTLED),
    )
    return unsettled.union(
        select(run_accounts.c.account_id).where(run_accounts.c.run_id.in_(run_ids))
    )


def _touched(chosen: ColumnElement[bool], wake_at: Any) -> Update:
    later = or_(lanes.c.wake_at.is_(None), lanes.c.wake_at > wake_at)
    wakes_at = case((later, wake_at), else_=lanes.c.wake_at)
    return update(lanes).where(chosen).values(revision=lanes.c.revision + 1, wake_at=wakes_at)


_TOUCH = Prepared(
    lambda _: _touched(
        lanes.c.account_id == bindparam("touched_id"), bindparam("wakes_at", type_=BigInteger)
    )
)


def _due(on_postgresql: bool, *, some: bool = False) -> ClauseElement:
    # Three index lookups rather than one condition with OR, which would scan every lane.
    now: BindParameter[int] = bindparam("now")
    process_id: BindParameter[int] = bindparam("process_id")
    in_service: ColumnElement[bool] = exists().where(
        accounts.c.id == lanes.c.account_id, accounts.c.removed_at.is_(None)
    )
    if some:
        in_service = and_(in_service, _wanted(on_postgresql))
    expired = select(processes.c.id).where(processes.c.lease_until_at <= now)
    free = and_(_FREE_AND_WAKING, lanes.c.wake_at <= now)
    orphaned = and_(lanes.c.owner.in_(expired), lanes.c.owner != process_id)
    ours = and_(lanes.c.owner == process_id, lanes.c.wake_at <= now)
    chosen = union_all(
        *(select(*rows.LANE).where(kind, in_service) for kind in (free, orphaned, ours))
    ).subquery()
    # An orphan may have no wake of its own; it has waited longest.
    return (
        select(chosen)
        .order_by(func.coalesce(chosen.c.wake_at, 0), chosen.c.account_id)
        .limit(bindparam("most"))
    )


def _next_wake(on_postgresql: bool, *, some: bool = False) -> ClauseElement:
    chosen = (
        select(lanes.c.wake_at)
        .join(accounts, accounts.c.id == lanes.c.account_id)
        .where(_FREE_AND_WAKING, accounts.c.removed_at.is_(None))
        .order_by(lanes.c.wake_at)
        .limit(1)
    )
    return chosen.where(_wanted(on_postgresql)) if some else chosen


def _wanted(on_postgresql: bool) -> ColumnElement[bool]:
    return among(lanes.c.account_id, "wanted", on_postgresql=on_postgresql)


def _may_take() -> ColumnElement[bool]:
    alive = exists().where(
        processes.c.id == lanes.c.owner, processes.c.lease_until_at > bindparam("now")
    )
    known = exists().where(processes.c.id == bindparam("process_id"))
    return and_(or_(lanes.c.owner.is_(None), ~alive), known)


def _take_free(on_postgresql: bool) -> ClauseElement:
    free = (
        select(lanes.c.account_id)
        .where(_wanted(on_postgresql), _may_take())
        .with_for_update(key_share=True, skip_locked=True)
        .cte("free")
    )
    return _taking(lanes.c.account_id.in_(select(free.c.account_id)))


def _taking(chosen: ColumnElement[bool]) -> ClauseElement:
    return (
        update(lanes)
        .where(chosen)
        .values(generation=lanes.c.generation + 1, owner=bindparam("process_id"), wake_at=None)
        .returning(*rows.LANE)
    )


def _changing(*guards: ColumnElement[bool], **values: Any) -> Prepared:
    """A change to a lane that only its holder can make."""
    return Prepared(
        lambda _: (
            update(lanes)
            .where(
                lanes.c.account_id == bindparam("held_account_id"),
                lanes.c.owner == bindparam("held_owner"),
                lanes.c.generation == bindparam("held_generation"),
                *guards,
            )
            .values(values)
        )
    )


_GET = Prepared(lambda _: select(*rows.LANE).where(lanes.c.account_id == bindparam("account_id")))
_DUE = Prepared(_due)
_DUE_AMONG = Prepared(partial(_due, some=True))
_NEXT_WAKE = Prepared(_next_wake)
_NEXT_WAKE_AMONG = Prepared(partial(_next_wake, some=True))
_TAKE = Prepared(
    lambda _: _taking(and_(lanes.c.account_id == bindparam("account_id"), _may_take()))
)
_TAKE_FREE = Prepared(_take_free)
_UNTOUCHED = lanes.c.revision == bindparam("seen")
_QUIET = _changing(_UNTOUCHED, wake_at=None)
_PARK = _changing(_UNTOUCHED, owner=None, wake_at=bindparam("wakes_at"))
_RELEASE = _changing(owner=None, wake_at=bindparam("wakes_at"))
_DEAD = and_(
    processes.c.lease_until_at < bindparam("dead_since_at", type_=BigInteger),
    ~exists().where(lanes.c.owner == processes.c.id),
)
_ANY_DEAD = Prepared(lambda _: select(processes.c.id).where(_DEAD).limit(literal_column("1")))
_BURY = Prepared(lambda _: delete(processes).where(_DEAD))
_JOIN = Prepared(
    lambda _: (
        insert(processes)
        .values({name: bindparam(name) for name in ("name", "started_at", "lease_until_at")})
        .returning(*rows.PROCESS)
    )
)
_RENEW = Prepared(
    lambda _: (
        update(processes)
        .where(processes.c.id == bindparam("renewed_id"))
        .values(
            lease_until_at=case(
                (exists().where(lanes.c.owner == bindparam("renewed_id")), bindparam("until_at")),
                else_=bindparam("idle_until_at"),
            )
        )
        .returning(processes.c.lease_until_at)
    )
)
_account_id = attrgetter("account_id")


class Processes(Subject):
    """The processes of the fleet, each with one lease for all its lanes."""

    def join(self, name: str, lease_us: int) -> ProcessRow:
        now = self._context.now
        joined = _JOIN.run(
            self._context, name=name, started_at=now, lease_until_at=now + lease_us
        ).fetchone()
        return rows.process(joined)

    def renew(self, process_id: int, lease_us: int, idle_us: int | None = None) -> Instant | None:
        now = self._context.now
        renewed = _RENEW.run(
            self._context,
            renewed_id=process_id,
            until_at=now + lease_us,
            idle_until_at=now + (lease_us if idle_us is None else idle_us),
        ).fetchone()
        until_at: Instant | None = None if renewed is None else renewed[0]
        return until_at

    def leave(self, process_id: int) -> None:
        owned = select(lanes.c.account_id).where(lanes.c.owner == process_id)
        self._context.hold_lanes(self._connection.execute(owned).scalars())
        self._connection.execute(
            update(lanes)
            .where(lanes.c.owner == process_id)
            .values(owner=None, wake_at=self._context.now)
        )
        self._connection.execute(delete(processes).where(processes.c.id == process_id))

    def list(self) -> list_of[ProcessRow]:
        statement = select(*rows.PROCESS).order_by(processes.c.id)
        return [rows.process(row) for row in self._connection.execute(statement)]

    def dead(self, older_than_us: int) -> bool:
        found = _ANY_DEAD.run(self._context, dead_since_at=self._context.now - older_than_us)
        return found.fetchone() is not None

    def bury(self, older_than_us: int) -> int:
        cursor = _BURY.run(self._context, dead_since_at=self._context.now - older_than_us)
        buried: int = cursor.rowcount
        return buried
