"""The machine that a simulated process runs on: its clock, and by how much that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.core.instants import Instant
from paceline.engine.clock import LoopClock, SystemClock


@dataclass(slots=True)
class Skew:
    """By how much a machine's clock is wrong; set by whoever sets the clock."""

    us: int = 0


class MachineClock(SystemClock):
    """Reads microseconds where the machine's own clock reads nanoseconds: it is read so often."""

    def __init__(self, true: LoopClock, skew: Skew, **ways: Any) -> None:
        super().__init__(**ways)
        self._true = true
        self._skew = skew

        self.monotonic_us = true.monotonic_us  # type: ignore[method-assign]

    def now(self) -> Instant:
        return self._true.now() + self._skew.us
