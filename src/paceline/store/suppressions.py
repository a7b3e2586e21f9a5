"""Addresses that must not be contacted, compared exactly as they are stored."""

from __future__ import annotations

from builtins import list as list_of

from sqlalchemy import delete, select

from paceline.core.instants import Instant
from paceline.store.base import Subject, storable
from paceline.store.schema import suppressions


class Suppressions(Subject):
    """The intent's guard reads the same table; a fence makes a new row certain to be seen."""

    def add(self, address: str, reason: str, source: str, at: Instant) -> bool:
        """Whether it is new; the first reason and instant stay."""
        statement = (
            self._context.insert(suppressions)
            .values(address=address, reason=storable(reason), source=source, at=at)
            .on_conflict_do_nothing()
            .returning(suppressions.c.address)
        )
        return self._connection.execute(statement).first() is not None

    def remove(self, address: str) -> bool:
        statement = delete(suppressions).where(suppressions.c.address == address)
        return self._connection.execute(statement).rowcount == 1

    def has(self, address: str) -> bool:
        statement = select(suppressions.c.address).where(suppressions.c.address == address)
        return self._connection.execute(statement).first() is not None

    def list(self) -> list_of[tuple[str, str, str, Instant]]:
        statement = select(*suppressions.c).order_by(suppressions.c.at, suppressions.c.address)
        return [
            (address, reason, source, at)
            for address, reason, source, at in self._connection.execute(statement)
        ]
