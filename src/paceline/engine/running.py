"""A lane that runs here, as its supervisor knows it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from paceline.engine.lane import Lane
from paceline.engine.ports import Account


@dataclass(slots=True)
class Running:
    account: Account
    lane: Lane
    ended: asyncio.Task[None]
    killed: bool = False
    over: bool = False
    """The lane itself has ended; what is still under way puts its end on record."""

    def kill(self) -> bool:
        """End the lane at once. Giving it back afterwards must not be cut short, or nobody could
        ever take it again while this process lives."""
        if self.killed or self.over:
            return False
        self.killed = True
        self.ended.cancel()
        return True
