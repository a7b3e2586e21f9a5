"""Settings, and the emergency stop with its fence."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, select, update

from paceline.core.errors import InputError, StoreError
from paceline.store.base import Subject, dump, insert_into, storable
from paceline.store.locks import Lock
from paceline.store.prepared import Prepared, among_words
from paceline.store.schema import CONTROL, settings


class Settings(Subject):
    """Small values by key. The control row is not one of them."""

    def get(self, key: str) -> Any:
        row = _GET.run(self._context, key=_allowed(key)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, value: Any) -> None:
        _PUT.run(self._context, key=_allowed(key), value=dump(value))

    def stopped(self) -> str | None:
        statement = select(settings.c.value).where(settings.c.key == CONTROL)
        return why_stopped(self._connection.execute(statement).scalar_one())

    def stop(self, reason: str) -> None:
        self._control(storable(reason))

    def go_on(self) -> None:
        self._control(None)

    def _control(self, stopped: str | None) -> None:
        self._connection.execute(
            update(settings)
            .where(settings.c.key == CONTROL)
            .values(value=dump({"stopped": stopped}))
        )

    def fence(self) -> None:
        # On SQLite a write transaction is alone: intents are either committed or not begun.
        if not self._context.postgresql:
            return
        cursor = self._context.cursor()
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (int(Lock.FENCE),))
        if cursor.fetchone()[0]:
            return
        # To wait while holding rows that those intents may want would be a deadlock. A transaction
        # that has written nothing holds none.
        cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
        if cursor.fetchone()[0]:
            raise StoreError("the fence must come before the first write of its transaction")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (int(Lock.FENCE),))


def _put(on_postgresql: bool) -> Any:
    new = insert_into(settings, on_postgresql=on_postgresql)
    new = new.values(key=bindparam("key"), value=bindparam("value"))
    return new.on_conflict_do_update(index_elements=["key"], set_={"value": new.excluded.value})


_PUT = Prepared(_put)
_GET = Prepared(lambda _: select(settings.c.value).where(settings.c.key == bindparam("key")))
SEVERAL = Prepared(
    lambda on_postgresql: select(settings.c.key, settings.c.value).where(
        among_words(settings.c.key, "wanted", on_postgresql=on_postgresql)
    )
)


@lru_cache(maxsize=8)
def why_stopped(value: str) -> str | None:
    """What the control row says."""
    stopped: str | None = json.loads(value)["stopped"]
    return stopped


def _allowed(key: str) -> str:
    if key == CONTROL:
        raise InputError(f"{CONTROL!r} is not a setting; stop and go on are commands")
    return key
