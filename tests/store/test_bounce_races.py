"""So many letters come back that their account is paused, in a report that also brings a message:
nobody who is at that account or its pools meanwhile is waited for by who waits for them.

The order of events is forced by the database's own locks, as in ``test_races``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from paceline.core.states import AccountState, DeliveryState
from paceline.engine import bouncing, conversations, muting
from paceline.engine.commands import returns
from paceline.engine.commands.answering import answer_by
from paceline.engine.ports import Inbound, News, Returned, Tx
from tests.store.scene import T0, Scene, intent, settlement
from tests.store.test_hearing_races import WAYS
from tests.store.test_races import _in_transaction, _until_somebody_waits, pool
from tests.store.test_talking import EVA, account_of, write

__all__ = ["pool"]


def letter(scene: Scene, account_id: int) -> str:
    """One that was sent; our own name of it."""
    run_id, lane = scene.run(), scene.lane(account_id)
    number = scene.delivery(run_id, account_id)
    assert scene.intend(lane, intent(number, run_id)).intended
    assert scene.settle(lane, settlement(number, run_id)).settled == (True,)
    with scene.store.read() as tx:
        return f"{tx.settings.get('instance')}-{number}-0"


def follow_up(scene: Scene, *account_ids: int) -> int:
    """One that waits for Eva with the last of the accounts of a pool."""
    run_id = scene.run()
    scene.sql("UPDATE runs SET follow_ups = true WHERE id = :id", id=run_id)
    with scene.store.write() as tx:
        tx.pools.open(run_id, account_ids)
    return scene.delivery(run_id, account_ids[-1], target=EVA)


def choose(tx: Tx, _: int) -> object:
    return answer_by(tx, "ann", "help", WAYS, T0)


def mute(tx: Tx, number: int) -> object:
    return muting.mute_everywhere(tx, number, T0)


@pytest.mark.parametrize("order", [choose, mute])
def test_accounts_and_lanes_come_before_what_is_heard(
    postgres_scene: Scene,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    order: Callable[[Tx, int], object],
) -> None:
    scene = postgres_scene
    number, ann, ben = write(scene, "a"), account_of(scene), scene.account()
    key, waits = letter(scene, ann), follow_up(scene, ann, ben)
    monkeypatch.setattr(bouncing, "bounces_too_many", lambda *_: True)
    really, given = conversations.hear, list[Future[object]]()

    def hear(*told: Any, **more: Any) -> None:
        really(*told, **more)
        given.append(pool.submit(_in_transaction, scene, lambda other: order(other, number)))
        _until_somebody_waits(scene, given[0])

    monkeypatch.setattr(conversations, "hear", hear)
    back = Returned("bounced", "", "gone", T0, "5.1.1", key)
    news: list[News] = [Inbound("b", "+1", "+1", "hi", T0), back]
    with scene.store.write() as tx:
        returns.prepare(tx, news)
        assert returns.take_in(tx, tx.accounts.get(ann), news, T0) == (1, 0, 1)
    given[0].result()
    with scene.store.read() as tx:
        account, talk = tx.accounts.get(ann), tx.conversations.get(number)
    assert account.state is AccountState.PAUSED
    assert account.answering.get("way") == ("help" if order is choose else None)
    assert talk is not None and talk.mode == ("muted" if order is mute else "auto")
    assert scene.state(waits) is (DeliveryState.SKIPPED if order is mute else DeliveryState.READY)
