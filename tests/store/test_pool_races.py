"""Accounts of one pool that are stopped at the same moment, each for what has become of a message
of its own: each gives back what it has of the pool, and none waits for who waits for it.

The order of events is forced by the database's own locks, as in ``test_races``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from paceline.core import outcome as outcomes
from paceline.core import usage as usages
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import AccountState, DeliveryState, RunState
from paceline.engine import bouncing, lane_writes, recovery
from paceline.engine.commands import accounts, returns, standing
from paceline.engine.commands.acknowledging import note
from paceline.engine.commands.control import resolve_unknown
from paceline.engine.doubts import record_presence
from paceline.engine.pooling import OUT_OF_SERVICE
from paceline.engine.ports import AccountNews, Receipt, Returned, Tx
from paceline.engine.settling import Aftermath, Settled
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit
from tests.store.test_races import WAITING, _in_transaction, _until_somebody_waits, pool

__all__ = ["pool"]

D = DeliveryState
BOUNCED = Outcome(OutcomeKind.BOUNCED, reason="nobody there")


@dataclass(frozen=True)
class Member:
    """An account of the pool, with a message in every stage."""

    lane: Lane
    run_id: int
    lost: int
    sent: int
    flying: int
    refused: int
    """One that cannot be prepared."""
    waits: int

    @property
    def id(self) -> int:
        return self.lane.account_id


def members(scene: Scene) -> tuple[Member, Member]:
    run_id, numbers = scene.run(), [scene.account(), scene.account()]
    with scene.store.write() as tx:
        tx.pools.open(run_id, numbers)
    ann, ben = (_member(scene, run_id, number) for number in numbers)
    return ann, ben


def _member(scene: Scene, run_id: int, account_id: int) -> Member:
    lane = scene.lane(account_id)
    numbers = [scene.delivery(run_id, account_id) for _ in range(5)]
    for number in numbers[:3]:
        assert scene.intend(lane, intent(number, run_id)).intended
    lost, sent, *_ = numbers
    loss = settlement(lost, run_id, D.UNKNOWN, outcomes.unknown("?"), parts_done=0)
    assert scene.settle(lane, loss, settlement(sent, run_id)).settled == (True, True)
    return Member(lane, run_id, *numbers)


# What may stop an account, each as whoever does it in a transaction of its own.


def found(tx: Tx, one: Member) -> None:
    """By its lane, which has asked the provider."""
    doubt = tx.deliveries.get(one.lost)
    arrived = partial(record_presence, delivery=doubt, provider_id=None, whole=True, now=T0)
    assert recovery.end_doubt(tx, one.lane.lease, doubt, arrived, judges=True)


def told(tx: Tx, one: Member) -> None:
    key = f"{tx.settings.get('instance')}-{one.lost}-0"
    receipt = Receipt("x", "delivered", T0, key=key)
    assert note(tx, tx.accounts.get(one.id), receipt, T0).taken == "resolved"


def said(tx: Tx, one: Member) -> None:
    assert resolve_unknown(tx, one.lost, "sent", T0).state is D.SENT


def heard_late(tx: Tx, one: Member) -> None:
    lane_writes.tell_owner(tx, one.id, [settlement(one.lost, one.run_id)], T0)


def undelivered(tx: Tx, one: Member) -> None:
    key = f"{tx.settings.get('instance')}-{one.sent}-0"
    receipt = Receipt("x", "failed", T0, key=key)
    assert note(tx, tx.accounts.get(one.id), receipt, T0).taken == "resolved"


def settled(tx: Tx, one: Member) -> None:
    bounce = settlement(one.flying, one.run_id, D.BOUNCED, BOUNCED, parts_done=0)
    after = [(bounce, Aftermath(counts_bounces=True))]
    account = tx.accounts.get(one.id)
    lane_writes.with_aftermath(tx, unit(one.lane, settlements=(bounce,)), after, account, T0)


def refused(tx: Tx, one: Member) -> None:
    """Before it was sent, while its file was uploaded."""
    failed = settlement(one.refused, one.run_id, D.FAILED, BOUNCED, parts_done=0)
    after = Settled(failed, usages.Usage(), Aftermath(account_event="pause"))
    lane_writes.abandon(tx, unit(one.lane), after, tx.accounts.get(one.id), T0)


def judged(tx: Tx, one: Member) -> None:
    lane_writes.judge(tx, tx.accounts.get(one.id), T0)


def paused(tx: Tx, one: Member) -> None:
    accounts.pause(tx, tx.accounts.get(one.id).name, T0)


def came_back(tx: Tx, one: Member) -> None:
    key = f"{tx.settings.get('instance')}-{one.sent}-0"
    news = [Returned("failed", "", "gone", T0, "4.4.7", key)]
    returns.prepare(tx, news)
    assert returns.take_in(tx, tx.accounts.get(one.id), news, T0).bounced == 1


def reported(tx: Tx, one: Member) -> None:
    news = AccountNews("refused", "banned", T0)
    returns.prepare(tx, [news])
    assert standing.stands(tx, tx.accounts.get(one.id), news, T0) is AccountState.SUSPENDED


Way = Callable[[Tx, Member], None]
WAYS: list[Way] = [
    *(found, told, said, heard_late, undelivered, settled, refused, judged),
    *(paused, came_back, reported),
]


def wakes_all(tx: Tx, one: Member) -> None:
    """Whoever changes the run wakes all of its lanes, in their order and with no fence."""
    tx.lanes.touch_run(one.run_id, T0)


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Whatever is judged is too much."""
    for rule in ("any_came_back", "enough_to_judge", "bounces_too_many"):
        monkeypatch.setattr(bouncing, rule, lambda *_: True)
    return monkeypatch


