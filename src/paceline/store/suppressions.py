"""Addresses that must not be contacted, compared exactly as they are stored.

Whoever adds or looks for one writes it in its one spelling first (``core/address.py``), and so does
whoever creates a delivery: then equal addresses are equal texts, here and in the intent's guard.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Iterator, Sequence

from sqlalchemy import delete, func, select, update

from paceline.core.address import entries_for
from paceline.core.instants import Instant
from paceline.engine.ports.people import Suppression, outweighs
from paceline.store.base import chunks, columns, dump, storable
from paceline.store.contacts import People
from paceline.store.schema import suppressions

PAGE = 2_000

_NAMES = "address, reason, source, at"
_SHOWN = (suppressions.c.address, suppressions.c.reason, suppressions.c.source, suppressions.c.at)
_ADD = {
    True: f"""INSERT INTO suppressions ({_NAMES})
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) ON CONFLICT DO NOTHING""",
    False: f"""INSERT INTO suppressions ({_NAMES})
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true
ON CONFLICT DO NOTHING""",
}
_AMONG = f"SELECT {_NAMES} FROM suppressions WHERE address {{texts}}"


class Suppressions(People):
    """The intent's guard reads the same table; a fence makes a new row certain to be seen."""

    def add(self, address: str, reason: str, source: str, at: Instant) -> bool:
        statement = (
            self._context.insert(suppressions)
            .values(address=address, reason=storable(reason), source=source, at=at)
            .on_conflict_do_nothing()
            .returning(suppressions.c.address)
        )
        if self._connection.execute(statement).first() is not None:
            return True
        self._overrule([Suppression(address, reason, source, at)])
        return False

    def _overrule(self, rows: Sequence[Suppression]) -> None:
        """Let what counts for more stand for what is known already; since when stays."""
        known = self.among([row.address for row in rows])
        for row in rows:
            if row.address in known and outweighs(row.source, known[row.address].source):
                this = update(suppressions).where(suppressions.c.address == row.address)
                said = {"reason": storable(row.reason), "source": row.source}
                self._connection.execute(this.values(said))

    def add_many(self, rows: Sequence[Suppression]) -> int:
        # In one order for everybody, so that two who add the same never wait for each other.
        ordered = sorted({row.address: row for row in reversed(rows)}.values())
        added = 0
        for some in chunks(ordered, PAGE):
            values = [(row.address, storable(row.reason), row.source, row.at) for row in some]
            on_postgresql, cursor = self._context.postgresql, self._context.cursor()
            cursor.execute(
                _ADD[on_postgresql], columns(values) if on_postgresql else [dump(values)]
            )
            added += cursor.rowcount
            if cursor.rowcount < len(some):
                self._overrule(some)
        return added

    def let_pass(self, address: str, delivery_id: int) -> None:
        statement = update(suppressions).where(suppressions.c.address == address)
        self._connection.execute(statement.values(confirmation_id=delivery_id))

    def confirmation_of(self, address: str) -> int | None:
        column = suppressions.c.confirmation_id
        found = self._connection.execute(select(column).where(suppressions.c.address == address))
        return found.scalar_one_or_none()

    def remove(self, address: str) -> bool:
        statement = delete(suppressions).where(suppressions.c.address == address)
        return self._connection.execute(statement).rowcount == 1

    def has(self, address: str) -> bool:
        return self.find(address) is not None

    def covers(self, address: str) -> bool:
        return bool(self.among(entries_for(address)))

    def find(self, address: str) -> Suppression | None:
        statement = select(*_SHOWN).where(suppressions.c.address == address)
        row = self._connection.execute(statement).first()
        return Suppression(*row) if row else None

    def among(self, addresses: Sequence[str]) -> dict[str, Suppression]:
        found: dict[str, Suppression] = {}
        for some in chunks(dict.fromkeys(addresses), PAGE):
            found |= {row[0]: Suppression(*row) for row in self.ask(_AMONG, some).fetchall()}
        return found

    def count(self) -> int:
        statement = select(func.count()).select_from(suppressions)
        return int(self._connection.execute(statement).scalar_one())

    def list(self) -> list_of[tuple[str, str, str, Instant]]:
        statement = select(*_SHOWN).order_by(suppressions.c.at, suppressions.c.address)
        return [
            (address, reason, source, at)
            for address, reason, source, at in self._connection.execute(statement)
        ]

    def walk(self) -> Iterator[Suppression]:
        after = ""
        while True:
            statement = (
                select(*_SHOWN)
                .where(suppressions.c.address > after)
                .order_by(suppressions.c.address)
                .limit(PAGE)
            )
            page = [Suppression(*row) for row in self._connection.execute(statement)]
            if not page:
                return
            yield from page
            after = page[-1].address
