"""What every lane of a process shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.core.instants import MINUTE
from paceline.core.names import Names
from paceline.engine.crowd import Crowd
from paceline.engine.late import LateCalls
from paceline.engine.lead import Lead
from paceline.engine.leases import ProcessLease
from paceline.engine.observe import Observer
from paceline.engine.pooling import Claims
from paceline.engine.ports import Clock, Journal
from paceline.engine.starts import Starts
from paceline.engine.unsubscribing import Links


@dataclass(frozen=True, slots=True)
class LaneContext:
    journal: Journal
    clock: Clock
    lease: ProcessLease
    observer: Observer
    instance: str
    """The installation's own name, part of every provider key."""
    lead: Lead = field(default_factory=Lead)
    crowd: Crowd = field(default_factory=Crowd)
    park_after_us: int = 2 * MINUTE
    """A wait longer than this is spent parked. Shorter ones are not worth closing the account and
    opening it again, which would come on top of every gap."""
    late: LateCalls = field(default_factory=LateCalls)
    """Calls of this process that were given up and live on."""
    starts: Starts = field(default_factory=Starts)
    """Which accounts are about to send the first message of a firing."""
    links: Links | None = None
    """How people can unsubscribe; None where nobody has said how the outside reaches us."""
    seals: Names | None = None
    """How keys are sealed, so that nobody can make others from one; None where they are not."""
    alone: Callable[[], bool] = lambda: False
    """Whether a lane that asks is the only one that runs in this process."""
    claims: Claims = field(default_factory=Claims)
    """What the lanes of this process are about to take of what is nobody's."""

    def key(self, delivery_id: int, part: int) -> str:
        """What a provider is told to call this part, and can be asked for later.

        The same for every attempt: a provider that de-duplicates by it makes twice impossible.
        """
        key = f"{self.instance}-{delivery_id}-{part}"
        return key if self.seals is None else f"{key}-{self.seals.seal(delivery_id, part)}"
