"""One row that somebody holds: its lane waits or fails, and nobody else notices.

The order of events is forced by the database's own locks, as in ``test_races``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from paceline.core.errors import RowBusy, StoreBusy
from paceline.core.instants import HOUR, MILLISECOND, SECOND
from paceline.core.states import DeliveryState
from paceline.engine import parking
from paceline.engine.clock import SystemClock
from paceline.engine.committing import REPLAY_US
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.leases import LEASE_US, RENEW_EVERY_US
from paceline.engine.parking import Rest
from paceline.engine.ports import LaneResult, LaneUnit, Tx
from paceline.engine.taking import let_go, take
from paceline.store.database import open_store
from tests.store.scene import T0, Lane, Scene, intent, unit
from tests.store.test_races import _in_transaction, _until_somebody_waits, pool

__all__ = ["pool"]

UNKNOWN_ID = 999_999


@contextmanager
def held(scene: Scene, account_id: int) -> Iterator[None]:
    """Somebody else's transaction, which has the row of this lane and does not end."""
    engine = create_engine(scene.url)
    with engine.connect() as connection, connection.begin():
        connection.execute(
            text("SELECT 1 FROM lanes WHERE account_id = :id FOR UPDATE"), {"id": account_id}
        )
        yield
    engine.dispose()


class Impatient:
    """The same store with a short first wait, so that the test need not take the whole of it."""

    def __init__(self, scene: Scene) -> None:
        self._store = scene.store

    @contextmanager
    def write(self) -> Iterator[Any]:
        with self._store.write() as tx:
            context: Any = tx
            context._context.cursor().execute("SET LOCAL lock_timeout = '200ms'")
            yield tx


def journal_of(store: Any) -> GroupJournal:
    return GroupJournal(store, SystemClock(), writer=InlineRunner(), reader=InlineRunner())


def ready_lanes(scene: Scene, count: int) -> tuple[list[Lane], dict[Lane, int], int]:
    run_id, process_id = scene.run(), scene.process()
    lanes = [scene.lane(scene.account(), process_id) for _ in range(count)]
    return lanes, {lane: scene.delivery(run_id, lane.account_id) for lane in lanes}, run_id


# ---------------------------------------------------------------------- groups


def test_a_lane_that_somebody_holds_does_not_fail_its_neighbours(postgres_scene: Scene) -> None:
    scene = postgres_scene
    lanes, deliveries, run_id = ready_lanes(scene, 12)
    stuck = lanes[5]

    async def script() -> list[Any]:
        journal = journal_of(Impatient(scene))
        units = [unit(lane, intent(deliveries[lane], run_id)) for lane in lanes]
        return await asyncio.gather(*map(journal.submit, units), return_exceptions=True)

    with held(scene, stuck.account_id):
        answers = asyncio.run(script())
    assert isinstance(answers.pop(5), RowBusy)
    assert all(isinstance(answer, LaneResult) and answer.intended for answer in answers)
    assert scene.counts(run_id) == {"ready": 1, "sending": 11}
    assert scene.state(deliveries[stuck]) is DeliveryState.READY
    assert scene.ledger(deliveries[stuck]) == []
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_a_lease_is_renewed_whoever_holds_the_lanes(postgres_scene: Scene) -> None:
    scene = postgres_scene
    (lane,), _, _ = ready_lanes(scene, 1)
    with held(scene, lane.account_id), scene.store.write() as tx:
        tx.hurry()
        assert tx.processes.renew(lane.lease.process_id, HOUR) == tx.now + HOUR


def test_a_group_that_waits_leaves_time_to_renew_the_lease(postgres_scene: Scene) -> None:
    with postgres_scene.store.read() as tx:
        context: Any = tx
        cursor = context._context.cursor()
        said = cursor.execute("SELECT setting FROM pg_settings WHERE name = 'lock_timeout'")
        lock_us = int(said.fetchone()[0]) * MILLISECOND
    assert lock_us + REPLAY_US + SECOND < LEASE_US - RENEW_EVERY_US


def test_who_is_in_a_hurry_waits_a_moment_only_and_the_next_is_not(postgres_scene: Scene) -> None:
    scene = postgres_scene
    account_id = scene.account()
    with held(scene, account_id), pytest.raises(RowBusy), scene.store.write() as tx:
        tx.hurry()
        tx.lanes.touch(account_id, T0)
    with scene.store.write() as tx:
        context: Any = tx
        shown = context._context.cursor().execute("SHOW lock_timeout").fetchone()[0]
    assert shown == "5s"


def test_a_file_that_somebody_holds_is_the_same_for_all(sqlite_scene: Scene) -> None:
    scene = sqlite_scene
    other = open_store(scene.url, clock=scene.clock, busy_timeout_us=20 * MILLISECOND)
    tries: list[int] = []

    async def script() -> list[Any]:
        journal = journal_of(other)
        works = [lambda tx, n=n: tries.append(n) for n in range(5)]
        return await asyncio.gather(*map(journal.write, works), return_exceptions=True)

    with scene.store.write():
        answers = asyncio.run(script())
    other.close()
    assert [type(answer) for answer in answers] == [StoreBusy] * 5
    assert tries == []


# ---------------------------------------------------------------------- taking lanes


