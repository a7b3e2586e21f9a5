"""Files that wait to be attached. What they are attached to is not known here."""

from __future__ import annotations

from collections import OrderedDict

from paceline.providers.unipile.wire import Attachment

LARGEST_FILE = 15 * 1024 * 1024
MOST_KEPT = 8 * LARGEST_FILE


class Files:
    """Files to be attached, kept in memory for all accounts, each once.

    Unipile takes a file with every e-mail and keeps none for later, so what the engine knows as a
    handle is only a place in here. After a restart it is empty, and the engine is told.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, Attachment] = OrderedDict()
        self._size = 0

    def put(self, handle: str, file: Attachment) -> None:
        if handle not in self._kept:
            self._size += len(file.content)
        self._kept[handle] = file
        self._kept.move_to_end(handle)
        while self._size > self._most and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped.content)

    def get(self, handle: str) -> Attachment | None:
        if handle in self._kept:
            self._kept.move_to_end(handle)
        return self._kept.get(handle)
