"""A group on its way to a server, which nobody's thread waits for.

It was told all at once, its COMMIT included (``path_trusting.py``), so that nothing is left but to
take in what comes: a few steps, whenever the socket says so.
"""

from __future__ import annotations

import select
from collections.abc import Callable

from paceline.engine.ports.path import LaneResult
from paceline.store.failures_postgresql import PostgresqlPlace
from paceline.store.wire import READABLE, Waiting, Wire

CAN_CROSS = hasattr(select, "epoll")


class Watch:
    """What says that something has come over a wire.

    Not the wire's own socket: of one that was reset by the other side a loop speaks once and never
    again (libuv does), and the driver may then have read no more than the server's last words. And
    the driver closes it by itself when the connection is lost, so that its number is another's.
    """

    def __init__(self, wire: Wire) -> None:
        self._watched = select.epoll(1)
        self._socket = wire.socket
        self._events = READABLE
        self._watched.register(self._socket, READABLE)
        self.number = self._watched.fileno()

    def wait_for(self, events: int) -> None:
        if events != self._events:
            self._watched.modify(self._socket, events)
            self._events = events

    def close(self) -> None:
        self._watched.close()


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
        self._talk: Waiting[None] = wire.committing()
        self._committed = False
        self._watch = Watch(wire)
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
        return self._committed

    def end(self) -> None:
        """Nobody watches it any more. What is still under way is broken off; what becomes of it is
        found out by whoever wants to know."""
        self._watch.close()
        if self._committed:
            self._give_back(self._wire)
        else:
            self._talk.close()
            self._wire.drop()
