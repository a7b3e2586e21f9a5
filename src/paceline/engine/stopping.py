"""Whether everything is stopped, since when and why. Stopping it is in ``commands.control``."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.instants import Instant
from paceline.engine.ports import Tx

GO_ON = "paceline go-on"

STOPPED_AT = "stopped_at"
"""The setting that says since when everything is stopped; it means nothing while nothing is."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Everything is stopped."""

    reason: str
    since_at: Instant | None
    """None if it was stopped by a version that did not write it down."""


def stopped(tx: Tx) -> Stop | None:
    reason = tx.settings.stopped()
    return None if reason is None else Stop(reason, tx.settings.get(STOPPED_AT))
