"""Work that many ask for at once is done for all of them, and one that is bad harms no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from paceline.engine.ports import Tx
from tests.engine.test_journal import Groups, journal_on, put
from tests.engine.world import World


def test_work_that_is_asked_for_by_many_is_done_once_for_all(world: World) -> None:
    async def script(world: World) -> None:
        groups, calls = Groups(), list[list[str]]()
        journal = journal_on(world.store, groups)

        def together(tx: Tx, keys: Sequence[str]) -> list[str]:
            calls.append(list(keys))
            for key in keys:
                put(key, 1)(tx)
            return [key.upper() for key in keys]

        def other(tx: Tx, keys: Sequence[str]) -> list[int]:
            return [len(keys)] * len(keys)

        answers = await asyncio.gather(
            journal.write_together(together, "a"),
            journal.write(put("b", 2)),
            journal.write_together(other, "c"),
            journal.write_together(together, "d"),
        )
        assert list(answers) == ["A", "b", 1, "D"]
        assert (calls, groups.sizes) == ([["a", "d"]], [4])
        with world.store.read() as tx:
            assert [tx.settings.get(key) for key in "abd"] == [1, 2, 1]

    world.play(script)


def test_one_that_spoils_what_is_done_for_many_fails_alone(world: World) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store)

        def together(tx: Tx, keys: Sequence[str]) -> list[str]:
            for key in keys:
                put(key, 1)(tx)
                if key == "bad":
                    raise ValueError("spoilt")
            return list(keys)

        answers = await asyncio.gather(
            *(journal.write_together(together, key) for key in ("a", "bad", "c")),
            return_exceptions=True,
        )
        assert (answers[0], answers[2]) == ("a", "c")
        assert isinstance(answers[1], ValueError)
        with world.store.read() as tx:
            assert [tx.settings.get(key) for key in ("a", "bad", "c")] == [1, None, 1]

    world.play(script)
