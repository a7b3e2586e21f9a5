"""Reminders and their targets; the groups that accounts are members of."""

from __future__ import annotations

import json
from builtins import list as list_of
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, select, update

from paceline.core.instants import Instant
from paceline.core.model import Target
from paceline.engine.ports.providers import Group
from paceline.engine.ports.reminders import Reminder
from paceline.store import rows
from paceline.store.base import Subject, chunks, columns, dump, storable
from paceline.store.bulk import Bulk
from paceline.store.prepared import Prepared
from paceline.store.schema import campaigns, group_syncs, groups, reminder_targets, reminders

CHUNK = 2_000

_TARGETS = "INSERT INTO reminder_targets (reminder_id, position, target, fields) "
_PG_TARGETS = _TARGETS + "SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])"
_SQLITE_TARGETS = Bulk(_TARGETS + "VALUES {values}", 4)
_GROUPS = "INSERT INTO groups (account_id, target, name, size, may_send) "
_PG_GROUPS = _GROUPS + (
    "SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::boolean[])"
)
_SQLITE_GROUPS = Bulk(_GROUPS + "VALUES {values}", 5)


def _select() -> Select[Any]:
    return select(
        reminders.c.id,
        reminders.c.campaign_id,
        campaigns.c.name,
        reminders.c.rule,
        reminders.c.zone,
        reminders.c.enabled,
        reminders.c.next_at,
        reminders.c.edited_at,
    ).join_from(reminders, campaigns, campaigns.c.id == reminders.c.campaign_id)


# Asked every second by every process, so that they are made once.
_DUE = Prepared(
    lambda _: (
        _select()
        .where(
            reminders.c.enabled,
            reminders.c.next_at.is_not(None),
            reminders.c.next_at <= bindparam("now"),
        )
        .order_by(reminders.c.next_at, reminders.c.id)
        .limit(bindparam("most"))
    )
)
_NEXT_AT = Prepared(
    lambda _: select(func.min(reminders.c.next_at)).where(
        reminders.c.enabled, reminders.c.next_at.is_not(None)
    )
)


class Reminders(Subject):
    """When, and to whom; what is said is the campaign's."""

    def add(self, campaign_id: int, rule: str, zone: str, at: Instant) -> Reminder:
        statement = (
            self._context.insert(reminders)
            .values(campaign_id=campaign_id, rule=rule, zone=zone, enabled=False, edited_at=at)
            .returning(reminders.c.id)
        )
        return self._get(self._connection.execute(statement).scalar_one())

    def _get(self, reminder_id: int) -> Reminder:
        row = self._connection.execute(_select().where(reminders.c.id == reminder_id)).first()
        return _reminder(rows.found(row, "reminder", reminder_id))

    def find(self, name: str) -> Reminder | None:
        row = self._connection.execute(_select().where(campaigns.c.name == name)).first()
        return _reminder(row) if row else None

    def list(self) -> list_of[Reminder]:
        found = self._connection.execute(_select().order_by(campaigns.c.name))
        return [_reminder(row) for row in found]

    def due(self, now: Instant, limit: int) -> list_of[Reminder]:
        return [_reminder(row) for row in _DUE.run(self._context, now=now, most=limit).fetchall()]

    def next_at(self) -> Instant | None:
        at: Instant | None = _NEXT_AT.run(self._context).fetchone()[0]
        return at

    def change(
        self, reminder_id: int, rule: str, zone: str, next_at: Instant | None, at: Instant
    ) -> None:
        statement = update(reminders).where(reminders.c.id == reminder_id)
        self._connection.execute(
            statement.values(rule=rule, zone=zone, next_at=next_at, edited_at=at)
        )

    def switch(self, reminder_id: int, enabled: bool, next_at: Instant | None) -> None:
        statement = update(reminders).where(reminders.c.id == reminder_id)
        self._connection.execute(statement.values(enabled=enabled, next_at=next_at))

    def remove(self, reminder_id: int) -> None:
        theirs = reminder_targets.c.reminder_id == reminder_id
        self._connection.execute(delete(reminder_targets).where(theirs))
        self._connection.execute(delete(reminders).where(reminders.c.id == reminder_id))

    def advance(self, seen: Reminder, next_at: Instant | None) -> bool:
        statement = (
            update(reminders)
            .where(
                reminders.c.id == seen.id,
                reminders.c.enabled,
                reminders.c.next_at == seen.next_at,
                reminders.c.edited_at == seen.edited_at,
            )
            .values(next_at=next_at)
        )
        return self._connection.execute(statement).rowcount == 1

    def set_targets(self, reminder_id: int, targets: Iterable[Target]) -> int:
        self._connection.execute(
            delete(reminder_targets).where(reminder_targets.c.reminder_id == reminder_id)
        )
        count, cursor = 0, self._context.cursor()
        for chunk in chunks(targets, CHUNK):
            found: list_of[tuple[Any, ...]] = [
                (reminder_id, count + n, target.address, dump(dict(target.fields)))
                for n, target in enumerate(chunk)
            ]
            if self._context.postgresql:
                cursor.execute(_PG_TARGETS, columns(found))
            else:
                _SQLITE_TARGETS.run(cursor, found)
            count += len(found)
        return count

    def targets(self, reminder_id: int) -> list_of[Target]:
        statement = (
            select(reminder_targets.c.target, reminder_targets.c.fields)
            .where(reminder_targets.c.reminder_id == reminder_id)
            .order_by(reminder_targets.c.position)
        )
        return [
            Target(address, json.loads(fields))
            for address, fields in self._connection.execute(statement)
        ]

    def target_count(self, reminder_id: int) -> int:
        theirs = reminder_targets.c.reminder_id == reminder_id
        counted = select(func.count()).select_from(reminder_targets).where(theirs)
        return int(self._connection.execute(counted).scalar_one())


