"""Many lanes that are taken together, and what is known of each when it begins."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine import lane as lanes
from paceline.engine import taking
from paceline.engine.memory import take_snapshot
from paceline.engine.ports import Lease
from tests.engine.world import World
from tests.engine.worlds import Worlds


def test_many_lanes_that_are_taken_together_are_looked_at_together(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one by one: each visit to the store costs more than what is read there."""
    together: list[int] = []
    looked_at = taking.Taking._looked_at

    async def counted(self: taking.Taking, page: list[taking.Taken], now: Instant) -> Any:
        seen = await looked_at(self, page, now)
        together.append(len([one for one in seen if one.snapshot is not None]))
        return seen

    def look(tx: Any, account_id: int, now: Instant, *, known: Any = None) -> Any:
        assert known is not None, "a lane that began looked by itself"
        return take_snapshot(tx, account_id, now, known=known)

    monkeypatch.setattr(taking, "LOOK_AT_ONCE", 6)
    monkeypatch.setattr(taking.Taking, "_looked_at", counted)
    monkeypatch.setattr(lanes, "take_snapshot", look)

    async def script(world: World) -> None:
        names = tuple(f"ann-{number}" for number in range(10))
        for name in names:
            world.account(name, policy={"rate": "60/min"})
        world.campaign(20, on=names)
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert together[:2] == [6, 4]

    worlds.fresh().play(script)


def test_whoever_lost_a_lane_before_it_was_looked_at_does_not_run_it(worlds: Worlds) -> None:
    """Between taking many and looking at them there is a moment, and a slow store makes it long."""

    async def script(world: World) -> None:
        account_id, now = world.account().id, world.clock.now()
        with world.store.write() as tx:
            ours, other = (tx.processes.join(name, MINUTE).id for name in ("ours", "other"))
            ((row, account),) = taking.take(tx, [account_id], ours)
            taken = taking.Taken(row, account, None)
            assert taking._seen(tx, taken, now).snapshot is not None
            tx.lanes.release(Lease(account_id, ours, row.generation))
            assert len(taking.take(tx, [account_id], other)) == 1
            assert taking._seen(tx, taken, now).snapshot is None

    worlds.fresh().play(script)
