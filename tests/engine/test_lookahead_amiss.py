"""Looking ahead when something is amiss: a call that was begun where nobody waits for it lands all
the same, whatever its driver or we ourselves do wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.calls import Calls
from paceline.engine.deadline import Deadline
from paceline.engine.lookahead import Lookahead
from paceline.engine.ports import Message
from tests.engine.doubles import Watcher
from tests.engine.test_lookahead import QUICKLY, YES, Call, Server, answering, play
from tests.engine.world import World
from tests.engine.worlds import Worlds


@pytest.mark.parametrize("error", [RuntimeError("a defect"), asyncio.CancelledError()])
def test_a_driver_that_raises_where_nobody_waits_leaves_a_doubt(
    worlds: Worlds, error: BaseException
) -> None:
    def at_call(world: World, number: int) -> None:
        if number == 3:
            raise error

    world, _, _, said = play(worlds, answering(then=QUICKLY), at_call=at_call)
    assert world.counts_at_end == {"sent": 5, "unknown": 1}
    (doubt,) = [row for row in said if row.outcome == "unknown"]
    assert doubt.reason.startswith("driver failed")


def _cancelled_as_an_error(call: Call) -> None:
    call.get_loop().call_later(0.005, call.set_exception, asyncio.CancelledError())


@pytest.mark.parametrize("instead", [_cancelled_as_an_error, None], ids=["an error", "no call"])
def test_a_driver_that_answers_with_anything_else_leaves_a_doubt(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, instead: Callable[[Call], None] | None
) -> None:
    """A cancellation handed on as an error, or no call at all: nobody waits here who would see."""
    begin = Server._begin

    def oddly(self: Server, message: Message) -> Any:
        call = begin(self, message)
        if len(self.calls) != 3:
            return call
        if instead is not None:
            instead(call)
            return call
        call.cancel()
        return object()

    monkeypatch.setattr(Server, "_begin", oddly)
    answers = answering(QUICKLY, QUICKLY, (HOUR, YES), then=QUICKLY)
    world, _, _, said = play(worlds, answers)
    assert world.counts_at_end == {"sent": 5, "unknown": 1}
    (doubt,) = [row for row in said if row.outcome == "unknown"]
    assert doubt.reason.startswith("driver failed")


@pytest.mark.parametrize(
    ("broken", "name"), [(Calls, "set_off"), (Calls, "came_to"), (Deadline, "watch")]
)
def test_a_defect_of_our_own_where_nobody_waits_leaves_a_doubt(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, broken: Any, name: str
) -> None:
    works, calls = getattr(broken, name), []

    def breaking(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise RuntimeError("a defect")
        return works(*arguments)

    monkeypatch.setattr(broken, name, breaking)
    world, _, _, said = play(worlds, answering(then=QUICKLY))
    assert len(calls) > 2
    assert world.counts_at_end == {"sent": 5, "unknown": 1}
    (doubt,) = [row for row in said if row.outcome == "unknown"]
    assert doubt.reason == "driver failed: RuntimeError: a defect"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_what_ends_the_process_ends_it_from_there_as_well(
    error: BaseException,
) -> None:
    landed: list[Outcome] = []

    class Calls:
        dropped = False

        def set_off(self, *_: Any) -> Any:
            raise error

        def lost(self, flight: Any, message: Any, error: BaseException) -> Outcome:
            return Outcome(OutcomeKind.UNKNOWN, repr(error))

    looking = Lookahead(
        Any, Any, Calls(), land=lambda _, outcome: landed.append(outcome), beside=Any
    )  # type: ignore[arg-type]
    looking._out = flight = Any  # type: ignore[assignment]
    with pytest.raises(type(error)):
        looking._begin(flight, Any)  # type: ignore[arg-type]
    assert [outcome.reason for outcome in landed] == [repr(error)]


def test_a_lane_whose_call_never_lands_is_stuck_though_it_only_waits(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is long over, and whoever was to hear of that has not. It is begun anew as any lane
    that does not go on, and leaves the call in doubt."""
    answered, heard = Lookahead._answered, []

    def not_heard(self: Lookahead, *arguments: Any) -> None:
        heard.append(arguments)
        if len(heard) != 2:
            answered(self, *arguments)

    monkeypatch.setattr(Lookahead, "_answered", not_heard)

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        server = Server(world, answering(then=QUICKLY))
        process = world.process(providers=server.registry())
        await world.until(lambda: world.counts().get("unknown") == 1, 10 * MINUTE, SECOND)
        await world.until_finished(within_us=MINUTE, every_us=SECOND)
        await process.stop()
        assert len(set(server.whom())) == len(server.whom()) == 6, "none twice"

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)
    assert world.counts_at_end == {"sent": 5, "unknown": 1}


def test_a_call_that_takes_its_time_is_not_stuck(worlds: Worlds) -> None:
    watcher, seen = Watcher(), []

    async def script(world: World) -> None:
        world.account(policy={"timeout": "20m"}, finds=False)
        world.campaign(4)
        server = Server(world, answering(QUICKLY, QUICKLY, (19 * MINUTE, YES), then=QUICKLY))
        process = world.process(providers=server.registry(), observer=watcher)
        await world.until(lambda: len(server.calls) == 3)
        await world.wait(10 * MINUTE)
        (running,) = process.supervisor._running.values()
        seen.append(running.lane.busy_us(world.clock.monotonic_us()))
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)
    assert world.counts_at_end == {"sent": 4} and not watcher.crashes
    assert 9 * MINUTE < seen[0] < 11 * MINUTE, "though it is seen how long it takes"
