"""What nobody has thought of, inside a group: everybody hears of it, and the journal goes on."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.errors import StoreSurprise
from paceline.engine.ports import LaneUnit, Lease, Tx
from tests.engine.test_journal import journal_on, play, put, settings
from tests.engine.world import World
from tests.engine.worlds import Worlds


def test_a_surprise_where_nothing_was_insisted_upon_is_somebodys_own(worlds: Worlds) -> None:
    """It is tried as a whole, and once more by itself: never again and again."""
    tries: list[int] = []

    def surprised(tx: Tx) -> None:
        tries.append(1)
        raise StoreSurprise("something is not as it was believed to be")

    async def script(world: World) -> None:
        journal = journal_on(world.store)
        written = [journal.write(put("a", 1)), journal.write(surprised), journal.write(put("b", 2))]
        answers = await asyncio.gather(*written, return_exceptions=True)
        assert isinstance(answers[1], StoreSurprise)
        assert (answers[0], answers[2]) == ("a", "b")
        assert settings(world.store, "a", "b") == [1, 2]
        assert len(tries) <= 3, "trusting, one after the other, and alone"

    play(worlds, script)


def test_a_group_that_could_not_even_begin_keeps_nobody_waiting(worlds: Worlds) -> None:
    def spoil() -> None:
        raise ZeroDivisionError("nobody had thought of this")

    async def script(world: World) -> None:
        journal = journal_on(world.store)
        unit = LaneUnit(Lease(1, 1, 1), revision=0)
        spoilt = [journal.submit(unit, begins=spoil), journal.submit(unit)]
        answers = await asyncio.gather(*spoilt, return_exceptions=True)
        assert [type(answer) for answer in answers] == [ZeroDivisionError] * 2
        with pytest.raises(ZeroDivisionError):
            await journal.submit(unit, begins=spoil)
        assert await journal.write(put("later", 3)) == "later", "and it goes on"

    play(worlds, script)
