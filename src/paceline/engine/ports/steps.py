"""What the engine asks of the store about deliveries that follow others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant


class Advanced(NamedTuple):
    released: int
    skipped: int


class Steps(Protocol):
    """Later steps are planned from the beginning, and released one by one."""

    def link(self, run_id: int) -> None:
        """Tell every delivery of a later step which one it follows: the same place in the audience,
        one step earlier."""
        ...

    def before(self, delivery_id: int) -> list[int]:
        """The messages that a delivery follows, the first one first."""
        ...

    def waiting(self) -> list[int]:
        """Running runs in which something was settled that a later step has not been told of."""
        ...

    def advance(
        self,
        run_id: int,
        after_us: Mapping[int, int],
        at: Instant,
        expire_us: int | None = None,
        most: int = 5_000,
    ) -> Advanced:
        """Release what follows a delivery that was sent, so long after it as its step says, and
        skip what follows one that never will be; what would follow from an account that was
        removed is cancelled, and counted as skipped. ``after_us`` is by step.

        What was released already is skipped as well where the message before has bounced since.
        At most so many messages are told of in one go; ``waiting`` says whether there are more.
        """
        ...

    def revive(self, run_id: int, steps: int, at: Instant) -> int:
        """``skipped → planned`` for what was skipped because the one before was not delivered,
        where that one is to be sent after all; how many."""
        ...
