"""What a database says when it fails, put into our own errors, in one line each.

Every error of either driver, wrapped by SQLAlchemy or not, has its place; a test goes through all
of them. What is common to both databases is here, what their drivers say in ``failures_sqlite``
and ``failures_postgresql``, so that nobody loads the driver of a database that is not in use.
Nothing of a connection string but host, port and database name is ever repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import exc

from paceline.core.errors import StoreError, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Place(ABC):
    """A database as people are told of it: no user, no password."""

    name: str

    errors: ClassVar[tuple[type[Exception], ...]]
    """What a statement may raise; anything else is not the database's doing."""

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn whatever the database raises inside the block into a ``StoreError``."""
        try:
            yield
        except self.errors as error:
            raise self.translate(error) from error

    def translate(self, error: BaseException) -> StoreError:
        """The error of ours that says the same."""
        told = self._by_driver(getattr(error, "orig", None) or error)
        if told is not None:
            return told
        if isinstance(error, exc.TimeoutError):
            return StoreUnavailable(f"{self.name} has no connection free")
        if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
            return StoreUnavailable(f"{self.name} closed the connection")
        return StoreError(f"{self.name}: {first_line(error)}")

    @abstractmethod
    def _by_driver(self, error: BaseException) -> StoreError | None:
        """The same for an error of the driver's own; None if it is none."""


def first_line(error: BaseException) -> str:
    """The first line of what was said, without the driver's way of introducing it."""
    said = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    line = said.splitlines()[0].strip()
    for introduction in ("FATAL:", "failed: "):
        _, found, rest = line.rpartition(introduction)
        line = rest.strip() if found and rest.strip() else line
    return line.rstrip(".")
