"""Waiting for a group that is on its way to a server, in the loop and without a thread."""

from __future__ import annotations

import asyncio
import select

from paceline.engine.ports import Crossing, LaneResult


async def arrived(crossing: Crossing) -> list[LaneResult]:
    """The answers of all its units, when it is committed; raises what a transaction raises."""
    loop = asyncio.get_running_loop()
    arrival: asyncio.Future[None] = loop.create_future()
    writing = False

    def step() -> None:
        nonlocal writing
        if arrival.done():
            return
        try:
            events = crossing.step()
        except Exception as error:
            arrival.set_exception(error)
            return
        if not events:
            arrival.set_result(None)
        elif writing is not bool(events & select.POLLOUT):
            writing = not writing
            if writing:
                loop.add_writer(crossing.socket, step)
            else:
                loop.remove_writer(crossing.socket)

    loop.add_reader(crossing.socket, step)
    try:
        step()
        await arrival
    finally:
        loop.remove_reader(crossing.socket)
        if writing:
            loop.remove_writer(crossing.socket)
        if not arrival.done() or arrival.cancelled():
            crossing.abandon()
    return crossing.foretold
