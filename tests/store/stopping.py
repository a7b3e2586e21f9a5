"""Accounts with a message in every stage, and all that may stop one, each as whoever does it in a
transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from paceline.core import outcome as outcomes
from paceline.core import usage as usages
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import AccountState, DeliveryState
from paceline.engine import bouncing, crashes, lane_writes, late, pooling, recovery
from paceline.engine.commands import accounts, returns, standing
from paceline.engine.commands.acknowledging import note
from paceline.engine.commands.control import resolve_unknown
from paceline.engine.pooling import hold_to_stop
from paceline.engine.ports import AccountNews, Receipt, Returned, Tx
from paceline.engine.settling import NO_AFTERMATH, Aftermath, Settled
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit
from tests.store.test_races import WAITING

D = DeliveryState
BOUNCED = Outcome(OutcomeKind.BOUNCED, reason="nobody there")


@dataclass(frozen=True)
class Member:
    """An account of the pool, with a message in every stage."""

    lane: Lane
    run_id: int
    lost: int
    sent: int
    lost_too: int
    sent_too: int
    flying: int
    refused: int
    """One that cannot be prepared."""
    waits: int

    @property
    def id(self) -> int:
        return self.lane.account_id

    @property
    def again(self) -> Member:
        """The same account, with other messages of its own."""
        return replace(self, lost=self.lost_too, sent=self.sent_too)


def members(scene: Scene) -> tuple[Member, Member]:
    ann, ben = several(scene, 2)
    return ann, ben


def several(scene: Scene, count: int, *, pooled: bool = True) -> list[Member]:
    run_id, numbers = scene.run(), [scene.account() for _ in range(count)]
    if pooled:
        with scene.store.write() as tx:
            tx.pools.open(run_id, numbers)
    return [_member(scene, run_id, number) for number in numbers]


def _member(scene: Scene, run_id: int, account_id: int) -> Member:
    lane = scene.lane(account_id)
    numbers = [scene.delivery(run_id, account_id) for _ in range(7)]
    for number in numbers[:5]:
        assert scene.intend(lane, intent(number, run_id)).intended
    for lost, sent in (numbers[:2], numbers[2:4]):
        loss = settlement(lost, run_id, D.UNKNOWN, outcomes.unknown("?"), parts_done=0)
        assert scene.settle(lane, loss, settlement(sent, run_id)).settled == (True, True)
    return Member(lane, run_id, *numbers)


# What may stop an account, each as whoever does it in a transaction of its own.


def found(tx: Tx, one: Member) -> None:
    """By its lane, which has asked the provider."""
    assert found_by(tx, one) == "written"


def found_by(tx: Tx, one: Member, *, in_company: bool = False) -> str:
    doubt, lease = tx.deliveries.get(one.lost), one.lane.lease
    return recovery.end_well(tx, lease, doubt, None, whole=True, now=T0, in_company=in_company)


def told(tx: Tx, one: Member) -> None:
    assert told_by(tx, one) == "resolved"


def told_by(tx: Tx, one: Member, *, in_company: bool = False) -> str:
    key = f"{tx.settings.get('instance')}-{one.lost}-0"
    receipt, account = Receipt("x", "delivered", T0, key=key), tx.accounts.get(one.id)
    if not in_company:
        returns.hold(tx, account, [receipt])
    return note(tx, account, receipt, T0, in_company=in_company).taken


def said(tx: Tx, one: Member) -> None:
    assert resolve_unknown(tx, one.lost, "sent", T0).state is D.SENT


def heard_late(tx: Tx, one: Member) -> None:
    hold_to_stop(tx, one.id)
    assert heard_late_by(tx, one)


def heard_late_by(tx: Tx, one: Member, *, in_company: bool = False) -> bool:
    answers = [settlement(one.lost, one.run_id)]
    return lane_writes.tell_owner(tx, one.id, answers, T0, in_company=in_company)


def answered_late(tx: Tx, one: Member) -> None:
    """By a call that was given up."""
    flight = SimpleNamespace(delivery=tx.deliveries.get(one.lost))
    account = tx.accounts.get(one.id)
    call = SimpleNamespace(lease=one.lane.lease, account=account, flight=flight)
    settled = Settled(settlement(one.lost, one.run_id), usages.Usage(), NO_AFTERMATH)
    late._write_answer(tx, cast("late.LateCall", call), settled, T0)


def undelivered(tx: Tx, one: Member) -> None:
    key = f"{tx.settings.get('instance')}-{one.sent}-0"
    receipt, account = Receipt("x", "failed", T0, key=key), tx.accounts.get(one.id)
    returns.hold(tx, account, [receipt])
    assert note(tx, account, receipt, T0).taken == "resolved"


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
    account = tx.accounts.get(one.id)
    returns.hold(tx, account, news)
    assert returns.take_in(tx, account, news, T0).bounced == 1


def reported(tx: Tx, one: Member) -> None:
    news = AccountNews("refused", "banned", T0)
    returns.prepare(tx, [news])
    account = tx.accounts.get(one.id)
    returns.hold(tx, account, [news])
    assert standing.stands(tx, account, news, T0) is AccountState.SUSPENDED


def crashed(tx: Tx, one: Member) -> None:
    crashes.suspend(tx, one.lane.lease, tx.accounts.get(one.id), "it crashes", T0)


Way = Callable[[Tx, Member], None]
WAYS: list[Way] = [
    *(found, told, said, heard_late, answered_late),
    *(undelivered, settled, refused, judged),
    *(paused, came_back, reported, crashed),
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


def as_far_as_it_gets(scene: Scene, pending: Future[object]) -> None:
    while not pending.done() and scene.sql(WAITING)[0][0] == 0:
        pass


def when_one_gives_back(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do this when the first of them is about to touch the lanes of its pools."""
    really, acted = pooling.give_back, list[bool]()

    def give_back(*of: Any) -> None:
        if not acted:
            acted.append(True)
            act()
        really(*of)

    for module in (bouncing, lane_writes, accounts, standing, crashes):
        patch.setattr(module, "give_back", give_back)
