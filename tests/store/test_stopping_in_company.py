"""Whose lanes are held, and how often: where a doubt ends well in one transaction with what others
write, and where an account is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.core.states import AccountState, RunState
from paceline.store.lanes import Lanes
from tests.store.scene import T0, Scene, unit
from tests.store.stopping import (
    WAYS,
    D,
    Way,
    found_by,
    heard_late_by,
    members,
    paused,
    several,
    strict,
    told_by,
)
from tests.store.test_races import _in_transaction, pool

__all__ = ["pool", "strict"]

UNDER_WAY = (RunState.WAITING, RunState.RUNNING, RunState.PAUSED)


@pytest.mark.parametrize("ends", [found_by, told_by, heard_late_by])
def test_a_doubt_that_ends_well_in_company_holds_no_lane_but_its_own(
    postgres_scene: Scene, pool: ThreadPoolExecutor, ends: Callable[..., object]
) -> None:
    scene = postgres_scene
    ann, ben = members(scene)
    with scene.store.write() as tx:
        assert ends(tx, ann, in_company=True) in ("written", "resolved", True)
        pool.submit(scene.apply, unit(ben.lane)).result(timeout=30)


@pytest.mark.parametrize("ends", [found_by, told_by, heard_late_by])
def test_in_company_nothing_is_written_that_would_have_to_give_something_back(
    scene: Scene, strict: pytest.MonkeyPatch, ends: Callable[..., object]
) -> None:
    ann, _ = members(scene)
    before = scene.ledger(ann.lost)
    with scene.store.write() as tx:
        assert ends(tx, ann, in_company=True) in ("by itself", False)
    assert (scene.ledger(ann.lost), scene.state(ann.lost)) == (before, D.UNKNOWN)
    with scene.store.read() as tx:
        assert tx.accounts.get(ann.id).state is AccountState.ACTIVE


@pytest.mark.parametrize("ends", [found_by, told_by, heard_late_by])
def test_in_company_an_account_without_a_pool_is_stopped_at_once(
    scene: Scene, strict: pytest.MonkeyPatch, ends: Callable[..., object]
) -> None:
    (ann,) = several(scene, 1, pooled=False)
    with scene.store.write() as tx:
        assert ends(tx, ann, in_company=True) in ("written", "resolved", True)
    with scene.store.read() as tx:
        assert tx.accounts.get(ann.id).state is AccountState.PAUSED


@pytest.mark.parametrize("state", [one for one in RunState if one not in UNDER_WAY])
def test_nobody_waits_for_the_sake_of_a_pool_that_is_over(
    postgres_scene: Scene, pool: ThreadPoolExecutor, state: RunState
) -> None:
    scene = postgres_scene
    former = scene.run()
    ann, ben = several(scene, 2, pooled=False)
    with scene.store.write() as tx:
        tx.pools.open(former, [ann.id, ben.id])
    scene.sql("UPDATE runs SET state = :state WHERE id = :id", state=state.value, id=former)
    with scene.store.write() as tx:
        assert tx.pools.of_account(ann.id) == []
        paused(tx, ann)
        touched = pool.submit(_in_transaction, scene, lambda other: other.lanes.touch(ben.id, T0))
        touched.result(timeout=30)


@pytest.mark.parametrize("way", WAYS)
def test_lanes_are_held_once(scene: Scene, strict: pytest.MonkeyPatch, way: Way) -> None:
    held, hold = list[int](), Lanes.hold

    def counted(self: Lanes, account_id: int, run_ids: Iterable[int] = ()) -> None:
        held.append(account_id)
        hold(self, account_id, run_ids)

    strict.setattr(Lanes, "hold", counted)
    _, ben = members(scene)
    with scene.store.write() as tx:
        way(tx, ben)
    assert held == [ben.id]
