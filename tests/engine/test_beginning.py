"""A call counts from when it has begun at the latest, though the machine was busy just then."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any

import pytest

from paceline.core.instants import MILLISECOND, MINUTE, SECOND
from paceline.engine.beginning import telling_when_begun
from paceline.engine.calls import Calls
from paceline.providers.sandbox.provider import SandboxDriver
from paceline.sim.loop import VirtualLoop
from tests.engine.scenes import called, gaps, outcomes
from tests.engine.world import World
from tests.engine.worlds import Worlds

Events = list[str]


@coroutine
def a_moment() -> Generator[None, None, None]:
    yield


async def _all_of(call: Coroutine[Any, Any, str], events: Events) -> str:
    return await telling_when_begun(call, lambda: events.append("begun"))


def test_one_that_ends_at_once_has_begun() -> None:
    events: Events = []

    async def call() -> str:
        events.append("called")
        return "answer"

    assert asyncio.run(_all_of(call(), events)) == "answer"
    assert events == ["called", "begun"]


def test_one_that_waits_has_begun_when_it_does() -> None:
    events: Events = []

    async def call() -> str:
        for word in ("written", "read"):
            events.append(word)
            await asyncio.sleep(0)
        return "answer"

    assert asyncio.run(_all_of(call(), events)) == "answer"
    assert events == ["written", "begun", "read"]


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
def test_one_that_fails_has_begun_and_fails(later: bool) -> None:
    events: Events = []

    async def call() -> str:
        if later:
            await asyncio.sleep(0)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(_all_of(call(), events))
    assert events == ["begun"]


def test_one_that_is_called_off_may_clean_up_and_even_answer() -> None:
    events: Events = []

    async def call() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            events.append("called off")
            await asyncio.sleep(0)
        return "all the same"

    async def whole() -> str:
        waiting = asyncio.ensure_future(_all_of(call(), events))
        await asyncio.sleep(0)
        waiting.cancel()
        return await waiting

    assert asyncio.run(whole()) == "all the same"
    assert events == ["begun", "called off"]


def test_one_that_is_thrown_away_is_closed() -> None:
    events: Events = []

    async def call() -> str:
        try:
            await a_moment()
        finally:
            events.append("closed")
        return "never"

    whole = _all_of(call(), events)
    whole.send(None)
    whole.close()
    assert events == ["begun", "closed"]


@pytest.mark.parametrize(
    ("whose", "what"), [(SandboxDriver, "send"), (Calls, "_forbidden")], ids=["later", "sooner"]
)
def test_a_gap_is_kept_from_a_call_that_began_late(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, whose: type[Any], what: str
) -> None:
    """The processor is taken from us between our last look at the clock and the driver's first
    write, every third time, for as long as it likes."""
    act, calls = getattr(whose, what), iter(range(100))

    def begin_late(*about: Any) -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        if next(calls) % 3 == 0:
            loop.now_us += 200 * MILLISECOND
        return act(*about)

    monkeypatch.setattr(whose, what, begin_late)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="50ms")
        world.campaign(12)
        process = world.process()
        await world.until_finished(within_us=MINUTE)
        await process.stop()
        assert min(gaps(called(world))) >= SECOND
        assert len(outcomes(world)) == 12
        assert [row.started_at for row in outcomes(world)] == called(world)

    worlds.fresh().play(script)
