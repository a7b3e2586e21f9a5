"""What the engine tells whoever watches: metrics, progress bars, the simulator.

An observer sees what has happened and can change nothing. Logging is separate (structlog), because
a log line is for a person reading later and these calls are for a program watching now.
"""

from __future__ import annotations

from typing import Protocol

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome
from paceline.core.states import DeliveryState


class Observer(Protocol):
    """Told of every step of the message path, in the event loop's thread."""

    def intended(self, account: str, delivery_id: int, at: Instant) -> None: ...

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None: ...

    def lanes_running(self, count: int) -> None: ...

    def lane_crashed(self, account: str) -> None: ...

    def committed(self, units: int, took_us: int) -> None: ...


class Unobserved:
    """An observer for when nobody watches."""

    def intended(self, account: str, delivery_id: int, at: Instant) -> None:
        return

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None:
        return

    def lanes_running(self, count: int) -> None:
        return

    def lane_crashed(self, account: str) -> None:
        return

    def committed(self, units: int, took_us: int) -> None:
        return
