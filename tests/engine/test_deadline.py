"""By when a call has to be answered: it ends then, whatever the loop's time is rounded to."""

import asyncio

import pytest

from paceline.core.instants import SECOND
from paceline.engine.deadline import Deadline
from paceline.sim.loop import VirtualLoop, run_virtual

TIMEOUT_US = 5 * SECOND


async def _never_answered(after_us: int) -> int:
    """How many turns of the loop it takes to give up a call that begins then."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    await asyncio.sleep(after_us / SECOND)
    turns = loop.turns

    def enough(turn: int) -> None:
        assert turn < turns + 50, "the alarm rings for ever"

    loop.at_turn = enough
    with pytest.raises(TimeoutError):
        await Deadline().answer(loop.create_future(), TIMEOUT_US)
    return loop.turns - turns


def test_it_ends_at_whatever_instant_a_call_begins() -> None:
    """Seconds with fractions cannot all be told apart from their neighbours: a deadline may lie a
    hair beyond the instant at which its alarm rings. It rang again and again in that instant, for
    ever, before it was asked of the alarm instead of the clock."""
    beyond = [us for us in range(252_000_000, 252_002_000) if _lies_beyond(us)]
    assert beyond, "none of these shows it"
    for after_us in beyond[:10]:
        assert run_virtual(_never_answered(after_us), start_at=0) < 10


def _lies_beyond(us: int) -> bool:
    until_s = us / SECOND + TIMEOUT_US / SECOND
    return until_s > round(until_s * SECOND) / SECOND