def _reminder(row: rows.Row) -> Reminder:
    number, campaign_id, name, rule, zone, enabled, next_at, edited_at = row
    return Reminder(number, campaign_id, name, rule, zone, bool(enabled), next_at, edited_at)


class Groups(Subject):
    """As the provider told them when it was last asked."""

    def put(self, account_id: int, groups_now: Iterable[Group], at: Instant) -> None:
        # Whoever is told of a group twice is a member of it once.
        members = {group.id: group for group in groups_now}
        self._connection.execute(delete(groups).where(groups.c.account_id == account_id))
        cursor = self._context.cursor()
        for chunk in chunks(sorted(members.values()), CHUNK):
            found: list_of[tuple[Any, ...]] = [
                (account_id, group.id, storable(group.name), group.size, group.may_send)
                for group in chunk
            ]
            if self._context.postgresql:
                cursor.execute(_PG_GROUPS, columns(found))
            else:
                _SQLITE_GROUPS.run(cursor, found)
        self._connection.execute(
            self._context.insert(group_syncs)
            .values(account_id=account_id, at=at)
            .on_conflict_do_update(index_elements=["account_id"], set_={"at": at})
        )

    def list(self, account_id: int) -> list_of[Group]:
        statement = (
            select(groups.c.target, groups.c.name, groups.c.size, groups.c.may_send)
            .where(groups.c.account_id == account_id)
            .order_by(groups.c.name, groups.c.target)
        )
        return [
            Group(target, name, size, bool(may_send))
            for target, name, size, may_send in self._connection.execute(statement)
        ]

    def synced_at(self, account_ids: Sequence[int]) -> dict[int, Instant]:
        statement = select(group_syncs.c.account_id, group_syncs.c.at).where(
            group_syncs.c.account_id.in_(account_ids)
        )
        return {row[0]: row[1] for row in self._connection.execute(statement)}

    def members(
        self, account_ids: Sequence[int], targets: Sequence[str]
    ) -> dict[str, dict[int, bool]]:
        # All groups of these accounts rather than a list of a thousand names: it is one index.
        statement = select(groups.c.target, groups.c.account_id, groups.c.may_send).where(
            groups.c.account_id.in_(account_ids)
        )
        wanted, found = frozenset(targets), dict[str, dict[int, bool]]()
        for target, account_id, may_send in self._connection.execute(statement):
            if target in wanted:
                found.setdefault(target, {})[account_id] = bool(may_send)
        return found
