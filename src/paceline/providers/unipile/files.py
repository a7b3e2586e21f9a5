"""Files that wait to be attached. What they are attached to is not known here."""

from __future__ import annotations

from paceline.providers.shelf import Shelf
from paceline.providers.unipile.wire import Attachment

LARGEST_FILE = 15 * 1024 * 1024
MOST_KEPT = 8 * LARGEST_FILE


class Files(Shelf[Attachment]):
    def __init__(self, most: int = MOST_KEPT) -> None:
        super().__init__(most, lambda file: len(file.content))
