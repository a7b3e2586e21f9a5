"""Files that wait to be sent. What they are sent with is not known here."""

from __future__ import annotations

import base64
from collections import OrderedDict

from paceline.engine.ports import Media
from paceline.providers.waha.wire import LARGEST_FILE, File

MOST_KEPT = 4 * LARGEST_FILE


class Files:
    """Files to be sent, kept in memory for all accounts, each once and as WAHA takes it.

    WAHA takes a file with every message and keeps none for later, so what the engine knows as a
    handle is only a place in here. After a restart it is empty, and the engine is told.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, File] = OrderedDict()
        self._size = 0

    def put(self, media: Media, content: bytes) -> str:
        """Keep a file; the oldest go where there are too many. Answers its handle."""
        if media.id not in self._kept:
            file = File(media.name, media.mime, base64.b64encode(content).decode("ascii"))
            self._kept[media.id] = file
            self._size += len(file.data)
        self._kept.move_to_end(media.id)
        while self._size > self._most and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped.data)
        return media.id

    def get(self, handle: str) -> File | None:
        if handle in self._kept:
            self._kept.move_to_end(handle)
        return self._kept.get(handle)
