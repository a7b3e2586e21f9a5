"""Accounts that are stopped at the same moment, two of one pool or the same one by two: each gives
back what it has of the pool, and none waits for who waits for it.

The order of events is forced by the database's own locks, as in ``test_races``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import pytest

from paceline.core.states import AccountState, RunState
from paceline.engine import blocking, lane_writes
from paceline.engine.catalogue import Catalogue
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import House
from paceline.engine.pooling import OUT_OF_SERVICE
from paceline.engine.ports import Tx, Work
from paceline.engine.settling import Aftermath
from paceline.providers.registry import Registry
from paceline.store.accounts import Accounts
from tests.store.scene import T0, Scene, settlement, unit
from tests.store.stopping import (
    BOUNCED,
    WAYS,
    D,
    Member,
    Way,
    as_far_as_it_gets,
    found,
    heard_late,
    judged,
    members,
    said,
    settled,
    several,
    strict,
    told,
    told_by,
    undelivered,
    wakes_all,
    when_one_gives_back,
)
from tests.store.test_races import _in_transaction, _until_somebody_waits, pool

__all__ = ["pool", "strict"]


@contextmanager
def _beside(
    scene: Scene, pool: ThreadPoolExecutor, patch: pytest.MonkeyPatch, other: Work[object]
) -> Iterator[None]:
    """Somebody else's transaction, begun when this one is about to give back what it has."""
    others: list[Future[object]] = []

    def meet() -> None:
        others.append(pool.submit(_in_transaction, scene, other))
        as_far_as_it_gets(scene, others[0])

    when_one_gives_back(patch, meet)
    yield
    others[0].result()


@pytest.mark.parametrize("other", [found, told, settled, wakes_all])
@pytest.mark.parametrize("way", WAYS)
def test_two_of_one_pool_are_stopped_at_once(
    postgres_scene: Scene,
    pool: ThreadPoolExecutor,
    strict: pytest.MonkeyPatch,
    way: Way,
    other: Way,
) -> None:
    scene = postgres_scene
    ann, ben = members(scene)
    with _beside(scene, pool, strict, lambda tx: other(tx, ann)), scene.store.write() as tx:
        way(tx, ben)
    with scene.store.read() as tx:
        stopped = [tx.accounts.get(one.id).state in OUT_OF_SERVICE for one in (ann, ben)]
        waiting_with = [tx.deliveries.get(one.waits).account_id for one in (ann, ben)]
        assert tx.audit.recount() == []
    assert stopped == [other is not wakes_all, True]
    assert waiting_with == [ann.id if other is wakes_all else None, None]


