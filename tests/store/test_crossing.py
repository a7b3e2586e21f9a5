"""A group that crosses to the server by itself, and whoever waits for it in the loop."""

import asyncio
from typing import Any

import pytest

from paceline.core.errors import StoreSurprise, StoreUnavailable
from paceline.core.states import DeliveryState
from paceline.engine.crossing import arrived
from paceline.engine.journal import ThreadRunner
from paceline.engine.ports import Crossing, LaneResult, LaneUnit
from paceline.interpreter import loop_factory
from paceline.store.database import open_store
from tests.store.crossings import (
    LAST_WORDS,
    STARTED,
    Held,
    journal_of,
    only_session,
    relayed,
    scene,
    set_off,
    states,
    until_somebody_waits,
    wishes,
)
from tests.store.scene import T0, Lane, Scene, settlement, unit
from tests.store.wiring import PID, end_session

__all__ = ["scene", "wishes"]  # fixtures

D = DeliveryState


def test_it_is_committed_when_it_has_arrived(scene: Scene, wishes: list[LaneUnit]) -> None:
    crossing = set_off(scene, wishes)
    assert asyncio.run(arrived(crossing)) == [STARTED] * 3
    assert states(scene, wishes) == [D.SENDING] * 3


def test_the_connection_is_used_again(scene: Scene, wishes: list[LaneUnit]) -> None:
    pid = only_session(scene)
    asyncio.run(arrived(set_off(scene, wishes)))
    assert only_session(scene) == pid


