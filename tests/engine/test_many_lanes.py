"""Many lanes that fall due together: taken together, and no account tried again and again."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.errors import ProviderRefused, StoreUnavailable
from paceline.core.instants import MINUTE, SECOND
from paceline.engine import taking
from paceline.engine.crashes import AWAY_PAUSE_US, suspend
from paceline.engine.ports import Lease
from tests.engine.doubles import Double, Watcher, raising
from tests.engine.faults import TrippedStore
from tests.engine.world import World
from tests.engine.worlds import Worlds

NAMES = tuple(f"a{number:02}" for number in range(40))


def crowd(world: World) -> None:
    for name in NAMES:
        world.account(name, policy={"rate": "1/min"})
    world.campaign(len(NAMES), on=NAMES)


def owned_after_each_commit(world: World) -> tuple[TrippedStore, list[int]]:
    owned: list[int] = []

    def trip(commit: int, moment: str) -> None:
        rows = world.read(lambda tx: [tx.lanes.get(a.id) for a in tx.accounts.list()])
        owned.append(sum(row.owner is not None for row in rows))

    return TrippedStore(world.store, trip), owned


def test_lanes_that_are_due_together_are_taken_in_one_write(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        crowd(world)
        store, owned = owned_after_each_commit(world)
        process = world.process(store=store)
        await world.until_finished()
        await process.stop()
        taking = [count for count in owned if count]
        assert taking[0] == len(NAMES)

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": len(NAMES)}


def test_a_great_many_are_taken_in_several_and_never_more_than_there_is_room_for(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "TAKE_AT_ONCE", 10)

    async def script(world: World) -> None:
        crowd(world)
        watcher = Watcher()
        store, owned = owned_after_each_commit(world)
        process = world.process(store=store, observer=watcher, max_lanes=25)
        await world.until_finished()
        await process.stop()
        assert max(watcher.lanes) <= 25
        assert max(owned) <= 25
        assert next(count for count in owned if count) == 10

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": len(NAMES)}


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_page_whose_taking_was_never_confirmed_is_not_lost(worlds: Worlds, lost: str) -> None:
    async def script(world: World) -> None:
        crowd(world)

        def trip(commit: int, moment: str) -> None:
            if commit == 3 and moment == lost:  # after the name and the joining: the taking
                raise StoreUnavailable("the line is dead")

        process = world.process(store=TrippedStore(world.store, trip))
        await world.until_finished(within_us=5 * MINUTE)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": len(NAMES)}


def test_an_account_that_is_suspended_already_is_not_logged_in_again_and_again(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        account = world.account()
        process_id = world.write(lambda tx: tx.processes.join("one", MINUTE)).id

        def refuse(tx: Any) -> int | None:
            row = tx.lanes.take(account.id, process_id)
            lease = Lease(account.id, process_id, row.generation)
            suspend(tx, lease, account, "wrong password", world.clock.now())
            wake_at = tx.lanes.get(account.id).wake_at
            assert isinstance(wake_at, int)
            return wake_at - tx.now

        assert world.write(refuse) == 0, "looked at once more, to be put away"
        assert world.write(refuse) == AWAY_PAUSE_US
        events = world.read(lambda tx: tx.events.latest(limit=20))
        assert len([e for e in events if e.kind == "account.suspended"]) == 1

    worlds.fresh().play(script)


def test_credentials_that_are_refused_are_tried_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(5)
        refusal = raising(ProviderRefused("wrong password"))
        provider = Double(world.providers.get("sandbox"), open=refusal)
        process = world.process(providers=provider.registry())
        await world.wait(10 * MINUTE)
        assert provider.called["open"] == 1
        assert world.account_now().state == "suspended"
        await world.wait(SECOND)
        await process.stop()

    worlds.fresh().play(script)
