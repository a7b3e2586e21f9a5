"""Lanes woken for nothing: what counts as something to do, and that nothing is parked away."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE
from paceline.engine.commands import accounts, campaigns, control
from paceline.engine.idle_lanes import AT_ONCE, BUSY, Glance, IdleLanes, look, park
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.ports import LaneRow, Tx
from tests.engine.world import World

Play = Callable[[Callable[[World], Coroutine[Any, Any, None]]], None]
FAST = {"rate": "60/min"}


@pytest.fixture(params=["fresh_sqlite_url", "fresh_postgres_url"])
def play(request: pytest.FixtureRequest) -> Play:
    url = request.getfixturevalue(request.param)()
    return lambda script: World(url).play(script)


def glance(world: World, account_id: int) -> Glance:
    now = world.clock.now()
    return world.read(lambda tx: look(tx, account_id, now))


def lane(world: World, account_id: int) -> LaneRow:
    return world.read(lambda tx: tx.lanes.get(account_id))


def joined(world: World) -> int:
    return world.write(lambda tx: tx.processes.join("one", HOUR).id)


def test_what_there_is_to_do(play: Play) -> None:
    async def script(world: World) -> None:
        now = world.clock.now()
        ann = world.account(policy=FAST).id

        def cool_down(tx: Tx) -> None:
            tx.accounts.move(ann, "cool_down", reason="hot", until_at=now + HOUR)

        assert glance(world, ann) == Glance(busy=False)
        assert glance(world, ann + 1) == Glance(busy=False), "there is no such account"
        world.write(cool_down)
        assert glance(world, ann) == Glance(False, now + HOUR), "then the label comes off"
        world.write(lambda tx: accounts.resume(tx, "ann", now))
        world.campaign(3, name="later", start_at=now + 2 * MINUTE)
        assert glance(world, ann) == Glance(False, now + 2 * MINUTE)
        await world.wait(MINUTE)
        assert glance(world, ann) == BUSY, "a worker that is started now is there by then"
        world.write(lambda tx: campaigns.pause(tx, "later", world.clock.now()))
        assert glance(world, ann) == Glance(busy=False)
        world.write(lambda tx: campaigns.resume(tx, "later", world.clock.now()))
        world.write(lambda tx: control.stop_all(tx, "enough", world.clock.now()))
        assert glance(world, ann) == Glance(busy=False)
        world.write(lambda tx: control.go_on(tx, world.clock.now()))
        assert glance(world, ann) == BUSY
        process = world.process()
        await world.until_finished("later", within_us=HOUR)
        await process.stop()
        assert glance(world, ann) == Glance(busy=False)

    play(script)


def test_what_is_nobody_s_is_something_to_do_for_each_of_its_pool(play: Play) -> None:
    async def script(world: World) -> None:
        now = world.clock.now()
        ids = [world.account(name, policy=FAST).id for name in ("ann", "bob")]
        on, at = ("ann", "bob"), now + 5 * MINUTE
        world.campaign(9, name="pool", on=on, assignment="pool", start_at=at)
        assert [glance(world, one) for one in ids] == [Glance(False, at)] * 2

    play(script)


def test_those_with_something_to_do_are_told_and_the_others_parked(play: Play) -> None:
    async def script(world: World) -> None:
        names = [f"number-{n}" for n in range(AT_ONCE + 3)]
        ids = [world.account(name, policy=FAST).id for name in names]
        world.campaign(3, name="now", on=(names[1],))
        at = world.clock.now() + HOUR
        world.campaign(3, name="later", on=(names[2],), start_at=at)
        runner, process_id = InlineRunner(), joined(world)
        journal = GroupJournal(world.store, world.clock, writer=runner, reader=runner, here=True)
        idle = IdleLanes(journal, world.clock)
        world.write(lambda tx: tx.lanes.touch_all(world.clock.now()))
        due = world.read(lambda tx: tx.lanes.due(process_id, 1_000))
        assert len(due) == len(names)
        (busy,) = await idle.busy(due, process_id)
        assert busy.account_id == ids[1]
        assert lane(world, ids[1]) == busy, "it stays as it was"
        parked = [lane(world, one) for one in ids if one != ids[1]]
        assert {row.owner for row in parked} == {None}
        (wake_at,) = [row.wake_at for row in parked if row.wake_at is not None]
        by_its_clock = world.read(lambda tx: tx.now)
        assert HOUR - MINUTE < wake_at - by_its_clock <= HOUR
        left = world.read(lambda tx: tx.lanes.due(process_id, 1_000))
        assert left == [busy]
        # Who waits in line is not looked at again, until something changes.
        world.write(lambda tx: campaigns.pause(tx, "now", world.clock.now()))
        assert await idle.busy([busy], process_id) == [busy]
        touched = lane(world, ids[1])
        assert touched.revision != busy.revision
        assert await idle.busy([touched], process_id) == []
        assert lane(world, ids[1]).wake_at is None
        # The server's clock is months away from this world's, and what waits is judged by both.
        world.write(lambda tx: campaigns.cancel(tx, "later", world.clock.now()))
        await journal.close()

    play(script)


def test_what_was_left_in_the_middle_since_the_first_look_is_not_parked_away(play: Play) -> None:
    async def script(world: World) -> None:
        ann = world.account(policy=FAST, latency="5s").id
        world.campaign(3)
        process = world.process()
        await world.until(lambda: world.counts().get("sending", 0) == 1)
        await process.kill()
        world.write(lambda tx: control.stop_all(tx, "enough", world.clock.now()))
        process_id, now = joined(world), world.clock.now()
        world.write(lambda tx: park(tx, [ann], process_id, now))
        owner = lane(world, ann).owner
        assert owner is not None and owner != process_id, "its owner may yet live"
        world.write(lambda tx: tx.processes.leave(owner))
        world.write(lambda tx: park(tx, [ann], process_id, now))
        row = lane(world, ann)
        assert row.owner is None and row.wake_at is not None, "somebody has to see to it"
        world.write(lambda tx: control.go_on(tx, world.clock.now()))
        second = world.process("two")
        await world.until_finished(within_us=HOUR)
        await second.stop()

    play(script)
