"""Many rows through one statement of SQLite's driver.

The driver lets go of the interpreter for every row it steps over, and in a process that is busy
each return has to be waited for. So many rows are written as one list of values, and read as one
JSON array: one step instead of hundreds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.store.base import Cursor

SIZES = (128, 64, 32, *range(16, 0, -1))
"""Rows in one statement: few texts, so that the driver knows their plans, and few statements. A
handful of lanes is one statement each time, and a statement costs about as much as three rows."""
FEW = 4
"""So many rows are written one by one where there is a text for that: a list of them would cost
more to lay out, and each is let go of only twice."""
_FITTING = [next((size for size in SIZES if size <= left), 0) for left in range(SIZES[0] + 1)]
"""The largest statement for so many rows."""


class Bulk:
    """A statement over a list of values; ``{values}`` in its text is where they go.

    ``one`` is the same for a single row, spelled as one would: no list has to be laid out for it,
    and nothing be kept to undo the first of several rows if the second is refused.
    """

    def __init__(self, text: str, columns: int, one: str | None = None) -> None:
        marks = ", ".join("?" for _ in range(columns))
        self._texts = {size: _spelled(text, marks, size) for size in SIZES}
        self._one = one
        if one is not None:
            self._texts[1] = one

    def run(self, cursor: Cursor, rows: Sequence[tuple[Any, ...]]) -> int:
        """Run it for all rows; how many rows of the table were changed."""
        changed, done, count = 0, 0, len(rows)
        if count <= FEW and self._one is not None:
            return cursor.executemany(self._one, rows).rowcount if rows else 0
        while done < count:
            size = _FITTING[min(count - done, SIZES[0])]
            values = tuple(chain.from_iterable(rows[done : done + size]))
            changed += cursor.execute(self._texts[size], values).rowcount
            done += size
        return changed

    def count(self, cursor: Cursor, rows: Sequence[tuple[Any, ...]]) -> int:
        """Run it for all rows, where it answers with a number: what they come to together."""
        return sum(number for (number,) in self.fetch(cursor, rows))

    def fetch(self, cursor: Cursor, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Run it for all rows; all that it answers."""
        found, done, count = [], 0, len(rows)
        while done < count:
            size = _FITTING[min(count - done, SIZES[0])]
            values = tuple(chain.from_iterable(rows[done : done + size]))
            found += cursor.execute(self._texts[size], values).fetchall()
            done += size
        return found


def _spelled(text: str, marks: str, size: int) -> str:
    return text.replace("{values}", ", ".join([f"({marks})"] * size))


@lru_cache(maxsize=64)
def _gathered(query: str, columns: int) -> str:
    names = [f"c{number}" for number in range(columns)]
    listed = ", ".join(names)
    return f"WITH g ({listed}) AS ({query}) SELECT json_group_array(json_array({listed})) FROM g"


def gathered(query: str, columns: int) -> str:
    """The same query, answering with all its rows as one JSON array of arrays, in their order."""
    return _gathered(query, columns)


def fetch_gathered(cursor: Cursor) -> list[list[Any]]:
    rows: list[list[Any]] = json.loads(cursor.fetchone()[0])
    return rows
