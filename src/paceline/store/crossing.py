"""A group on its way to a server, which nobody's thread waits for.

It was told all at once, its COMMIT included (``path_trusting.py``), so that nothing is left but to
take in what comes: a few steps, whenever the socket says so.
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.core.errors import StoreUnavailable
from paceline.engine.ports.path import LaneResult
from paceline.store.failures_postgresql import PostgresqlPlace
from paceline.store.wire import Wire


class Crossing:
    """One group of units, from setting off until it is committed."""

    def __init__(
        self,
        wire: Wire,
        place: PostgresqlPlace,
        foretold: list[LaneResult],
        give_back: Callable[[Wire], None],
    ) -> None:
        self._wire = wire
        self._place = place
        self._give_back = give_back
        self._watch = wire.watch()
        self._talk = wire.committing()
        self._committed = False
        self.foretold = foretold

    def fileno(self) -> int:
        return self._watch.number

    def step(self) -> bool:
        """Whether it is committed by now. Raises what a transaction raises, and nothing was
        committed then, or nobody knows."""
        try:
            with self._place.failures():
                self._watch.wait_for(next(self._talk))
        except StopIteration:
            self._committed = True
        except OSError as error:
            # The socket cannot be watched any more, so whatever else comes is not heard of.
            raise StoreUnavailable(f"{self._place.name} cannot be heard: {error}") from error
        return self._committed

    def end(self) -> None:
        """Nobody watches it any more. Only where everything ends is anything broken off here. To
        undo what was refused takes words with the server, and whoever has the connection next has
        the time for them."""
        self._talk.close()
        self._give_back(self._wire)
