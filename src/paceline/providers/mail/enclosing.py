"""The files that go into a letter, as they lie at hand."""

from __future__ import annotations

from paceline.core.outcome import Outcome
from paceline.engine.ports import Message
from paceline.providers.answers import refusal
from paceline.providers.mail.mime import File
from paceline.providers.shelf import Shelf

MOST_KEPT = 200 * 2**20
"""Bytes of files at hand in memory, for all accounts of a provider together."""


def new_shelf() -> Shelf[File]:
    return Shelf(MOST_KEPT, lambda file: len(file.content))


def files_of(message: Message, shelf: Shelf[File]) -> list[File] | Outcome:
    """In the part's order; an outcome where one of them is not at hand any more."""
    if message.part.media is None and not message.attached:
        return []
    about = () if message.part.media is None else (message.handle or "",)
    found = [shelf.get(handle) for handle in (*about, *message.attached)]
    there = [file for file in found if file is not None]
    if len(there) < len(found):
        return refusal("media-unknown", "the file is not at hand any more")
    return there
