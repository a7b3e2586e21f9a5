"""Lanes that end because they seem to be another's: whoever they belong to, they are run again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome
from paceline.engine.leases import LEASE_US
from paceline.engine.media import Handles
from paceline.engine.taking import Taking
from tests.engine.doubles import Act, Double
from tests.engine.test_media import picture
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

T = TypeVar("T")


class Gate:
    """A database that answers nobody for a while, whoever asks it."""

    def __init__(self, process: Process) -> None:
        self._open = asyncio.Event()
        self._open.set()
        process.journal._writer = process.journal._reader = self  # type: ignore[assignment]

    def shut(self) -> None:
        self._open.clear()

    def is_shut(self) -> bool:
        return not self._open.is_set()

    def open(self) -> None:
        self._open.set()

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        await self._open.wait()
        answer = function()
        await self._open.wait()
        return answer

    def close(self) -> None:
        return


@pytest.mark.parametrize("closes_us", [0, 5 * SECOND], ids=["closed at once", "closed slowly"])
def test_a_lease_that_ran_out_while_a_file_was_looked_for_leaves_the_lane_to_somebody(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, closes_us: int
) -> None:
    """Found by the simulator: nobody had taken the lane meanwhile, so it was its process's for
    ever after, and nobody there ran it. It seems to be run for as long as its account closes."""

    async def script(world: World) -> None:
        async def close(real: Act) -> None:
            await world.wait(closes_us)
            await real()

        world.account(policy={"rate": "60/min"})
        world.campaign(3, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), close=close)
        process = world.process(providers=provider.registry())
        gate, looks, ensure = Gate(process), count(1), Handles.ensure

        async def ensured(self: Handles, media_id: str, timeout_us: int) -> str | Outcome:
            if next(looks) == 1:
                gate.shut()
            return await ensure(self, media_id, timeout_us)

        monkeypatch.setattr(Handles, "ensure", ensured)
        await world.until(gate.is_shut)
        await world.wait(2 * LEASE_US)
        gate.open()
        await world.until_finished(within_us=5 * MINUTE, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_former_owner_that_has_not_heard_of_it_uploads_nothing(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulator: its lease ran out, was renewed, and was good again when it looked for
    the file, which the owner of that time had not written down yet."""

    async def script(world: World) -> None:
        async def upload(real: Act, *file: Any) -> Any:
            await world.wait(30 * SECOND)
            return await real(*file)

        async def ensured(self: Handles, media_id: str, timeout_us: int) -> str | Outcome:
            if next(looks) == 1:
                gate.shut()
                await world.until(lambda: not gate.is_shut() and self._lease.safe())
            return await ensure(self, media_id, timeout_us)

        world.account(policy={"rate": "60/min", "timeout": "1m"})
        world.campaign(3, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), upload=upload)
        former = world.process("one", providers=provider.registry())
        gate, looks, ensure = Gate(former), count(1), Handles.ensure
        monkeypatch.setattr(Handles, "ensure", ensured)
        await world.until(gate.is_shut)
        present = world.process("two", providers=provider.registry())
        await world.until(lambda: provider.called["upload"] == 1)
        gate.open()
        await world.until_finished(within_us=5 * MINUTE, every_us=SECOND)
        await former.stop()
        await present.stop()
        assert provider.called["upload"] == 1

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_lane_that_ends_while_others_are_let_go_is_made_sure_of_at_the_next_look() -> None:
    """It seemed to be run when they were chosen."""
    let_go: list[int] = []

    class Lease:
        process_id = 1

    class Journal:
        async def write(self, work: Callable[..., object]) -> None:
            let_go.append(len(let_go))
            if len(let_go) == 1:
                running.clear()
                taking.doubt(1)

    async def script() -> None:
        taking.doubt(1)
        taking.doubt(2)
        await taking.make_sure(running)
        await taking.make_sure(running)
        await taking.make_sure(running)

    journal: Any = Journal()
    lease: Any = Lease()
    running, taking = {1}, Taking(journal, lease)
    asyncio.run(script())
    assert len(let_go) == 2


def test_what_could_not_be_let_go_is_tried_again() -> None:
    tries: list[int] = []

    class Lease:
        process_id = 1

    class Journal:
        async def write(self, work: Callable[..., object]) -> None:
            tries.append(len(tries))
            if len(tries) == 1:
                raise StoreUnavailable("away")

    async def script() -> None:
        taking.doubt(1)
        with pytest.raises(StoreUnavailable):
            await taking.make_sure(())
        await taking.make_sure(())
        await taking.make_sure(())

    journal: Any = Journal()
    lease: Any = Lease()
    taking = Taking(journal, lease)
    asyncio.run(script())
    assert len(tries) == 2
