"""How whoever reads a mailbox rests until it is time to look again."""

from __future__ import annotations

import asyncio

from paceline.engine.ports import Clock


async def rest(clock: Clock, us: int, over: asyncio.Event) -> None:
    """So long, or until it is over."""
    ends = [asyncio.ensure_future(clock.sleep(us)), asyncio.ensure_future(over.wait())]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
