"""Files that wait to be sent, for providers that take them with every message and keep none."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shelf(Generic[T]):
    """Files kept in memory for all accounts of a provider, each once, up to a size.

    What the engine knows as a handle is only a place in here. After a restart it is empty, and the
    engine is told, which then puts the file here again.
    """

    def __init__(self, most: int, size_of: Callable[[T], int]) -> None:
        self._most = most
        self._size_of = size_of
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._size = 0

    def put(self, handle: str, file: T) -> None:
        """Keep a file; those that were used longest ago go where there are too many."""
        if handle not in self._kept:
            self._kept[handle] = file
            self._size += self._size_of(file)
        self._kept.move_to_end(handle)
        while self._size > self._most and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= self._size_of(dropped)

    def get(self, handle: str) -> T | None:
        if handle in self._kept:
            self._kept.move_to_end(handle)
        return self._kept.get(handle)
