"""Very many conversations in one process: each answered once, and little memory for each.

``scripts/bench conversations`` does the same with ten thousand, in real time.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter

import pytest

from paceline.core.instants import SECOND
from paceline.engine.commands import returns
from paceline.engine.ports import Inbound, Tx
from paceline.engine.ports.answering import Answer, Burst
from tests.engine.talking import Desk, Scripted, answered, echo
from tests.engine.world import World

MANY = 200
KB_EACH = 32
ACCOUNTS = ("ann", "ben", "cem")


@pytest.fixture(autouse=True)
def uncounted() -> None:
    """Whatever was loaded and made before is nobody's in these tests."""
    gc.collect()


def write_all(world: World, first: int, count: int) -> None:
    """So many people write two messages each, all in the same moment."""
    accounts = [world.account_now(name) for name in ACCOUNTS]
    now = world.clock.now()

    def work(tx: Tx) -> None:
        for number in range(first, first + count):
            chat = f"+3460{number:07}"
            said = [Inbound(f"{chat}-{n}", chat, chat, f"part {n}", 0) for n in range(2)]
            returns.take_in(tx, accounts[number % len(accounts)], said, now)

    world.write(work)


class Patience:
    """Answers nobody before so many have asked."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.all_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def answer(self, burst: Burst) -> Answer:
        self._left -= 1
        if self._left <= 0:
            self.all_asked.set()
        await self.may_answer.wait()
        return await echo(burst)


def test_all_are_in_flight_at_once_and_each_is_answered_once(world: World) -> None:
    async def script(world: World) -> None:
        for name in ACCOUNTS:
            answered(world, name)
        patience = Patience(MANY)
        responder = Scripted(patience.answer)
        write_all(world, 0, MANY)
        gc.collect()
        tracemalloc.start()
        try:
            desk = Desk(world, responder, at_once=MANY)
            before, _ = tracemalloc.get_traced_memory()
            await patience.all_asked.wait()
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (responder.most_at_once, desk.answerer.answering) == (MANY, MANY)
        assert (taken - before) / MANY < KB_EACH * 1024
        # Longer than any lease: nobody loses a turn for being one of many.
        await world.wait(20 * SECOND)
        assert len(responder.asked) == MANY
        patience.may_answer.set()
        await world.until(lambda: len(world.sends()) >= MANY)
        await world.until(lambda: not world.read(lambda tx: tx.turns.active()))
        await desk.stop()
        assert set(Counter(one.target for one in world.sends()).values()) == {1}
        assert len(world.sends()) == len(responder.asked) == MANY
        assert {burst.text for burst in responder.asked} == {"part 0\npart 1"}
        assert desk.answerer.answering == 0
        assert not world.read(lambda tx: tx.conversations.list(waiting=True))

    world.play(script)


def test_those_that_wait_for_their_turn_take_no_memory(world: World) -> None:
    async def script(world: World) -> None:
        for name in ACCOUNTS:
            answered(world, name)
        patience = Patience(5)
        desk = Desk(world, Scripted(patience.answer), at_once=5)
        write_all(world, 0, 50)
        await patience.all_asked.wait()
        await world.wait(30 * SECOND)
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            write_all(world, 50, MANY)
            await world.wait(30 * SECOND)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert desk.answerer.answering == 5
        assert (after - before) / MANY < 1024
        await desk.stop()

    world.play(script)
