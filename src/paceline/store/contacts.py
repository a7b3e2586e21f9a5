"""People and their addresses, written and read many at a time.

A handful of statements per call however many rows there are: values come as one array, and what is
inserted has its number before, so that nothing has to be matched up afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, select

from paceline.core.errors import NotFoundError
from paceline.core.instants import Instant
from paceline.engine.ports.people import Address, Contact
from paceline.store import blotting
from paceline.store.base import Context, Cursor, Subject, array, chunks, columns, dump, storable
from paceline.store.locks import Lock
from paceline.store.prepared import Prepared
from paceline.store.schema import addresses

CHUNK = 2_000

_CONTACT = (
    "c.id, c.fields, c.opt_in_source, c.opt_in_at, c.created_at, c.changed_at, c.erased_at, "
    "a.kind, a.address"
)
_SEVERAL = f"""
SELECT {_CONTACT} FROM contacts c LEFT JOIN addresses a ON a.contact_id = c.id
WHERE c.id {{numbers}} ORDER BY c.id, a.kind, a.address
"""
_OWNERS = "SELECT address, contact_id FROM addresses WHERE address {texts}"
_NUMBERS = {
    True: """SELECT nextval(pg_get_serial_sequence('{table}', 'id'))
             FROM generate_series(1, %s) ORDER BY 1""",
    False: """SELECT (SELECT coalesce(max(id), 0) FROM {table}) + value
              FROM json_each(?) ORDER BY 1""",
}
_CONTACT_NAMES = "id, fields, opt_in_source, opt_in_at, created_at, changed_at, erased_at"
_CONTACT_TYPES = ("bigint", "text", "text", "bigint", "bigint", "bigint", "bigint")
_CHANGE = {
    True: """UPDATE contacts c SET fields = w.fields, opt_in_source = w.source,
    opt_in_at = w.opt_in_at, changed_at = w.changed_at, erased_at = w.erased_at
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
    AS w (fields, source, opt_in_at, changed_at, erased_at, id) WHERE c.id = w.id""",
    False: """UPDATE contacts SET fields = ?, opt_in_source = ?, opt_in_at = ?, changed_at = ?,
    erased_at = ? WHERE id = ?""",
}
_TRACES = """
SELECT id FROM deliveries WHERE target {texts}
UNION SELECT id FROM deliveries WHERE contact_id {numbers} ORDER BY 1
"""


class People(Subject):
    """What those who write about people share: many values as one parameter."""

    def ask(self, statement: str, *values: Iterable[Any]) -> Cursor:
        """Run a statement in which each ``{texts}`` or ``{numbers}`` stands for many values."""
        if self._context.postgresql:
            spelled = {"texts": "= ANY (%s::text[])", "numbers": "= ANY (%s::bigint[])"}
        else:
            spelled = dict.fromkeys(("texts", "numbers"), "IN (SELECT value FROM json_each(?))")
        wrap = array if self._context.postgresql else dump
        return self._context.ask(statement.format(**spelled), [wrap(list(some)) for some in values])

    def insert_many(
        self, table: str, names: str, types: Sequence[str], rows: list[tuple[Any, ...]]
    ) -> None:
        """One statement for all rows, or one call of a driver that steps over them by itself."""
        cursor = self._context.cursor()
        if self._context.postgresql:
            arrays = ", ".join(f"%s::{kind}[]" for kind in types)
            statement = f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays})"
            cursor.execute(statement, columns(rows))
        else:
            marks = ", ".join("?" for _ in types)
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)

    def new_numbers(self, table: str, count: int) -> list[int]:
        """So many numbers for new rows, which nobody else will be given."""
        on_postgresql = self._context.postgresql
        asked = count if on_postgresql else dump(list(range(1, count + 1)))
        cursor = self._context.cursor()
        cursor.execute(_NUMBERS[on_postgresql].format(table=table), (asked,))
        return [number for (number,) in cursor.fetchall()]


_OWNER = Prepared(
    lambda _: select(addresses.c.contact_id).where(addresses.c.address == bindparam("address"))
)


class Contacts(People):
    """One row per person, one row per address."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._holds: set[bool] = set()

    def hold(self, *, alone: bool, adding: bool = False) -> None:
        # On SQLite whoever writes is alone, so nothing can change under anybody's hands.
        if not self._context.postgresql:
            return
        if alone not in self._holds:
            shared = "" if alone else "_shared"
            with self._context.pipelined():
                self._context.unhurried()
                self._context.ask(f"SELECT pg_advisory_xact_lock{shared}(%s)", (int(Lock.PEOPLE),))
            self._holds.add(alone)
        if adding:
            self._context.ask("SELECT pg_advisory_xact_lock(%s)", (int(Lock.ADDING),))

    def get(self, contact_id: int) -> Contact:
        found = self.several([contact_id]).get(contact_id)
        if found is None:
            raise NotFoundError(f"contact {contact_id} does not exist")
        return found

    def find(self, address: str) -> Contact | None:
        row = _OWNER.run(self._context, address=address).fetchone()
        return None if row is None else self.get(row[0])

    def several(self, contact_ids: Sequence[int]) -> dict[int, Contact]:
        found: dict[int, Contact] = {}
        for some in chunks(dict.fromkeys(contact_ids), CHUNK):
            found |= contacts_from(self.ask(_SEVERAL, some).fetchall())
        return found

    def owners(self, addresses: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for some in chunks(dict.fromkeys(addresses), CHUNK):
            found.update(self.ask(_OWNERS, some).fetchall())
        return found

    def add(self, rows: Sequence[Contact], at: Instant) -> list[int]:
        if not rows:
            return []
        ids = self.new_numbers("contacts", len(rows))
        values = [
            (
                number,
                dump(dict(row.fields)),
                storable(row.opt_in_source),
                row.opt_in_at,
                at,
                at,
                row.erased_at,
            )
            for number, row in zip(ids, rows, strict=True)
        ]
        self.insert_many("contacts", _CONTACT_NAMES, _CONTACT_TYPES, values)
        return ids

    def change(self, rows: Sequence[Contact], at: Instant) -> None:
        if not rows:
            return
        values = [
            (
                dump(dict(row.fields)),
                storable(row.opt_in_source),
                row.opt_in_at,
                at,
                row.erased_at,
                row.id,
            )
            for row in rows
        ]
        on_postgresql, cursor = self._context.postgresql, self._context.cursor()
        if on_postgresql:
            cursor.execute(_CHANGE[True], columns(values))
        else:
            cursor.executemany(_CHANGE[False], values)

    def give(self, rows: Sequence[tuple[int, Address]]) -> None:
        if rows:
            values = [(address, kind, contact_id) for contact_id, (kind, address) in rows]
            types = ("text", "text", "bigint")
            self.insert_many("addresses", "address, kind, contact_id", types, values)

    def rename(self, renamed: Mapping[str, str]) -> None:
        mark = "%s" if self._context.postgresql else "?"
        statement = f"UPDATE addresses SET address = {mark} WHERE address = {mark}"
        pairs = [(after, before) for before, after in renamed.items()]
        self._context.cursor().executemany(statement, pairs)

    def traces(self, contact_id: int, addresses: Sequence[str]) -> list[int]:
        self._context.unhurried()
        found = self.ask(_TRACES, addresses, [contact_id]).fetchall()
        return [number for (number,) in found]

    def blot_out(
        self, delivery_ids: Sequence[int], contact_id: int, renamed: Mapping[str, str]
    ) -> None:
        blotting.blot_out(self._context, delivery_ids, contact_id, renamed)


def contacts_from(found: Iterable[Sequence[Any]]) -> dict[int, Contact]:
    """One record per person from rows that repeat the person for each address."""
    people: dict[int, list[Any]] = {}
    reached: dict[int, list[Address]] = {}
    for row in found:
        people.setdefault(row[0], list(row[:7]))
        if row[7] is not None:
            reached.setdefault(row[0], []).append(Address(row[7], row[8]))
    return {
        number: Contact(
            id=number,
            addresses=tuple(reached.get(number, ())),
            fields=json.loads(values[1]),
            opt_in_source=values[2],
            opt_in_at=values[3],
            created_at=values[4],
            changed_at=values[5],
            erased_at=values[6],
        )
        for number, values in people.items()
    }
