"""Limits are kept when sending, whatever the plan says: a plan is only a wish for when."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from paceline.core.instants import HOUR, Instant
from paceline.engine import planning
from paceline.engine.planning import RunPlan
from paceline.engine.ports import Tx
from paceline.sim.many import _quiet
from paceline.sim.simulation import play
from paceline.sim.worlds import World
from tests.sim.small import CAPPED, CLOSING, SPACED


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with _quiet():
        yield


def _planned(world: World) -> World:
    mailings = tuple(replace(mailing, planned=True) for mailing in world.mailings)
    return replace(world, mailings=mailings, operated=True, calm_us=world.calm_us + HOUR)


@pytest.mark.parametrize("world", [CAPPED, CLOSING, SPACED], ids=["caps", "hours", "spacing"])
def test_a_plan_that_lays_everything_out_at_once_breaks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_run, told = planning.plan_run, []

    def everything_now(tx: Tx, run_id: int, at: Instant) -> RunPlan:
        plan = plan_run(tx, run_id, at)
        rash = {key: slot._replace(at=at) for key, slot in plan.slots.items()}
        told.append(len({slot.at for slot in plan.slots.values()}))
        return replace(plan, slots=rash)

    monkeypatch.setattr(planning, "plan_run", everything_now)
    for seed in range(2):
        assert play(seed, _planned(world), "heavy").violations == ()
    assert all(instants > 5 for instants in told), "the honest plan had spread them out"
