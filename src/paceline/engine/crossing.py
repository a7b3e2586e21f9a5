"""Waiting for a group that is on its way to a server, in the loop and without a thread."""

from __future__ import annotations

import asyncio

from paceline.engine.ports import Crossing, LaneResult


async def arrived(crossing: Crossing) -> list[LaneResult]:
    """The answers of all its units, when it is committed; raises what a transaction raises."""
    loop = asyncio.get_running_loop()
    arrival: asyncio.Future[None] = loop.create_future()

    def step() -> None:
        if arrival.done():
            return
        try:
            if crossing.step():
                arrival.set_result(None)
        except Exception as error:
            arrival.set_exception(error)

    number = crossing.fileno()
    try:
        step()
        loop.add_reader(number, step)
        await arrival
    finally:
        # In this order: a number that is given up may be another's in the next moment.
        loop.remove_reader(number)
        crossing.end()
    return crossing.foretold
