"""What all tables share: their metadata, how keys are spelled, partial indexes, state checks."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Integer, MetaData, text

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows by itself only where the key is spelled INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")

# Rows that change with every message leave room on their page, so that PostgreSQL can put the new
# version beside the old one and need not touch an index.
ROOMY = {"postgresql_with": {"fillfactor": "50"}}


def only(rows: str, *, on_postgresql: str | None = None) -> dict[str, Any]:
    """A partial index: only the rows that somebody will look for by it."""
    there = text(rows if on_postgresql is None else on_postgresql)
    return {"sqlite_where": text(rows), "info": {"postgresql_where": there}}


def complete_for_postgresql() -> None:
    """Add what is only noted so far: the options that PostgreSQL has for tables and indexes.

    To check the name of a single one SQLAlchemy loads all it knows of PostgreSQL, which takes
    longer than most commands, and commands on SQLite have no use for it.
    """
    for table in METADATA.tables.values():
        table.dialect_kwargs.update(table.info)
        for index in table.indexes:
            index.dialect_kwargs.update(index.info)


def one_of(column: str, states: Iterable[StrEnum] | tuple[str, ...]) -> CheckConstraint:
    names = ", ".join(f"'{state}'" for state in states)
    return CheckConstraint(f"{column} IN ({names})", name=column)
