"""Lanes and the processes that own them: leases, generations, wakes.

A lease belongs to a process and is measured by the database's clock; a lane is held by naming its
owner and its generation. Every write here is one guarded UPDATE, so whoever comes second changes
nothing and is told so. An owner always exists (a foreign key), hence no lane can be lost with it.
"""

from __future__ import annotations

from builtins import list as list_of
from typing import Any

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from paceline.core.instants import Instant
from paceline.engine.ports.records import LaneRow, Lease, ProcessRow
from paceline.store import rows
from paceline.store.base import Subject
from paceline.store.schema import UNSETTLED, accounts, counters, lanes, processes

_FREE_AND_WAKING = and_(lanes.c.owner.is_(None), lanes.c.wake_at.is_not(None))


class Lanes(Subject):
    """Who may send for each account, and when somebody should look again."""

    def get(self, account_id: int) -> LaneRow:
        statement = select(*rows.LANE).where(lanes.c.account_id == account_id)
        row = self._connection.execute(statement).first()
        return rows.lane(rows.found(row, "lane", account_id))

    def due(self, process_id: int, limit: int) -> list_of[LaneRow]:
        # Three index lookups rather than one condition with OR, which would scan every lane.
        now = self._context.now
        in_service = exists().where(
            accounts.c.id == lanes.c.account_id, accounts.c.removed_at.is_(None)
        )
        expired = select(processes.c.id).where(processes.c.lease_until_at <= now)
        free = and_(_FREE_AND_WAKING, lanes.c.wake_at <= now)
        orphaned = and_(lanes.c.owner.in_(expired), lanes.c.owner != process_id)
        ours = and_(lanes.c.owner == process_id, lanes.c.wake_at <= now)
        chosen = union_all(
            *(select(*rows.LANE).where(kind, in_service) for kind in (free, orphaned, ours))
        ).subquery()
        # An orphan may have no wake of its own; it has waited longest.
        statement = (
            select(chosen)
            .order_by(func.coalesce(chosen.c.wake_at, 0), chosen.c.account_id)
            .limit(limit)
        )
        return [rows.lane(row) for row in self._connection.execute(statement)]

    def next_wake_at(self) -> Instant | None:
        statement = (
            select(lanes.c.wake_at)
            .join(accounts, accounts.c.id == lanes.c.account_id)
            .where(_FREE_AND_WAKING, accounts.c.removed_at.is_(None))
            .order_by(lanes.c.wake_at)
            .limit(1)
        )
        return self._connection.execute(statement).scalar()

    def take(self, account_id: int, process_id: int) -> LaneRow | None:
        # An intent under way holds this row, so a takeover waits for its commit, and an intent
        # that comes later finds another generation.
        alive = exists().where(
            processes.c.id == lanes.c.owner, processes.c.lease_until_at > self._context.now
        )
        known = exists().where(processes.c.id == process_id)
        statement = (
            update(lanes)
            .where(
                lanes.c.account_id == account_id,
                or_(lanes.c.owner.is_(None), ~alive),
                known,
            )
            .values(generation=lanes.c.generation + 1, owner=process_id, wake_at=None)
            .returning(*rows.LANE)
        )
        row = self._connection.execute(statement).first()
        return rows.lane(row) if row else None

    def quiet(self, lease: Lease, revision: int) -> bool:
        return self._change(lease, lanes.c.revision == revision, wake_at=None)

    def park(self, lease: Lease, revision: int, wake_at: Instant | None) -> bool:
        return self._change(lease, lanes.c.revision == revision, owner=None, wake_at=wake_at)

    def release(self, lease: Lease, wake_at: Instant | None = None) -> bool:
        due_at = self._context.now if wake_at is None else wake_at
        return self._change(lease, owner=None, wake_at=due_at)

    def _change(self, lease: Lease, *guards: ColumnElement[bool], **values: Any) -> bool:
        statement = update(lanes).where(
            lanes.c.account_id == lease.account_id,
            lanes.c.owner == lease.process_id,
            lanes.c.generation == lease.generation,
            *guards,
        )
        return self._connection.execute(statement.values(values)).rowcount == 1

    def touch(self, account_id: int, wake_at: Instant) -> None:
        self._touch([account_id], wake_at)

    def touch_run(self, run_id: int, wake_at: Instant) -> None:
        concerned = select(counters.c.account_id).where(
            counters.c.run_id == run_id,
            counters.c.n > 0,
            counters.c.state.in_(UNSETTLED),
        )
        self._touch(concerned, wake_at)

    def touch_all(self, wake_at: Instant) -> None:
        self._touch(select(accounts.c.id).where(accounts.c.removed_at.is_(None)), wake_at)

    def _touch(self, concerned: Any, wake_at: Instant) -> None:
        # Whoever calls means now by its own clock, which may be ahead of the one that wakes.
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
        later = or_(lanes.c.wake_at.is_(None), lanes.c.wake_at > wake_at)
        self._connection.execute(
            update(lanes)
            .where(chosen)
            .values(
                revision=lanes.c.revision + 1,
                wake_at=case((later, wake_at), else_=lanes.c.wake_at),
            )
        )


class Processes(Subject):
    """The processes of the fleet, each with one lease for all its lanes."""

    def join(self, name: str, lease_us: int) -> ProcessRow:
        now = self._context.now
        statement = (
            insert(processes)
            .values(name=name, started_at=now, lease_until_at=now + lease_us)
            .returning(*rows.PROCESS)
        )
        return rows.process(self._connection.execute(statement).one())

    def renew(self, process_id: int, lease_us: int) -> Instant | None:
        statement = (
            update(processes)
            .where(processes.c.id == process_id)
            .values(lease_until_at=self._context.now + lease_us)
            .returning(processes.c.lease_until_at)
        )
        return self._connection.execute(statement).scalar()

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

    def bury(self, older_than_us: int) -> int:
        statement = delete(processes).where(
            processes.c.lease_until_at < self._context.now - older_than_us,
            ~exists().where(lanes.c.owner == processes.c.id),
        )
        return self._connection.execute(statement).rowcount
