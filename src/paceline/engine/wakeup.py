"""A wake-up call for one sleeper: as ``asyncio.Event``, in a tenth of its room.

There is one for every lane, and ten thousand lanes in a process. An event keeps a line of all who
wait for it; here nobody waits but the lane itself.
"""

from __future__ import annotations

import asyncio


class Wakeup:
    """Set by anybody, waited for by one."""

    __slots__ = ("_set", "_sleeper")

    def __init__(self) -> None:
        self._set = False
        self._sleeper: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        sleeper = self._sleeper
        if sleeper is not None and not sleeper.done():
            sleeper.set_result(None)

    def clear(self) -> None:
        self._set = False

    async def wait(self) -> None:
        """Until it is set; at once if it is."""
        if self._set:
            return
        assert self._sleeper is None, "there is one sleeper"
        self._sleeper = asyncio.get_running_loop().create_future()
        try:
            await self._sleeper
        finally:
            self._sleeper = None
