"""Lanes that crashed, and how the error that they crashed of is told."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from paceline.core.instants import SECOND
from paceline.engine.clock import LoopClock
from paceline.engine.crashes import LaneFailed
from paceline.sim.checks.defects import DEFECT, crashed
from paceline.sim.defects import LONGEST, in_words
from paceline.sim.loop import run_virtual
from paceline.sim.trace import Trace
from paceline.sim.witness import Defect, Witness
from tests.sim.evidence import NOON, broken, call, evidence

GONE = "KeyError: 1 (engine/lane.py:1 run)"


def defect(after_us: int = 0, account: str = "lane-0", error: str = GONE) -> Defect:
    return Defect(NOON + after_us, "process-0", account, error)


def test_a_lane_that_crashed() -> None:
    given = evidence(call(1), defects=[defect()])
    assert broken(given) == {DEFECT}
    (found,) = crashed(given)
    assert found.detail == f"the lane of lane-0 in process-0 crashed: {GONE}"
    assert (found.at, found.concerns) == (NOON, ("lane-0",))
    assert broken(evidence(call(1))) == set()


def test_crashes_of_the_same_are_told_together() -> None:
    other = "ValueError: no"
    many = [defect(), defect(SECOND, "lane-1"), defect(2 * SECOND, error=other), defect(3 * SECOND)]
    assert [found.detail for found in crashed(evidence(defects=many))] == [
        f"lanes crashed 3 times, first the lane of lane-0 in process-0: {GONE}",
        f"the lane of lane-0 in process-0 crashed: {other}",
    ]


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_an_error_is_told_with_the_places_that_led_to_it() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        told = in_words(error)
    assert told.startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert "json/decoder.py:" in told and told.endswith(" raw_decode)")
    assert in_words(ValueError("never raised")) == "ValueError: never raised"


def test_what_a_lane_failed_of_is_told_and_not_that_it_did() -> None:
    cause = raised(KeyError("deep"))
    told = in_words(raised(LaneFailed(cause), cause))
    assert told.startswith("KeyError: 'deep' (sim/test_checks_defects.py:")


def test_a_long_story_is_cut_and_a_broken_line_is_whole() -> None:
    assert in_words(ValueError("one\n  two")) == "ValueError: one two"
    assert len(in_words(ValueError("x" * 5_000))) == LONGEST + 1


def test_what_befalls_a_lane_of_a_dead_process_befalls_nobody() -> None:
    witness = Witness(LoopClock(NOON), Any, Trace(lambda: NOON))  # type: ignore[arg-type]
    process: Any = SimpleNamespace(name="process-0", alive=True)

    async def story() -> None:
        witness.see_defect(process, "lane-0", ValueError("alive"))
        witness.see_defect(process, "lane-0", asyncio.CancelledError())
        process.alive = False
        witness.see_defect(process, "lane-0", ValueError("dead"))

    run_virtual(story())
    assert [one.error for one in witness.defects] == ["ValueError: alive", "it was stuck"]
