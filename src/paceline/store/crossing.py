"""A group on its way to a server, which nobody's thread waits for.

It was told all at once, its COMMIT included (``path_trusting.py``), so that nothing is left but to
take in what comes: a few steps, whenever the socket says so.
"""

from __future__ import annotations

from collections.abc import Callable

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
        self._talk = wire.committing()
        self.socket = wire.socket
        self.foretold = foretold

    def step(self) -> int:
        """For which events of its socket (as ``select.poll`` names them) it waits; 0 when it is
        committed. Raises what a transaction raises, and nothing was committed then, or nobody
        knows."""
        try:
            with self._place.failures():
                return next(self._talk)
        except StopIteration:
            self._give_back(self._wire)
            return 0
        except BaseException:
            self._wire.drop()
            raise

    def abandon(self) -> None:
        """Nobody waits any more; what becomes of it is found out by whoever wants to know."""
        self._talk.close()
        self._wire.drop()
