"""Accounts that are refused, or that wait: nobody is given up because of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.providers.campaigns.case import Case, Refusal, Trouble
from tests.providers.campaigns.cases import CASES

REFUSALS = [(case, refusal) for case in CASES for refusal in case.refusals]
TROUBLES = [(case, trouble) for case in CASES for trouble in case.troubles]


@pytest.mark.parametrize(("case", "refusal"), REFUSALS, ids=lambda one: one.name)
def test_one_that_is_refused_is_suspended_with_the_reason(
    case: Case, refusal: Refusal, tmp_path: Path
) -> None:
    async def script(world: Any) -> None:
        world.connect()
        refusal.told(world.fake)
        case.campaign(world)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert refusal.reason in world.account_now().state_reason
        assert world.counts() == {"ready": 5}, "nobody is given up because of the account"

    with case.live(tmp_path) as world:
        world.play(script)
        assert not world.targets(), "nobody was written to"
        if refusal.sends is not None:
            assert len(world.fake.sends()) == refusal.sends


@pytest.mark.parametrize(("case", "trouble"), TROUBLES, ids=lambda one: one.name)
def test_one_that_is_away_is_waited_for(case: Case, trouble: Trouble, tmp_path: Path) -> None:
    """No retry is used up, and nothing is tried meanwhile."""

    async def script(world: Any) -> None:
        world.connect()
        trouble.told(world.fake)
        case.campaign(world)
        process = world.lively()
        await world.until_so(lambda: trouble.met(world.fake))
        await world.until_so(lambda: world.counts() == {"ready": 5})
        await process.stop()
        assert world.account_now().state != "suspended"
        held = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
        assert {one.retries for one in held} == {0}

    with case.live(tmp_path) as world:
        world.play(script)
        assert len(world.fake.sends()) == trouble.sends
        assert not world.targets()
