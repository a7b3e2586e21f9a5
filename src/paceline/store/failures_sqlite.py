"""What SQLite says when it fails."""

from __future__ import annotations

import sqlite3
from typing import ClassVar

from sqlalchemy import exc

from paceline.core.errors import StoreBusy, StoreError, StoreUnavailable
from paceline.store.failures import Place, first_line

SQLITE_ERRORS = (sqlite3.Error, exc.SQLAlchemyError)

_WORDS = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; may we read it, and write into its folder?",
    sqlite3.SQLITE_READONLY: "cannot be written to; may we change it, and write into its folder?",
    sqlite3.SQLITE_PERM: "cannot be written to; may we change it, and write into its folder?",
    sqlite3.SQLITE_NOTADB: "is not a database",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
}
# A full disk is emptied and a lost mount comes back: nobody's work is at fault.
_AWAY = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
)


class SqlitePlace(Place):
    """A database in a file."""

    __slots__ = ()
    errors: ClassVar = SQLITE_ERRORS

    def _by_driver(self, error: BaseException) -> StoreError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        # The lower byte is the kind, the rest tells it more finely.
        code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreBusy(f"{self.name} is locked by another process; try again later")
        words = _WORDS.get(code)
        kind = StoreUnavailable if code in _AWAY else StoreError
        return kind(f"{self.name} {words}" if words else f"{self.name}: {first_line(error)}")
