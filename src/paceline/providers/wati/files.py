"""Files that wait to be sent: WATI takes them with every message. Why is not known here."""

from __future__ import annotations

from typing import NamedTuple

from paceline.providers.shelf import Shelf

LARGEST_FILE = 32 * 1024 * 1024
"""Ours: a file travels with every message, and waits in memory until then."""
MOST_KEPT = 4 * LARGEST_FILE


class File(NamedTuple):
    name: str
    mime: str
    content: bytes


class Files(Shelf[File]):
    def __init__(self, most: int = MOST_KEPT) -> None:
        super().__init__(most, lambda file: len(file.content))
