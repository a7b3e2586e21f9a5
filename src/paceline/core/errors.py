"""Every error Paceline raises on purpose, drawn in one place.

Outcomes of a send are values (see ``outcome.py``); an exception means bad input, a refused
command, or infrastructure that is not there.

    PacelineError
    ├── InputError             yours: something you wrote is wrong (exit code 2)
    │   ├── NotFoundError      a name or id that does not exist
    │   └── ConflictError      it exists already, or its present state forbids the command
    ├── IllegalTransition      a defect: a state change that no table allows
    ├── StoreError             theirs: the database
    │   ├── StoreUnavailable   cannot be reached right now; asking again may work
    │   │   ├── StoreBusy      another process holds a lock for too long
    │   │   │   └── RowBusy    the lock of a row: who needs other rows can go on
    │   │   └── StoreConflict  two transactions were in each other's way, and ours gave in
    │   │       └── StoreSurprise  something was not as whoever wrote had believed
    │   └── SchemaMismatch     made by a newer version, or not migrated yet
    ├── ProviderError          theirs: a driver could not open its account
    │   ├── ProviderRefused    the provider rejected our credentials
    │   └── VaultError         ours: its secrets cannot be unsealed here
    └── LeaseLost              another process took over what we were doing
"""

from __future__ import annotations


class PacelineError(Exception):
    """Root of everything raised on purpose."""


class InputError(PacelineError):
    """Something a person wrote is wrong; the text is one line that says what to do."""

    def __init__(
        self,
        reason: str,
        *,
        key: str | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.reason = reason
        self.key = key
        self.where = where
        self.hint = hint
        super().__init__(reason)

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.where, self.key) if part)
        text = f"{place}: {self.reason}" if place else self.reason
        if not self.hint:
            return text
        return f"{text} {self.hint}" if text.endswith(("?", "!", ".")) else f"{text}. {self.hint}"

    def within(self, where: str) -> InputError:
        """The same error seen from further out: the file or section it was found in."""
        outer = f"{where}: {self.where}" if self.where else where
        return type(self)(self.reason, key=self.key, where=outer, hint=self.hint)


class NotFoundError(InputError):
    """A name or id that does not exist."""


class ConflictError(InputError):
    """The thing exists already, or its present state forbids the command."""


class IllegalTransition(PacelineError):
    """A state change that the transition table does not allow; nothing was changed."""


class StoreError(PacelineError):
    """The database failed us."""


class StoreUnavailable(StoreError):
    """The database cannot be reached right now; the same call may work later."""


class StoreBusy(StoreUnavailable):
    """Another process has held the file's lock, or a row's, for longer than we wait."""


class RowBusy(StoreBusy):
    """A row, not the whole store, was locked for longer than we wait: others may get through."""


class StoreConflict(StoreUnavailable):
    """A deadlock or a failed serialization: all was undone, and may be tried again at once."""


class StoreSurprise(StoreConflict):
    """Something was not as whoever wrote believed: all was undone, and must be looked at first."""


class SchemaMismatch(StoreError):
    """The database was made by another version of Paceline, or was never prepared."""


class ProviderError(PacelineError):
    """A driver could not open its account."""


class ProviderRefused(ProviderError):
    """The provider rejected the account's credentials."""


class VaultError(ProviderError):
    """The account's secrets cannot be unsealed by this process; another one may have the key."""


class LeaseLost(PacelineError):
    """Another process took over what we were doing; nothing more may be done here."""
