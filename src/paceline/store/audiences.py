"""Audiences: people gathered under a name, in the order in which they came."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Select, delete, func, literal, select, update

from paceline.core.instants import Instant
from paceline.engine.ports.people import Audience, Member
from paceline.store.base import columns, dump
from paceline.store.contacts import People, contacts_from
from paceline.store.schema import audience_members, audiences

PAGE = 2_000

_JOIN = {
    True: """INSERT INTO audience_members (audience_id, contact_id, position)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) ON CONFLICT DO NOTHING""",
    False: """INSERT INTO audience_members (audience_id, contact_id, position)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true
ON CONFLICT DO NOTHING""",
}
_PAGE = """
SELECT c.id, c.fields, c.opt_in_source, c.opt_in_at, c.created_at, c.changed_at, c.erased_at,
    a.kind, a.address, m.position
FROM (SELECT contact_id, position FROM audience_members
    WHERE audience_id = ? AND position > ? ORDER BY position LIMIT ?) AS m
JOIN contacts c ON c.id = m.contact_id
LEFT JOIN addresses a ON a.contact_id = c.id
ORDER BY m.position, a.kind, a.address
"""


class Audiences(People):
    """Names and members; who the members are is in ``contacts``."""

    def find(self, name: str) -> Audience | None:
        row = self._connection.execute(_select().where(audiences.c.name == name)).first()
        return Audience(*row) if row else None

    def open(self, name: str, at: Instant) -> Audience:
        self._connection.execute(
            self._context.insert(audiences)
            .values(name=name, revision=0, created_at=at, changed_at=at)
            .on_conflict_do_nothing()
        )
        found = self.find(name)
        assert found is not None, "it is there, whoever has made it"
        return found

    def list(self) -> list_of[Audience]:
        statement = _select().order_by(audiences.c.name)
        return [Audience(*row) for row in self._connection.execute(statement)]

    def add(self, audience_id: int, contact_ids: Sequence[int]) -> int:
        fresh = list_of(dict.fromkeys(contact_ids))
        if not fresh:
            return 0
        last = select(func.coalesce(func.max(audience_members.c.position), 0)).where(
            audience_members.c.audience_id == audience_id
        )
        first = self._connection.execute(last).scalar_one() + 1
        rows = [(audience_id, contact_id, first + n) for n, contact_id in enumerate(fresh)]
        on_postgresql, cursor = self._context.postgresql, self._context.cursor()
        cursor.execute(_JOIN[on_postgresql], columns(rows) if on_postgresql else (dump(rows),))
        joined: int = cursor.rowcount
        return joined

    def changed(self, audience_id: int, at: Instant) -> None:
        self._connection.execute(
            update(audiences)
            .where(audiences.c.id == audience_id)
            .values(revision=audiences.c.revision + 1, changed_at=at)
        )

    def leave(self, contact_id: int, at: Instant) -> int:
        of_them = audience_members.c.contact_id == contact_id
        left = self._connection.execute(
            update(audiences)
            .where(audiences.c.id.in_(select(audience_members.c.audience_id).where(of_them)))
            .values(revision=audiences.c.revision + 1, changed_at=at)
        ).rowcount
        self._connection.execute(delete(audience_members).where(of_them))
        return left

    def of_contact(self, contact_id: int) -> list_of[str]:
        statement = (
            select(audiences.c.name)
            .join(audience_members, audience_members.c.audience_id == audiences.c.id)
            .where(audience_members.c.contact_id == contact_id)
            .order_by(audiences.c.name)
        )
        return list_of(self._connection.execute(statement).scalars())

    def members(self, audience_id: int) -> Iterator[Member]:
        mark = "%s" if self._context.postgresql else "?"
        after = 0
        while True:
            cursor = self._context.cursor()
            cursor.execute(_PAGE.replace("?", mark), (audience_id, after, PAGE))
            found = cursor.fetchall()
            if not found:
                return
            places = {row[0]: row[9] for row in found}
            for contact in contacts_from(found).values():
                yield Member(places[contact.id], contact)
            after = found[-1][9]

    def remove(self, audience_id: int) -> None:
        for table, column in (
            (audience_members, audience_members.c.audience_id),
            (audiences, audiences.c.id),
        ):
            self._connection.execute(delete(table).where(column == audience_id))


def _select() -> Select[Any]:
    counted = (
        select(func.count(literal(1)))
        .where(audience_members.c.audience_id == audiences.c.id)
        .scalar_subquery()
    )
    return select(
        audiences.c.id,
        audiences.c.name,
        audiences.c.revision,
        counted,
        audiences.c.created_at,
        audiences.c.changed_at,
    )
