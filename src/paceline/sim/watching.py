"""What a process tells about itself, as lines of the trace.

The checkers never read these lines: they are for people who want to know how something came about.
Only that a lane has crashed is kept as evidence as well, with the error that it crashed of.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome
from paceline.core.states import DeliveryState

if TYPE_CHECKING:
    from paceline.sim.process import Process


class CommitWatch:
    """An observer that writes the trace."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._trace = process.around.trace
        self._name = process.name

    def intended(self, account: str, delivery_id: int, at: Instant) -> None:
        self._trace.note(self._name, "intends", f"delivery {delivery_id} on {account}")

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None:
        self._trace.note(self._name, "settles", f"{outcome.kind} on {account}: {state}")

    def lanes_running(self, count: int) -> None:
        return

    def lane_crashed(self, account: str) -> None:
        self._trace.note(self._name, "lane crashes", f"of {account}")
        # It is told where the error is being handled, as the log is.
        self._process.around.witness.see_defect(self._process, account, sys.exception())

    def committed(self, units: int, took_us: int) -> None:
        self._trace.note(self._name, "commits", f"{units} units in {took_us} us")