def test_nobody_sets_off_without_a_connection_that_lies_idle(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    other = open_store(scene.url)
    try:
        assert other.set_off(wishes) is None
        with other.write() as tx:
            pid = tx._context.ask(PID).fetchone()[0]  # type: ignore[attr-defined]
        end_session(scene.url, pid)
        assert other.set_off(wishes) is None
    finally:
        other.close()
    assert states(scene, wishes) == [D.READY] * 3


def test_what_cannot_be_foretold_stays_and_so_does_the_connection(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    assert scene.store.set_off([wishes[0], wishes[0]]) is None
    assert asyncio.run(arrived(set_off(scene, wishes))) == [STARTED] * 3


def test_a_surprise_undoes_it_and_the_connection_is_kept(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    pid = only_session(scene)
    with scene.store.write() as tx:
        tx.lanes.touch(wishes[1].lease.account_id, T0)
    with pytest.raises(StoreSurprise):
        asyncio.run(arrived(set_off(scene, wishes)))
    assert states(scene, wishes) == [D.READY] * 3
    assert only_session(scene) == pid


def test_more_than_the_wire_holds_is_sent_and_answered(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    much = [one._replace(usage=f'{{"long": "{"x" * 4_000_000}"}}') for one in wishes]
    assert asyncio.run(arrived(set_off(scene, much))) == [STARTED] * 3
    assert scene.sql("SELECT min(length(checkpoint)) FROM usage")[0][0] > 4_000_000


def test_whoever_stops_waiting_costs_the_connection(scene: Scene, wishes: list[LaneUnit]) -> None:
    held = Held(scene, wishes[1].lease.account_id)

    async def give_up() -> None:
        waiting = asyncio.ensure_future(arrived(set_off(scene, wishes)))
        await until_somebody_waits(scene)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(give_up())
    held.let_go()
    assert states(scene, wishes) == [D.READY] * 3
    assert asyncio.run(arrived(_set_off_again(scene, wishes))) == [STARTED] * 3


def _set_off_again(scene: Scene, units: list[LaneUnit]) -> Crossing:
    with scene.store.write() as tx:  # so that there is a connection
        tx.settings.fence()
    return set_off(scene, units)


def test_a_session_that_is_ended_meanwhile_is_told(scene: Scene, wishes: list[LaneUnit]) -> None:
    pid = only_session(scene)
    held = Held(scene, wishes[1].lease.account_id)

    async def wait_for_it() -> None:
        waiting = asyncio.ensure_future(arrived(set_off(scene, wishes)))
        await until_somebody_waits(scene)
        await asyncio.to_thread(end_session, scene.url, pid)
        with pytest.raises(StoreUnavailable) as told:
            await waiting
        assert not isinstance(told.value, StoreSurprise)

    asyncio.run(wait_for_it())
    held.let_go()
    assert states(scene, wishes) == [D.READY] * 3


def test_a_connection_that_is_reset_is_told(scene: Scene, wishes: list[LaneUnit]) -> None:
    """Of a socket in such a state a loop speaks once, and what is read then may be but the last
    words of a server."""
    held = Held(scene, wishes[1].lease.account_id)

    async def wait_for_it() -> None:
        with store.write() as tx:
            tx._context.ask(PID)
        crossing = store.set_off(wishes)
        assert crossing is not None
        waiting = asyncio.ensure_future(arrived(crossing))
        await until_somebody_waits(scene)
        relay.reset(LAST_WORDS)
        async with asyncio.timeout(10):
            with pytest.raises(StoreUnavailable):
                await waiting

    with relayed(scene) as (store, relay), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(wait_for_it())
    held.let_go()


def test_a_new_connection_in_the_place_of_a_lost_one_is_heard(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    """The kernel gives the same number to the next socket, and a loop that still watches for the
    old one would never hear of the new."""

    async def lose_and_go_on() -> None:
        for _ in range(5):
            pid = await asyncio.to_thread(only_session, scene)
            held = await asyncio.to_thread(Held, scene, wishes[1].lease.account_id)
            waiting = asyncio.ensure_future(arrived(set_off(scene, wishes)))
            await until_somebody_waits(scene)
            await asyncio.to_thread(end_session, scene.url, pid)
            with pytest.raises(StoreUnavailable):
                await waiting
            held.let_go()
            # At once, and in this very turn of the loop: before it has looked up.
            only_session(scene)
            told = [unit(Lane(one.lease, one.revision), usage="{}") for one in wishes]
            async with asyncio.timeout(20):
                await arrived(set_off(scene, told))

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(lose_and_go_on())
    assert states(scene, wishes) == [D.READY] * 3


# ---------------------------------------------------------------------- through the journal


def test_the_journal_takes_no_thread_for_lanes(scene: Scene, wishes: list[LaneUnit]) -> None:
    async def submit() -> list[LaneResult]:
        async with journal_of(scene) as journal:
            journal._writer = None  # type: ignore[assignment]
            try:
                return await asyncio.gather(*(journal.submit(one) for one in wishes))
            finally:
                journal._writer = ThreadRunner("writer")

    assert asyncio.run(submit()) == [STARTED] * 3


def test_a_surprise_is_found_out_by_asking(scene: Scene, wishes: list[LaneUnit]) -> None:
    with scene.store.write() as tx:
        tx.lanes.touch(wishes[1].lease.account_id, T0)

    async def submit() -> list[LaneResult]:
        async with journal_of(scene) as journal:
            return await asyncio.gather(*(journal.submit(one) for one in wishes))

    assert [one.intended for one in asyncio.run(submit())] == [True, False, True]


def test_who_takes_the_lane_over_meanwhile_is_not_missed(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    account_id = wishes[1].lease.account_id
    held = Held(scene, account_id)

    async def submit() -> list[LaneResult]:
        async with journal_of(scene) as journal:
            under_way = [asyncio.ensure_future(journal.submit(one)) for one in wishes]
            await until_somebody_waits(scene)
            taken = f"UPDATE lanes SET generation = 99 WHERE account_id = {account_id}"
            await asyncio.to_thread(held.let_go, taken)
            return await asyncio.gather(*under_way)

    results = asyncio.run(submit())
    assert [one.held for one in results] == [True, False, True]
    assert states(scene, wishes) == [D.SENDING, D.READY, D.SENDING]


def test_work_and_units_of_one_group_go_by_the_thread(scene: Scene, wishes: list[LaneUnit]) -> None:
    async def submit() -> list[Any]:
        async with journal_of(scene) as journal:
            units = [journal.submit(one) for one in wishes]
            return await asyncio.gather(*units, journal.write(lambda tx: tx.settings.stopped()))

    assert asyncio.run(submit()) == [*[STARTED] * 3, None]


def test_a_lost_session_fails_the_whole_group(scene: Scene, wishes: list[LaneUnit]) -> None:
    pid = only_session(scene)
    held = Held(scene, wishes[1].lease.account_id)

    async def submit() -> list[Any]:
        async with journal_of(scene) as journal:
            under_way = [asyncio.ensure_future(journal.submit(one)) for one in wishes]
            await until_somebody_waits(scene)
            await asyncio.to_thread(end_session, scene.url, pid)
            return await asyncio.gather(*under_way, return_exceptions=True)

    answers = asyncio.run(submit())
    held.let_go()
    assert [type(one) for one in answers] == [StoreUnavailable] * 3
    assert states(scene, wishes) == [D.READY] * 3


def test_outcomes_go_the_same_way(scene: Scene, wishes: list[LaneUnit]) -> None:
    first = wishes[0]
    assert first.intent is not None
    asyncio.run(arrived(set_off(scene, wishes)))
    lane = Lane(first.lease, first.revision)
    told = unit(lane, settlements=(settlement(first.intent.delivery_id, first.intent.run_id),))
    assert asyncio.run(arrived(set_off(scene, [told]))) == [LaneResult(True, (True,), False)]
    assert scene.state(first.intent.delivery_id) is D.SENT
