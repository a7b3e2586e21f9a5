"""What PostgreSQL says when it fails."""

from __future__ import annotations

import re
from typing import ClassVar

import psycopg
from sqlalchemy import exc

from paceline.core.errors import (
    RowBusy,
    StoreConflict,
    StoreError,
    StoreSurprise,
    StoreUnavailable,
)
from paceline.store.failures import Place, first_line

POSTGRESQL_ERRORS = (psycopg.Error, exc.SQLAlchemyError)

# SQLSTATE classes and codes (PostgreSQL, appendix A) after which the same call may work later.
# 25006 is a server that has become a standby.
_AWAY = ("08", "53", "57P", "58", "25006", "25P03")
# A lock was waited for too long, or a statement took longer than it may: nearly always because it
# waited for one lock after the other.
_LOCKED_OUT = "55P03"
_TOO_LONG = "57014"
_IN_THE_WAY = ("40001", "40P01")
# How a statement that insists on something says that it is not so (path_trusting.py).
_SURPRISED = "22012"

# A server that refuses a login gives no SQLSTATE to the client, only words.
_REFUSED_LOGIN = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|(?:role|database) .* does "
    r"not exist|permission denied for database|is not permitted to log in"
)


class PostgresqlPlace(Place):
    """A database on a server."""

    __slots__ = ()
    errors: ClassVar = POSTGRESQL_ERRORS

    def _by_driver(self, error: BaseException) -> StoreError | None:
        if not isinstance(error, psycopg.Error):
            return None
        state = error.sqlstate or ""
        said = first_line(error)
        if state == _LOCKED_OUT:
            return RowBusy(f"{self.name}: a row is locked by another process for too long")
        if state == _TOO_LONG:
            return RowBusy(f"{self.name}: a statement took too long: {said}")
        if state == _SURPRISED:
            return StoreSurprise(f"{self.name}: something is not as it was believed to be")
        if state.startswith(_IN_THE_WAY):
            return StoreConflict(f"{self.name}: another transaction was in the way: {said}")
        if state.startswith(_AWAY):
            return StoreUnavailable(f"{self.name} is not available: {said}")
        if state == "" and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            if _REFUSED_LOGIN.search(said):
                return StoreError(f"{self.name} refuses the login: {said}")
            return StoreUnavailable(f"{self.name} cannot be reached: {said}")
        return StoreError(f"{self.name}: {said}")
