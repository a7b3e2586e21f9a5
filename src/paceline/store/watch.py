"""What says that something has come over a wire."""

from __future__ import annotations

import select

CAN_WATCH = hasattr(select, "epoll")
READABLE, EITHER = select.POLLIN, select.POLLIN | select.POLLOUT


class Watch:
    """A number that a loop can watch in the place of a socket.

    Not the socket itself: of one that was reset by the other side a loop speaks once and never
    again (libuv does), and the driver may then have read no more than the server's last words. And
    the driver closes it by itself when the connection is lost, so that its number is another's.
    """

    def __init__(self, socket: int) -> None:
        self._watched = select.epoll(1)
        self._socket = socket
        self._events = READABLE
        self._watched.register(socket, READABLE)
        self.number = self._watched.fileno()

    def wait_for(self, events: int) -> None:
        if events != self._events:
            self._watched.modify(self._socket, events)
            self._events = events

    def close(self) -> None:
        self._watched.close()