def test_a_campaign_is_paused_while_all_of_its_lanes_are_woken(
    postgres_scene: Scene, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no pool, and its lanes are touched all the same."""
    scene, others = postgres_scene, list[Future[object]]()
    _, ben = several(scene, 2, pooled=False)
    run_id, really = ben.run_id, lane_writes.pause_run

    def pause_run(*of: Any) -> bool:
        others.append(pool.submit(_in_transaction, scene, lambda tx: wakes_all(tx, ben)))
        as_far_as_it_gets(scene, others[0])
        return really(*of)

    monkeypatch.setattr(lane_writes, "pause_run", pause_run)
    failed = settlement(ben.flying, run_id, D.FAILED, BOUNCED, parts_done=0)
    after = [(failed, Aftermath(pause_run=run_id, failed=1))]
    with scene.store.write() as tx:
        account = tx.accounts.get(ben.id)
        lane_writes.with_aftermath(tx, unit(ben.lane, settlements=(failed,)), after, account, T0)
    others[0].result()
    with scene.store.read() as tx:
        assert tx.runs.get(run_id).state is RunState.PAUSED


@pytest.mark.parametrize("way", [judged, said, heard_late, undelivered])
def test_whoever_may_stop_an_account_lets_a_group_finish_that_takes_more_lanes(
    postgres_scene: Scene, pool: ThreadPoolExecutor, strict: pytest.MonkeyPatch, way: Way
) -> None:
    """What a process writes together holds its own lanes, and a receipt in it another one: if its
    account may be stopped, that is left to whoever comes by himself."""
    scene = postgres_scene
    ann, ben = members(scene)
    with scene.store.write() as tx:
        tx.path.apply([unit(ben.lane)])
        stopping = pool.submit(_in_transaction, scene, lambda other: way(other, ann))
        _until_somebody_waits(scene, stopping)
        assert told_by(tx, ann.again, in_company=True) == "by itself"
    stopping.result()
    _in_transaction(scene, lambda tx: told(tx, ann.again))
    with scene.store.read() as tx:
        states = [tx.accounts.get(one.id).state for one in (ann, ben)]
    assert states == [AccountState.PAUSED, AccountState.ACTIVE]


def test_receipts_of_others_meet_in_two_groups_where_nobody_is_to_be_stopped(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    """Each process has a unit of a lane of its own, and a receipt for somebody of the same pool."""
    scene, both = postgres_scene, Barrier(2)
    ann, ben, cara, dan = several(scene, 4)

    def group(tx: Tx, lane: Member, receipt: Member) -> None:
        tx.path.apply([unit(lane.lane)])
        both.wait(5)
        assert told_by(tx, receipt, in_company=True) == "resolved"

    pairs = ((ann, cara), (ben, dan))
    groups = [
        pool.submit(_in_transaction, scene, lambda tx, pair=pair: group(tx, *pair))  # type: ignore[misc]
        for pair in pairs
    ]
    for one in groups:
        one.result()


@pytest.mark.parametrize("pooled", [True, False], ids=["pooled", "by itself"])
@pytest.mark.parametrize("other", [told, undelivered])
@pytest.mark.parametrize("way", WAYS)
def test_the_same_account_is_stopped_by_two(
    postgres_scene: Scene,
    pool: ThreadPoolExecutor,
    strict: pytest.MonkeyPatch,
    way: Way,
    other: Way,
    pooled: bool,
) -> None:
    """Both hold its lane before they change its row."""
    scene = postgres_scene
    _, ben = several(scene, 2, pooled=pooled)
    with _beside(scene, pool, strict, lambda tx: other(tx, ben.again)), scene.store.write() as tx:
        way(tx, ben)
    with scene.store.read() as tx:
        assert tx.accounts.get(ben.id).state in OUT_OF_SERVICE
        assert tx.deliveries.get(ben.waits).account_id == (None if pooled else ben.id)
        assert tx.audit.recount() == []


def changed(tx: Tx, one: Member, house: House) -> None:
    wish = accounts.AccountChange(overrides={"timeout": "9s"})
    accounts.change(tx, tx.accounts.get(one.id).name, wish, house, T0)


def held_back(tx: Tx, one: Member, _: House) -> None:
    assert blocking.hold(tx, tx.accounts.get(one.id).name, T0)


@pytest.mark.parametrize("way", [changed, held_back])
def test_whoever_changes_an_account_holds_its_lane_before(
    postgres_scene: Scene,
    pool: ThreadPoolExecutor,
    strict: pytest.MonkeyPatch,
    way: Callable[[Tx, Member, House], None],
) -> None:
    scene, others = postgres_scene, list[Future[object]]()
    (ben,) = several(scene, 1, pooled=False)
    house = House(Registry([]), Catalogue({"preset": {"rate": "1/s"}}))

    for name in ("move", "update"):
        really = getattr(Accounts, name)

        def then_meet(*of: Any, really: Any = really, **more: Any) -> object:
            after = really(*of, **more)
            if not others:
                others.append(pool.submit(_in_transaction, scene, lambda tx: told(tx, ben)))
                as_far_as_it_gets(scene, others[0])
            return after

        strict.setattr(Accounts, name, then_meet)
    with scene.store.write() as tx:
        way(tx, ben, house)
    others[0].result()
    with scene.store.read() as tx:
        assert tx.accounts.get(ben.id).state is AccountState.PAUSED
