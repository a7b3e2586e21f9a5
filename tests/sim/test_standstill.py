"""A virtual loop in which time does not move any more comes to an end."""

import asyncio

import pytest

from paceline.core.instants import SECOND, parse_instant
from paceline.sim.loop import MOST_TURNS_AT_ONCE, Standstill, VirtualLoop, run_virtual

START = parse_instant("2026-11-15T09:00:00Z")


def now_us() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_us


async def _spins() -> None:
    for _ in range(10 * MOST_TURNS_AT_ONCE):
        await asyncio.sleep(0)


def test_whoever_spins_in_one_instant_is_told_of_and_ended() -> None:
    ended: list[int] = []

    async def story() -> None:
        await asyncio.sleep(5)
        spinning = asyncio.create_task(_spins())
        spinning.add_done_callback(lambda _: ended.append(now_us()))
        await spinning

    with pytest.raises(Standstill, match=r"at 2026-11-15T09:00:05Z, after .*; ready: _spins$"):
        run_virtual(story(), start_at=START)
    assert ended == [5 * SECOND]


def test_timers_that_ring_at_once_move_no_time() -> None:
    rang: list[int] = []

    def ring() -> None:
        rang.append(now_us())
        if len(rang) < 10 * MOST_TURNS_AT_ONCE:
            asyncio.get_running_loop().call_later(0, ring)

    async def story() -> None:
        ring()
        await asyncio.sleep(1)

    with pytest.raises(Standstill):
        run_virtual(story())


def test_many_turns_are_well_while_time_moves() -> None:
    async def story() -> int:
        for _ in range(4):
            for _ in range(MOST_TURNS_AT_ONCE // 2):
                await asyncio.sleep(0)
            await asyncio.sleep(0.000_001)
        return now_us()

    assert run_virtual(story()) == 4
