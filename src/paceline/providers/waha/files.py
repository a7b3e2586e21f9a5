"""Files that wait to be sent. What they are sent with is not known here."""

from __future__ import annotations

import base64

from paceline.engine.ports import Media
from paceline.providers.shelf import Shelf
from paceline.providers.waha.wire import LARGEST_FILE, File

MOST_KEPT = 4 * LARGEST_FILE


class Files(Shelf[File]):
    """Kept as WAHA takes them."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        super().__init__(most, lambda file: len(file.data))

    def take(self, media: Media, content: bytes) -> str:
        """Keep a file; its handle."""
        if self.get(media.id) is None:
            file = File(media.name, media.mime, base64.b64encode(content).decode("ascii"))
            self.put(media.id, file)
        return media.id
