"""Couriers that are killed, stand still, or are two: every event arrives, and in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.events import EventKind
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine.courier import LEASE_US, LOOK_EVERY_US, PAGE
from tests.engine.faults import CommitMoment, TrippedStore
from tests.engine.receiver import DOWN, OK, Receiver, courier_of, happen, hook, keep_looking
from tests.engine.scenes import until
from tests.engine.world import World
from tests.engine.worlds import Worlds


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_between_sending_and_writing_it_down(world: World, moment: CommitMoment) -> None:
    """It is sent again if nothing was stored, under the same id; if it was, it is not."""

    async def script(world: World) -> None:
        receiver = Receiver(world)
        ids: list[int] = []

        def trip(number: int, now_is: CommitMoment) -> None:
            if receiver.taken == ids[:1] and now_is == moment:
                raise StoreUnavailable("the plug was pulled")

        first = courier_of(world, receiver, store=TrippedStore(world.store, trip))
        second = courier_of(world, receiver)
        await second.look()
        ids += happen(world, 2)
        with pytest.raises(StoreUnavailable):
            await first.look()
        assert receiver.taken == ids[:1]
        assert await second.look() == 0, "for all that is known, the first one is still at it"
        await world.wait(LEASE_US)
        await second.look()
        again = [ids[0]] if moment == "before" else []
        assert receiver.taken == [ids[0], *again, ids[1]]
        same = [(name, event) for _, name, event in receiver.tried if event["id"] == ids[0]]
        assert same == [same[0]] * len(same)

    world.play(script)


def test_two_processes_and_one_of_them_sends(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, takes_us=9 * SECOND)
        couriers = [courier_of(world, receiver) for _ in range(2)]
        await couriers[0].look()
        ids = happen(world, 20)
        running = [asyncio.ensure_future(courier.run()) for courier in couriers]
        await until(world, lambda: len(receiver.taken) == 20, within_us=HOUR)
        await world.wait(MINUTE)
        assert receiver.taken == ids, "three minutes of work, and never out of its lease"
        for courier in couriers:
            courier.stop()
        await asyncio.gather(*running)
        assert receiver.closed

    world.play(script)


def test_one_that_stood_still_for_too_long_changes_nothing_any_more(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        frozen, other = courier_of(world, receiver), courier_of(world, receiver)
        await other.look()
        ids = happen(world, 3)

        async def stand_still() -> None:
            receiver.meanwhile = None
            await world.wait(2 * LEASE_US)
            await other.look()
            happen(world)

        receiver.meanwhile = stand_still
        await frozen.look()
        assert receiver.taken == [*ids, ids[0]], "the late answer came last"
        assert hook(world).cursor == ids[-1]
        assert hook(world).delivered == 3
        assert hook(world).generation == 2

    world.play(script)


def test_no_try_is_begun_that_might_outlive_the_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        courier = courier_of(world, receiver)
        await courier.look()
        happen(world)
        real, leases = courier._page, []

        async def slow(cursor: int) -> Any:
            page = await real(cursor)
            await world.wait(LEASE_US - 5 * SECOND)
            leases.append(hook(world).lease_until_at)
            return page

        async def look_at_it() -> None:
            leases.append(hook(world).lease_until_at)

        monkeypatch.setattr(courier, "_page", slow)
        receiver.meanwhile = look_at_it
        await courier.look()
        assert leases[1] - leases[0] == LEASE_US - 5 * SECOND, "renewed before the call"

    world.play(script)


def test_thousands_that_wait_are_never_held_at_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, usual=DOWN)
        courier = courier_of(world, receiver)
        await courier.look()

        def many(tx: Any) -> None:
            for _ in range(20 * PAGE):
                tx.events.add(EventKind.SENDING_RESUMED, "x" * 1_000, at=world.clock.now())

        world.write(many)
        real, sizes = courier._page, []

        async def measured(cursor: int) -> Any:
            page = await real(cursor)
            sizes.append(len(page))
            return page

        courier._page = measured  # type: ignore[method-assign]
        await keep_looking(world, courier, MINUTE, 5 * SECOND)
        assert set(receiver.ids) == {receiver.ids[0]}
        receiver.tried.clear()
        receiver.usual = OK
        await keep_looking(world, courier, 2 * HOUR, MINUTE)
        assert len(receiver.taken) == 20 * PAGE
        assert receiver.taken == sorted(set(receiver.taken))
        assert max(sizes) == PAGE

    worlds.fresh().play(script)


def test_a_stop_ends_after_what_is_under_way(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, takes_us=5 * SECOND)
        courier = courier_of(world, receiver)
        await courier.look()
        ids = happen(world, 5)
        running = asyncio.ensure_future(courier.run())
        await world.wait(7 * SECOND)
        courier.stop()
        await running
        assert receiver.taken == ids[:2]
        assert (hook(world).cursor, hook(world).lease_until_at) == (ids[1], None)

    world.play(script)


def test_a_store_that_is_away_and_a_defect_end_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        courier = courier_of(world, receiver)
        await courier.look()
        troubles: list[Exception] = [StoreUnavailable("away"), KeyError("a defect")]
        real = courier.look

        async def look() -> int:
            if troubles:
                raise troubles.pop(0)
            return await real()

        monkeypatch.setattr(courier, "look", look)
        ids = happen(world)
        running = asyncio.ensure_future(courier.run())
        await world.wait(3 * LOOK_EVERY_US + SECOND)
        assert receiver.taken == ids
        courier.stop()
        await running

    world.play(script)
