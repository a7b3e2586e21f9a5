"""The journal: units are grouped, one bad unit harms no other, and every caller gets an answer.

All of it inline, where every group can be told beforehand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from paceline.core.errors import StoreConflict, StoreUnavailable
from paceline.core.instants import MINUTE
from paceline.core.states import DeliveryState
from paceline.engine.clock import LoopClock
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.observe import Unobserved
from paceline.engine.ports import Intent, LaneResult, LaneUnit, Lease, LedgerRow, Store, Tx
from tests.engine.faults import TrippedStore
from tests.engine.world import MONDAY_NINE, World
from tests.engine.worlds import Worlds

T = TypeVar("T")


class Groups(Unobserved):
    """Remembers how many units each transaction had."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def committed(self, units: int, took_us: int) -> None:
        self.sizes.append(units)


def journal_on(
    store: Any, groups: Groups | None = None, group_limit: int = 500, gather_us: int = 0
) -> GroupJournal:
    return GroupJournal(
        store,
        LoopClock(MONDAY_NINE),
        writer=InlineRunner(),
        reader=InlineRunner(),
        observer=groups,
        group_limit=group_limit,
        gather_us=gather_us,
    )


def put(key: str, value: object) -> Callable[[Tx], str]:
    def work(tx: Tx) -> str:
        tx.settings.put(key, value)
        return key

    return work


def spoil(tx: Tx) -> None:
    tx.settings.put("spoilt", True)
    raise ZeroDivisionError("this unit is bad")


def settings(store: Store, *keys: str) -> list[object]:
    with store.read() as tx:
        return [tx.settings.get(key) for key in keys]


def play(worlds: Worlds, script: Callable[[World], Coroutine[Any, Any, T]]) -> T:
    """Nothing is sent here, and books are fouled on purpose: the invariants are not asked."""
    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    return world.play(script)


# ---------------------------------------------------------------------- grouping


