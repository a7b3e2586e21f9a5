"""Keys under which something was asked for, so that asking again does nothing again."""

from __future__ import annotations

from sqlalchemy import select, update

from paceline.core.instants import Instant
from paceline.engine.ports.keys import Kept
from paceline.store.base import Subject
from paceline.store.schema import idempotency_keys


class Keys(Subject):
    def reserve(self, key: str, kind: str, digest: str, at: Instant) -> Kept | None:
        # Whoever asks with the same key at the same moment waits here for the other's commit.
        mine = (
            self._context.insert(idempotency_keys)
            .values(key=key, kind=kind, subject_id=0, digest=digest, at=at)
            .on_conflict_do_nothing()
            .returning(idempotency_keys.c.key)
        )
        if self._connection.execute(mine).first() is not None:
            return None
        kept = select(
            idempotency_keys.c.kind, idempotency_keys.c.subject_id, idempotency_keys.c.digest
        ).where(idempotency_keys.c.key == key)
        return Kept(*self._connection.execute(kept).one())

    def keep(self, key: str, subject_id: int) -> None:
        statement = update(idempotency_keys).where(idempotency_keys.c.key == key)
        self._connection.execute(statement.values(subject_id=subject_id))
