"""What a transaction has of everything: made when it is first asked for, and kept.

As ``functools.cached_property``, which before Python 3.12 takes a lock to make anything; a
transaction belongs to one thread, and is over in less time than a few of those take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Lazily(Generic[T]):
    """Decorates a method without arguments."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        # Found before this ever after: whatever stands in the object itself goes first.
        made = instance.__dict__[self._name] = self._make(instance)
        return made
