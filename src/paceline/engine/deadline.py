"""By when a call has to be answered that was begun without a task (``ports.Prompt``).

Such a call is nothing but a future, so to call it off is to end it. Nearly every one is answered in
time, and a timer of its own for each would cost more than to wait for it. So there is one for all
calls of a lane, which is only moved when it would ring too late, and looks at what is allowed now
when it rings.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from paceline.core.instants import SECOND
from paceline.engine.drivers import answered, is_leaving, note_end

T = TypeVar("T")


class Deadline:
    """Of one lane, which waits for one such call at a time."""

    __slots__ = ("_call", "_rings_s", "_timer", "_until_s")

    def __init__(self) -> None:
        self._call: asyncio.Future[Any] | None = None
        """The one that is waited for."""
        self._until_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._rings_s = 0.0

    async def answer(self, call: asyncio.Future[T], timeout_us: int) -> T:
        """What a call answers within so long; else it is called off, and that is a
        ``TimeoutError``."""
        if call.done():
            return answered(call)
        self.watch(call, timeout_us)
        try:
            await call
        except asyncio.CancelledError:
            if is_leaving():
                if call.done():
                    note_end(call)
                raise
        finally:
            in_time, self._call = self._call is call, None
        return _came_to(call, in_time=in_time)

    def watch(self, call: asyncio.Future[Any], timeout_us: int) -> None:
        """From now on: it is called off if it is not answered within so long."""
        loop = call.get_loop()
        self._call, self._until_s = call, loop.time() + timeout_us / SECOND
        if self._timer is None or self._rings_s > self._until_s:
            self._wind(loop)

    def came_to(self, call: asyncio.Future[T]) -> T:
        """What a call that was watched has answered; a ``TimeoutError`` if it was called off."""
        in_time = self._call is call
        if in_time:
            self._call = None
        return _came_to(call, in_time=in_time)

    def drop(self) -> None:
        """Nobody waits for anything any more."""
        self._stop()
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self, loop: asyncio.AbstractEventLoop) -> None:
        self._stop()
        self._rings_s = self._until_s
        self._timer = loop.call_at(self._until_s, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        call = self._call
        if call is None:
            return
        if self._until_s > self._rings_s:  # not asked of the clock, which may be a hair behind
            self._wind(loop)
            return
        self._call = None
        call.cancel()


def _came_to(call: asyncio.Future[T], *, in_time: bool) -> T:
    if call.cancelled() and not in_time:
        raise TimeoutError
    return answered(call)