def test_what_comes_together_is_one_transaction_and_each_gets_its_own_answer(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        groups = Groups()
        store = TrippedStore(world.store)
        journal = journal_on(store, groups)
        answers = await asyncio.gather(*(journal.write(put(f"k{n}", n)) for n in range(7)))
        assert answers == [f"k{n}" for n in range(7)]
        assert (groups.sizes, store.commits) == ([7], 1)
        assert settings(world.store, "k0", "k6") == [0, 6]

    play(worlds, script)


def test_work_is_done_in_the_order_in_which_it_came(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store)
        await asyncio.gather(*(journal.write(put("last", n)) for n in range(50)))
        assert settings(world.store, "last") == [49]

    play(worlds, script)


def test_a_group_has_its_limit_and_the_rest_follows(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        groups = Groups()
        journal = journal_on(world.store, groups, group_limit=4)
        await asyncio.gather(*(journal.write(put("last", n)) for n in range(10)))
        assert groups.sizes == [4, 4, 2]
        assert settings(world.store, "last") == [9]

    play(worlds, script)


def test_one_bad_unit_harms_no_other(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store)
        works: list[Any] = [put("a", 1), spoil, put("b", 2), spoil, put("c", 3)]
        answers = await asyncio.gather(*map(journal.write, works), return_exceptions=True)
        assert [answers[0], answers[2], answers[4]] == ["a", "b", "c"]
        assert [type(answers[1]), type(answers[3])] == [ZeroDivisionError] * 2
        assert settings(world.store, "a", "b", "c", "spoilt") == [1, 2, 3, None]

    play(worlds, script)


def test_a_bad_unit_alone_is_tried_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        store = TrippedStore(world.store)
        with pytest.raises(ZeroDivisionError):
            await journal_on(store).write(spoil)
        assert store.commits == 1

    play(worlds, script)


# ---------------------------------------------------------------------- lanes' units


def own_lanes(world: World, *names: str) -> dict[str, Lease]:
    """Accounts with a running campaign each, their lanes taken by one process."""
    leases = {}
    for name in names:
        world.account(name)
        world.campaign(2, name=f"for-{name}", on=(name,))
    with world.store.write() as tx:
        process = tx.processes.join("test", MINUTE)
        for name in names:
            account = tx.accounts.find(name)
            assert account is not None
            row = tx.lanes.take(account.id, process.id)
            assert row is not None
            leases[name] = Lease(account.id, process.id, row.generation)
    return leases


def unit_of(world: World, lease: Lease, **changes: Any) -> LaneUnit:
    """The intent to send this account's first delivery."""
    with world.store.read() as tx:
        revision = tx.lanes.get(lease.account_id).revision
        account = tx.accounts.get(lease.account_id)
        delivery = tx.deliveries.page(account_id=lease.account_id)[0]
    intent = Intent(
        delivery_id=delivery.id,
        run_id=delivery.run_id,
        part=0,
        attempt=1,
        action="message",
        at=world.clock.now(),
        policy_id=account.policy_id,
    )
    return LaneUnit(**{"lease": lease, "revision": revision, "intent": intent, **changes})


def sending(world: World) -> set[int]:
    with world.store.read() as tx:
        rows = tx.deliveries.page(state=DeliveryState.SENDING)
    return {row.account_id for row in rows}


def test_units_of_many_lanes_and_other_work_share_a_group(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        leases = own_lanes(world, "ann", "bob", "cy")
        groups = Groups()
        journal = journal_on(world.store, groups)
        units = [unit_of(world, lease) for lease in leases.values()]
        first, other, *rest = await asyncio.gather(
            journal.submit(units[0]),
            journal.write(put("beside", 1)),
            journal.submit(units[1]),
            journal.submit(units[2]),
        )
        assert other == "beside"
        assert all(answer == LaneResult(True, (), True) for answer in (first, *rest))
        assert groups.sizes == [4]
        assert sending(world) == {lease.account_id for lease in leases.values()}

    play(worlds, script)


def test_a_unit_that_is_refused_by_a_guard_refuses_no_other(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        leases = own_lanes(world, "ann", "bob", "cy")
        journal = journal_on(world.store)
        stale = Lease(leases["bob"].account_id, leases["bob"].process_id, 99)
        answers = await asyncio.gather(
            journal.submit(unit_of(world, leases["ann"])),
            journal.submit(unit_of(world, stale)),
            journal.submit(unit_of(world, leases["cy"])),
        )
        assert [answer.held for answer in answers] == [True, False, True]
        assert [answer.intended for answer in answers] == [True, False, True]
        assert sending(world) == {leases["ann"].account_id, leases["cy"].account_id}

    play(worlds, script)


def test_a_lane_unit_that_breaks_the_transaction_breaks_its_own_only(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        leases = own_lanes(world, "ann", "bob", "cy")
        journal = journal_on(world.store)
        broken = unit_of(world, leases["bob"])
        foul_ledger(world, leases["bob"], broken)
        answers: list[Any] = await asyncio.gather(
            journal.submit(unit_of(world, leases["ann"])),
            journal.submit(broken),
            journal.write(put("beside", 1)),
            journal.submit(unit_of(world, leases["cy"])),
            return_exceptions=True,
        )
        assert isinstance(answers[1], Exception)
        assert answers[0].intended
        assert answers[2] == "beside"
        assert answers[3].intended
        assert sending(world) == {leases["ann"].account_id, leases["cy"].account_id}
        assert settings(world.store, "beside") == [1]

    play(worlds, script)


def foul_ledger(world: World, lease: Lease, unit: LaneUnit) -> None:
    """Put the unit's intent into the ledger beforehand, whose table refuses a second one."""
    intent = unit.intent
    assert intent is not None
    row = LedgerRow(
        delivery_id=intent.delivery_id,
        part=intent.part,
        attempt=intent.attempt,
        kind="intent",
        account_id=lease.account_id,
        run_id=intent.run_id,
        action=intent.action,
        at=intent.at,
        intent_at=intent.at,
        started_at=None,
        slots=1,
        policy_id=intent.policy_id,
        generation=lease.generation,
    )
    world.write(lambda tx: tx.ledger.append(row))


def test_bad_work_beside_a_lane_does_not_stop_the_lane(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        leases = own_lanes(world, "ann")
        journal = journal_on(world.store)
        bad, good = await asyncio.gather(
            journal.write(spoil),
            journal.submit(unit_of(world, leases["ann"])),
            return_exceptions=True,
        )
        assert isinstance(bad, ZeroDivisionError)
        assert isinstance(good, LaneResult)
        assert good.intended

    play(worlds, script)


# ---------------------------------------------------------------------- in each other's way


def test_a_group_that_was_in_the_way_is_tried_again_as_a_whole(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        def trip(commit: int, moment: str) -> None:
            if commit == 1 and moment == "before":
                raise StoreConflict("deadlock detected")

        store = TrippedStore(world.store, trip)
        works = [put(f"k{n}", n) for n in range(5)]
        answers = await asyncio.gather(*map(journal_on(store).write, works))
        assert answers == [f"k{n}" for n in range(5)]
        assert store.commits == 2
        assert settings(world.store, "k0", "k4") == [0, 4]

    play(worlds, script)


def test_a_group_in_the_way_twice_is_replayed_and_one_conflict_ends_no_other(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        def trip(commit: int, moment: str) -> None:
            # The group twice, then twice the second of its three units.
            if commit in (1, 2, 4, 5) and moment == "before":
                raise StoreConflict("deadlock detected")

        store = TrippedStore(world.store, trip)
        works = [put(key, 1) for key in "abc"]
        answers = await asyncio.gather(*map(journal_on(store).write, works), return_exceptions=True)
        assert [answers[0], type(answers[1]), answers[2]] == ["a", StoreConflict, "c"]
        assert store.commits == 6
        assert settings(world.store, "a", "b", "c") == [1, None, 1]

    play(worlds, script)


# ---------------------------------------------------------------------- a store that is away


def test_a_store_that_is_away_is_told_to_all_and_tried_once(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        def trip(commit: int, moment: str) -> None:
            if commit == 1:
                raise StoreUnavailable("away")

        store = TrippedStore(world.store, trip)
        journal = journal_on(store)
        works = [journal.write(put(f"k{n}", n)) for n in range(5)]
        answers = await asyncio.gather(*works, return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 5
        assert store.commits == 1
        assert settings(world.store, "k0", "k4") == [None, None]
        assert await journal.write(put("later", 1)) == "later"

    play(worlds, script)


def test_a_store_that_goes_away_while_a_group_is_replayed_is_not_asked_for_each(
    worlds: Worlds,
) -> None:
    async def script(world: World) -> None:
        def trip(commit: int, moment: str) -> None:
            if commit >= 3:  # the group, the first of it alone, and then no more
                raise StoreUnavailable("away")

        store = TrippedStore(world.store, trip)
        journal = journal_on(store)
        works: list[Any] = [put("a", 1), put("b", 2), spoil, put("c", 3), put("d", 4)]
        answers = await asyncio.gather(*map(journal.write, works), return_exceptions=True)
        assert answers[0] == "a"
        assert [type(answer) for answer in answers[1:]] == [StoreUnavailable] * 4
        assert store.commits == 3

    play(worlds, script)


# ---------------------------------------------------------------------- callers that go away


def test_what_a_cancelled_caller_wrote_stands_and_nobody_else_notices(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store)
        impatient = asyncio.ensure_future(journal.write(put("impatient", 1)))
        patient = asyncio.ensure_future(journal.write(put("patient", 2)))
        impatient.cancel()
        assert await patient == "patient"
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert settings(world.store, "impatient", "patient") == [1, 2]

    play(worlds, script)


def test_an_observer_that_fails_changes_no_answer(worlds: Worlds) -> None:
    class Broken(Groups):
        def committed(self, units: int, took_us: int) -> None:
            raise RuntimeError("the watcher fell asleep")

    async def script(world: World) -> None:
        journal = journal_on(world.store, Broken(), group_limit=1)
        works = [journal.write(put(key, 1)) for key in "abc"]
        assert await asyncio.gather(*works) == ["a", "b", "c"]

    play(worlds, script)


def test_closing_commits_what_waits(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        journal = journal_on(world.store, group_limit=2)
        waiting = [asyncio.ensure_future(journal.write(put(f"k{n}", n))) for n in range(5)]
        await asyncio.wait(waiting, timeout=0)
        await journal.close()
        assert await asyncio.gather(*waiting) == [f"k{n}" for n in range(5)]
        assert settings(world.store, "k0", "k4") == [0, 4]

    play(worlds, script)
