"""An error that nobody foresaw, in words that are the same on every machine."""

from __future__ import annotations

import traceback
from pathlib import Path

OURS = Path(__file__).parents[1]
FRAMES = 4
"""Of the places that led to an error, so many are told, the last ones."""
LONGEST = 500
"""Characters of what an error says of itself."""


def in_words(error: BaseException) -> str:
    """What it was at the bottom of it, and where."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = " ".join("".join(traceback.format_exception_only(error)).split())
    if len(said) > LONGEST:
        said = f"{said[:LONGEST]}…"
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    return f"{said} ({', '.join(places)})" if places else said


def _short(name: str) -> str:
    """A file as it is called within our package, or by its last names elsewhere."""
    path = Path(name)
    if path.is_relative_to(OURS):
        return path.relative_to(OURS).as_posix()
    return "/".join(path.parts[-2:])
