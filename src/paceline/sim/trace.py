"""The trace of a simulated world: every event in order, one line each, and a digest over them all.

The same seed gives the same lines on every machine, so a line holds nothing that is not part of
the world: no real time, no memory address, no path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256

from paceline.core.instants import Instant, iso

MOST_LINES_SHOWN = 60


class Trace:
    """Lines as they come; written out only when somebody asks."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._events: list[tuple[Instant, str, str, str]] = []

    def __len__(self) -> int:
        return len(self._events)

    def note(self, who: str, kind: str, what: str = "") -> None:
        self._events.append((self._now(), who, kind, what))

    @property
    def last_at(self) -> Instant:
        """When it was written to last."""
        return self._events[-1][0] if self._events else 0

    def count(self, kind: str) -> int:
        return sum(event[2] == kind for event in self._events)

    def digest(self) -> str:
        hashed = sha256()
        for at, who, kind, what in self._events:
            hashed.update(f"{at}\t{who}\t{kind}\t{what}\n".encode())
        return hashed.hexdigest()

    def lines(self) -> Iterator[str]:
        """Everything, for people."""
        return (_line(event) for event in self._events)

    def around(self, at: Instant, words: tuple[str, ...] = ()) -> list[str]:
        """The lines that lead up to an instant and the few after it.

        Where words are given, only lines that hold one of them, and whatever befell a process.
        """
        concerned = [
            (index, event)
            for index, event in enumerate(self._events)
            if not words or event[2] in BLOWS or any(word in event[3].split() for word in words)
        ]
        before = [pair for pair in concerned if pair[1][0] <= at]
        after = [pair for pair in concerned if pair[1][0] > at]
        shown = before[-MOST_LINES_SHOWN * 3 // 4 :] + after[: MOST_LINES_SHOWN // 4]
        return [_line(event) for _, event in shown]


BLOWS = frozenset({"starts", "crashes", "stands still", "goes on", "clock", "store", "operator"})
"""Events that concern everybody."""


def _line(event: tuple[Instant, str, str, str]) -> str:
    at, who, kind, what = event
    return f"{iso(at)}  {who:<10} {kind:<12} {what}".rstrip()
