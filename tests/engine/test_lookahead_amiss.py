"""Looking ahead when something is amiss: a call that was begun where nobody waits for it lands all
the same, whatever its driver or we ourselves do wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.instants import HOUR
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.calls import Calls
from paceline.engine.deadline import Deadline
from paceline.engine.lookahead import Lookahead
from paceline.engine.ports import Message
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
