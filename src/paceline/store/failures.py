"""What a database says when it fails, put into our own errors, in one line each.

Every error of either driver, wrapped by SQLAlchemy or not, has its place here; a test goes through
all of them. Nothing of a connection string but host, port and database name is ever repeated.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from sqlalchemy import exc

from paceline.core.errors import RowBusy, StoreBusy, StoreConflict, StoreError, StoreUnavailable

DATABASE_ERRORS = (sqlite3.Error, psycopg.Error, exc.SQLAlchemyError)
"""What a statement may raise; anything else is not the database's doing."""

# SQLSTATE classes and codes (PostgreSQL, appendix A) after which the same call may work later.
# 25006 is a server that has become a standby.
_AWAY = ("08", "53", "57P", "58", "25006", "25P03")
# A lock was waited for too long, or a statement took longer than it may: nearly always because it
# waited for one lock after the other.
_LOCKED_OUT = "55P03"
_TOO_LONG = "57014"
_IN_THE_WAY = ("40001", "40P01")

# A server that refuses a login gives no SQLSTATE to the client, only words.
_REFUSED_LOGIN = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|(?:role|database) .* does "
    r"not exist|permission denied for database|is not permitted to log in"
)

_SQLITE_WORDS = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; may we read it, and write into its folder?",
    sqlite3.SQLITE_READONLY: "cannot be written to; may we change it, and write into its folder?",
    sqlite3.SQLITE_PERM: "cannot be written to; may we change it, and write into its folder?",
    sqlite3.SQLITE_NOTADB: "is not a database",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
}
# A full disk is emptied and a lost mount comes back: nobody's work is at fault.
_SQLITE_AWAY = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A database as people are told of it: no user, no password."""

    name: str

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn whatever the database raises inside the block into a ``StoreError``."""
        try:
            yield
        except DATABASE_ERRORS as error:
            raise self.translate(error) from error

    def translate(self, error: BaseException) -> StoreError:
        """The error of ours that says the same."""
        cause = getattr(error, "orig", None) or error
        if isinstance(cause, sqlite3.Error):
            return self._sqlite(cause)
        if isinstance(cause, psycopg.Error):
            return self._postgresql(cause)
        if isinstance(error, exc.TimeoutError):
            return StoreUnavailable(f"{self.name} has no connection free")
        if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
            return StoreUnavailable(f"{self.name} closed the connection")
        return StoreError(f"{self.name}: {_first_line(error)}")

    def _sqlite(self, error: sqlite3.Error) -> StoreError:
        # The lower byte is the kind, the rest tells it more finely.
        code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreBusy(f"{self.name} is locked by another process; try again later")
        words = _SQLITE_WORDS.get(code)
        kind = StoreUnavailable if code in _SQLITE_AWAY else StoreError
        return kind(f"{self.name} {words}" if words else f"{self.name}: {_first_line(error)}")

    def _postgresql(self, error: psycopg.Error) -> StoreError:
        state = error.sqlstate or ""
        said = _first_line(error)
        if state == _LOCKED_OUT:
            return RowBusy(f"{self.name}: a row is locked by another process for too long")
        if state == _TOO_LONG:
            return RowBusy(f"{self.name}: a statement took too long: {said}")
        if state.startswith(_IN_THE_WAY):
            return StoreConflict(f"{self.name}: another transaction was in the way: {said}")
        if state.startswith(_AWAY):
            return StoreUnavailable(f"{self.name} is not available: {said}")
        if state == "" and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            if _REFUSED_LOGIN.search(said):
                return StoreError(f"{self.name} refuses the login: {said}")
            return StoreUnavailable(f"{self.name} cannot be reached: {said}")
        return StoreError(f"{self.name}: {said}")


def _first_line(error: BaseException) -> str:
    """The first line of what was said, without the driver's way of introducing it."""
    said = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    line = said.splitlines()[0].strip()
    for introduction in ("FATAL:", "failed: "):
        _, found, rest = line.rpartition(introduction)
        line = rest.strip() if found and rest.strip() else line
    return line.rstrip(".")