def test_many_are_taken_as_each_would_be(scene: Scene) -> None:
    ours, theirs, dead = scene.process(), scene.process(), scene.process()
    free, touched, orphan, taken, mine = (scene.account() for _ in range(5))
    for account_id, owner in ((orphan, dead), (taken, theirs), (mine, ours)):
        scene.lane(account_id, owner)
    scene.expire(dead)
    wanted = [mine, taken, orphan, UNKNOWN_ID, touched, free]
    with scene.store.write() as tx:
        tx.lanes.touch(touched, T0)
        rows = tx.lanes.take_free(wanted, ours)
        assert [row.account_id for row in rows] == sorted([free, touched, orphan])
        assert [row.generation for row in rows] == [1, 1, 2]
        assert {(row.owner, row.wake_at) for row in rows} == {(ours, None)}
        assert rows == [tx.lanes.get(row.account_id) for row in rows]
        assert tx.lanes.get(taken).owner == theirs
        assert tx.lanes.take_free(wanted, ours) == []
        assert tx.lanes.take_free([], ours) == []


def test_a_process_nobody_knows_takes_none_of_many(scene: Scene) -> None:
    account_id = scene.account()
    with scene.store.write() as tx:
        assert tx.lanes.take_free([account_id], UNKNOWN_ID) == []
        assert tx.lanes.get(account_id).generation == 0


def test_what_was_taken_comes_with_its_account(scene: Scene) -> None:
    process_id, accounts = scene.process(), [scene.account() for _ in range(5)]
    with scene.store.write() as tx:
        assert tx.accounts.several([]) == {}
        assert tx.accounts.several([accounts[1], UNKNOWN_ID]) == {
            accounts[1]: tx.accounts.get(accounts[1])
        }
        taken = take(tx, accounts, process_id)
        assert [row.account_id for row, _ in taken] == accounts
        assert [account for _, account in taken] == [tx.accounts.get(a) for a in accounts]


def test_a_lane_that_somebody_holds_is_left_for_another_time(postgres_scene: Scene) -> None:
    scene = postgres_scene
    process_id, accounts = scene.process(), [scene.account() for _ in range(5)]
    others = [account_id for account_id in accounts if account_id != accounts[2]]
    with held(scene, accounts[2]), scene.store.write() as tx:
        assert [row.account_id for row, _ in take(tx, accounts, process_id)] == others
    with scene.store.write() as tx:
        assert [row.account_id for row, _ in take(tx, accounts, process_id)] == [accounts[2]]


def test_two_who_take_at_once_share_without_waiting(postgres_scene: Scene) -> None:
    scene = postgres_scene
    first, second = scene.process(), scene.process()
    accounts = [scene.account() for _ in range(6)]
    with scene.store.write() as one, scene.store.write() as two:
        mine = take(one, accounts[:4], first)
        theirs = take(two, accounts, second)
    assert [row.account_id for row, _ in mine] == accounts[:4]
    assert [row.account_id for row, _ in theirs] == accounts[4:]


def test_an_intent_under_way_keeps_its_lane_from_being_taken(postgres_scene: Scene) -> None:
    scene = postgres_scene
    (lane,), deliveries, run_id = ready_lanes(scene, 1)
    successor = scene.process()
    with scene.store.write() as tx:
        (result,) = tx.path.apply([unit(lane, intent(deliveries[lane], run_id))])
        assert result.intended
        scene.expire(lane.lease.process_id)
        with scene.store.write() as other:
            assert other.lanes.take_free([lane.account_id], successor) == []
    with scene.store.write() as tx:
        assert len(tx.lanes.take_free([lane.account_id], successor)) == 1
        assert [d.id for d, _ in tx.path.stranded(lane.account_id)] == [deliveries[lane]]


# ---------------------------------------------------------------------- giving lanes back


def _while_open(
    scene: Scene,
    pool: ThreadPoolExecutor,
    before: Callable[[Tx], object],
    after: Callable[[Tx], object],
) -> object:
    """What ``after`` answers if it comes while ``before`` is done but not yet committed."""
    with scene.store.write() as tx:
        before(tx)
        late: Future[object] = pool.submit(_in_transaction, scene, after)
        _until_somebody_waits(scene, late)
    return late.result()


def _park(tx: Tx, lane: Lane) -> bool:
    account = tx.accounts.get(lane.account_id)
    rest = Rest(None, account, None, renews=False)
    told = LaneUnit(lane.lease, lane.revision)
    (result,) = tx.path.apply([told])
    return parking.park(tx, result, told, rest).parked


def test_a_lane_is_not_parked_on_an_intent_that_is_still_being_committed(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    scene = postgres_scene
    (lane,), deliveries, run_id = ready_lanes(scene, 1)
    wish = unit(lane, intent(deliveries[lane], run_id))
    parked = _while_open(scene, pool, lambda tx: tx.path.apply([wish]), lambda tx: _park(tx, lane))
    assert parked is False
    with scene.store.read() as tx:
        assert tx.lanes.get(lane.account_id).owner == lane.lease.process_id


def test_a_lane_is_parked_unless_an_intent_of_its_own_is_stranded(scene: Scene) -> None:
    (lane,), deliveries, run_id = ready_lanes(scene, 1)
    scene.intend(lane, intent(deliveries[lane], run_id))
    with scene.store.write() as tx:
        assert not _park(tx, lane)
    scene.expire(lane.lease.process_id)
    successor = scene.lane(lane.account_id)
    with scene.store.write() as tx:  # what a predecessor left is looked after by its due time
        assert _park(tx, successor)
        assert tx.lanes.get(lane.account_id).owner is None


def test_letting_go_waits_for_a_taking_that_is_still_being_committed(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    scene = postgres_scene
    account_id, process_id = scene.account(), scene.process()
    _while_open(
        scene,
        pool,
        lambda tx: take(tx, [account_id], process_id),
        lambda tx: let_go(tx, [account_id], process_id),
    )
    with scene.store.read() as tx:
        row = tx.lanes.get(account_id)
    assert (row.owner, row.generation) == (None, 1)
    assert row.wake_at is not None
