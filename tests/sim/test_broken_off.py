"""Whatever gets out of a seed is told as a defect of that seed, and the others are played on."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, NoReturn

import pytest

from paceline.engine.leases import ProcessLease
from paceline.engine.station import Station
from paceline.sim import many, simulation
from paceline.sim.checks import CHECKS, Evidence
from paceline.sim.checks.defects import DEFECT
from paceline.sim.many import Report, simulate_many
from paceline.sim.simulation import Verdict, play
from tests.sim.small import CALM


def verdicts(seeds: range = range(1)) -> list[Verdict]:
    return list(simulate_many(seeds, world="campaign", faults="none", workers=1))


def the_defect(verdict: Verdict) -> str:
    (found,) = verdict.violations
    assert found.invariant == DEFECT
    return found.detail


def test_a_judge_that_fails_loses_neither_the_report_nor_the_other_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Evidence] = []

    def amiss(evidence: Evidence) -> Any:
        seen.append(evidence)
        assert len(seen) != 2, "the second\nseed"
        return iter(())

    monkeypatch.setitem(CHECKS, "never twice", amiss)
    first, broken, last = verdicts(range(3))
    assert (first.violations, last.violations) == ((), ())
    told = the_defect(broken)
    assert told.startswith("the world broke off: AssertionError: the second seed")
    assert "sim/checks/__init__.py:" in told and "test_broken_off.py:" in told
    assert (broken.seed, broken.account_days) == (1, 0)
    monkeypatch.undo()
    (whole,) = verdicts(range(1, 2))
    assert (broken.events, broken.digest) == (whole.events, whole.digest), "it had come to its end"
    assert "calls " in "".join(broken.excerpts[0])
    assert set(Report((broken,)).to_mapping()["violations"][0]) == {"seed", "invariant", "detail"}


def test_a_supervisor_that_fails_is_told_with_what_led_to_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and not by every process and keeper that went down with it as well."""

    async def amiss(_: Any) -> NoReturn:
        raise LookupError("no work")

    monkeypatch.setattr(Station, "_find", amiss)
    (broken,) = verdicts()
    told = the_defect(broken)
    assert "LookupError: no work" in told and "engine/station.py:" in told
    assert broken.events > 0 and "process-0  starts" in broken.excerpts[0][0]
    gc.collect()
    assert caplog.text == ""


def test_a_world_that_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def amiss(*_: Any) -> NoReturn:
        raise ValueError("no such account")

    monkeypatch.setattr(simulation, "draw_world", amiss)
    (broken,) = verdicts()
    assert "ValueError: no such account" in the_defect(broken)
    assert (broken.events, broken.excerpts) == (0, ((),))


def test_time_that_stands_still_is_told_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that are looked for without a pause between two looks."""

    async def at_once(self: Station) -> int:
        await asyncio.sleep(0)
        self.nudge()
        return 0

    monkeypatch.setattr(Station, "_poll", at_once)
    (broken,) = verdicts()
    told = the_defect(broken)
    assert "Standstill: time stands still at " in told and "Station._work" in told


def test_renewals_that_fail_for_a_defect_end_as_a_broken_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is logged and tried again, a second later, for as long as the world lasts."""

    async def amiss(_: ProcessLease) -> NoReturn:
        raise KeyError("lease")

    monkeypatch.setattr(ProcessLease, "renew", amiss)
    with many._quiet():
        broken = play(0, CALM, "none")
    assert "never stuck" in {violation.invariant for violation in broken.violations}


def test_an_interrupt_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(many, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verdicts()
