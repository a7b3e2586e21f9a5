"""Guarded changes of state: the row is locked, and only what its machine allows is done."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, select

from paceline.core.errors import IllegalTransition
from paceline.core.states import Machine
from paceline.store import rows

S = TypeVar("S", bound=StrEnum)


def next_state(
    connection: Connection, table: Table, machine: Machine[S], row_id: int, event: str
) -> S | None:
    """What the row becomes by ``event``, or None where its present state does not allow it.

    The row stays locked until the transaction ends, so what was read is still true when the caller
    writes. SQLite needs no lock: whoever writes there is alone.
    """
    known(machine, event)
    before = locked(connection, table, row_id, table.c.state)[0]
    return machine.table.get((type(machine.start)(before), event))


def known(machine: Machine[Any], event: str) -> None:
    """An event that no state knows is a defect of ours, not a state that forbids it."""
    if not machine.sources(event):
        raise IllegalTransition(f"no {machine.name} knows the event {event}")


def locked(connection: Connection, table: Table, row_id: int, *columns: Any) -> rows.Row:
    statement = select(*columns).where(table.c.id == row_id).with_for_update(key_share=True)
    row = connection.execute(statement).first()
    return rows.found(row, machine_noun(table), row_id)


def machine_noun(table: Table) -> str:
    """``deliveries`` → ``delivery``, ``runs`` → ``run``."""
    name = table.name
    return f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