def _as_far_as_it_gets(scene: Scene, pending: Future[object]) -> None:
    while not pending.done() and scene.sql(WAITING)[0][0] == 0:
        pass


def _when_one_gives_back(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do this when the first of them is about to touch the lanes of its pools."""
    really, acted = bouncing.give_back, list[bool]()

    def give_back(*of: Any) -> None:
        if not acted:
            acted.append(True)
            act()
        really(*of)

    for module in (bouncing, lane_writes, accounts, standing):
        patch.setattr(module, "give_back", give_back)


@pytest.mark.parametrize("other", [found, told, settled, wakes_all])
@pytest.mark.parametrize("way", WAYS)
def test_two_of_one_pool_are_stopped_at_once(
    postgres_scene: Scene,
    pool: ThreadPoolExecutor,
    strict: pytest.MonkeyPatch,
    way: Way,
    other: Way,
) -> None:
    scene, others = postgres_scene, list[Future[object]]()
    ann, ben = members(scene)

    def meet() -> None:
        others.append(pool.submit(_in_transaction, scene, lambda tx: other(tx, ann)))
        _as_far_as_it_gets(scene, others[0])

    _when_one_gives_back(strict, meet)
    with scene.store.write() as tx:
        way(tx, ben)
    others[0].result()
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
    run_id, really = scene.run(), lane_writes.pause_run
    _, ben = (_member(scene, run_id, scene.account()) for _ in range(2))

    def pause_run(*of: Any) -> bool:
        others.append(pool.submit(_in_transaction, scene, lambda tx: wakes_all(tx, ben)))
        _as_far_as_it_gets(scene, others[0])
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


def test_a_judgement_of_its_own_lets_a_group_finish_that_takes_more_lanes(
    postgres_scene: Scene, pool: ThreadPoolExecutor, strict: pytest.MonkeyPatch
) -> None:
    """What a process writes together holds its own lanes, and a receipt in it those of a pool."""
    scene = postgres_scene
    ann, ben = members(scene)
    with scene.store.write() as tx:
        tx.path.apply([unit(ben.lane)])
        judging = pool.submit(_in_transaction, scene, lambda other: judged(other, ann))
        _until_somebody_waits(scene, judging)
        told(tx, ben)
    judging.result()
    with scene.store.read() as tx:
        states = {tx.accounts.get(one.id).state for one in (ann, ben)}
    assert states == {AccountState.PAUSED}
